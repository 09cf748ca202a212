package passtest

import (
	"math"
	"reflect"
	"testing"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// A mistake spoils one field of a right op. It returns false where it doesn't apply.
type mistake struct {
	name string
	in   reflect.Type
	make func(f reflect.Value, x misuse) bool
	far  bool // the message may name another field
}

// misuse is what mistakes are made with.
type misuse struct {
	arg    pass.Arg // the argument of a view
	floats pass.Buffer
	words  pass.Buffer
	wrong  pass.Param // of another kind
}

func mistakes() []mistake {
	view := reflect.TypeFor[pass.View]()
	change := func(name string, f func(v *pass.View, x misuse) bool) mistake {
		return mistake{name: name, in: view, make: func(field reflect.Value, x misuse) bool {
			v := field.Interface().(pass.View)
			if v.IsZero() || !f(&v, x) {
				return false
			}
			field.Set(reflect.ValueOf(v))
			return true
		}}
	}
	number := func(name string, n int, far bool) mistake {
		return mistake{name: name, in: reflect.TypeFor[int](), far: far, make: func(f reflect.Value, _ misuse) bool {
			f.SetInt(int64(n))
			return true
		}}
	}
	param := func(name string, p func(x misuse) pass.Param) mistake {
		return mistake{name: name, in: reflect.TypeFor[pass.Param](), make: func(f reflect.Value, x misuse) bool {
			f.Set(reflect.ValueOf(p(x)))
			return true
		}}
	}
	return []mistake{
		change("no view", func(v *pass.View, x misuse) bool { *v = pass.View{}; return true }),
		change("wrong type", func(v *pass.View, x misuse) bool {
			if v.Buffer.Type() == pass.U32 {
				v.Buffer = x.floats
			} else {
				v.Buffer = x.words
			}
			return true
		}),
		change("negative offset", func(v *pass.View, x misuse) bool { v.Offset = -1; return true }),
		change("offset beyond the end", func(v *pass.View, x misuse) bool { v.Offset = v.Buffer.Len(); return true }),
		change("one element too few", func(v *pass.View, x misuse) bool {
			_, end := x.arg.Range()
			v.Offset += v.Buffer.Len() - end + 1
			return true
		}),
		change("offset that overflows", func(v *pass.View, x misuse) bool { v.Offset = math.MaxInt; return true }),
		change("negative row stride", func(v *pass.View, x misuse) bool { v.RowStride = -1; return true }),
		change("negative batch stride", func(v *pass.View, x misuse) bool { v.BatchStride = -1; return true }),
		change("row stride beyond the end", func(v *pass.View, x misuse) bool {
			v.RowStride = v.Buffer.Len() + 1
			return x.arg.Rows > 1
		}),
		change("row stride that overflows", func(v *pass.View, x misuse) bool {
			v.RowStride = math.MaxInt/2 + 7
			return x.arg.Rows > 1
		}),
		change("batch stride that overflows", func(v *pass.View, x misuse) bool {
			v.BatchStride = math.MaxInt/2 + 7
			return x.arg.Batch > 1
		}),
		change("rows that overlap", func(v *pass.View, x misuse) bool {
			v.RowStride = x.arg.Cols - 1
			return x.arg.Access&pass.Write != 0 && x.arg.Rows > 1 && x.arg.Cols > 1
		}),
		change("items that overlap", func(v *pass.View, x misuse) bool {
			v.BatchStride = x.arg.Cols - 1
			return x.arg.Access&pass.Write != 0 && x.arg.Batch > 1 && x.arg.Cols > 1
		}),
		param("no param", func(x misuse) pass.Param { return pass.Param{} }),
		param("param of another kind", func(x misuse) pass.Param { return x.wrong }),
		number("negative", -1, false),
		number("most negative", math.MinInt, false),
		number("largest int", math.MaxInt, true),
		number("large enough to overflow a product", math.MaxInt/2+1, true),
	}
}

// misusedFields takes right ops of every kind and makes every mistake in every field.
func misusedFields(t testing.TB, s *suite) {
	dev, ses := s.session(t)
	floats, err := ses.Alloc(pass.F32, 1<<16)
	ok(t, err, "alloc")
	words, err := ses.Alloc(pass.U32, 1<<16)
	ok(t, err, "alloc")
	wrong := map[bool]pass.Param{false: one(t, dev)}
	wrong[true], err = dev.Load(background, pass.ConvWeights{Weight: pass.Float32s("c", []float32{1}, 1, 1, 1)})
	ok(t, err, "load")
	done := map[string]bool{}
	for _, e := range cases.All() {
		if e.Full {
			continue
		}
		op, checked := misusable(t, dev, ses, e, done)
		if op == nil {
			continue
		}
		linear := false
		for _, p := range checked.Params {
			_, linear = p.Shape().(pass.LinearShape)
		}
		x := misuse{floats: floats, words: words, wrong: wrong[linear]}
		kind := reflect.TypeOf(op)
		for i := range kind.NumField() {
			for _, m := range mistakes() {
				field := kind.Field(i)
				key := op.Name() + "." + field.Name + ": " + m.name
				if m.in != field.Type || done[key] || legal(op, field.Name, m) {
					continue
				}
				x.arg = argument(checked, field.Name)
				bad := reflect.New(kind).Elem()
				bad.Set(reflect.ValueOf(op))
				if !m.make(bad.Field(i), x) {
					continue
				}
				done[key] = true
				name := field.Name
				if m.far || eitherType(op) && m.name == "wrong type" {
					name = ": "
				}
				_, err := ses.Record(background, pass.RecordOptions{}, func(p pass.Pass) { p.Do(bad.Interface().(pass.Op)) })
				fails(t, key, err, pass.ErrInvalid, op.Name(), name)
			}
		}
		misusedAliases(t, ses, op, checked, done)
	}
	if len(done) < 20*len(cases.Ops()) {
		t.Errorf("only %d mistakes for %d ops", len(done), len(cases.Ops()))
	}
}

// misusable returns the op of a case on real buffers, each larger than its argument,
// or nil if the case has an empty argument or shows nothing that others have not shown.
func misusable(t testing.TB, dev pass.Device, ses pass.Session, e cases.Entry, done map[string]bool) (pass.Op, pass.Checked) {
	t.Helper()
	c := e.Case()
	checked, err := c.Resolve()
	ok(t, err, e.Name)
	shape := e.Op
	for _, a := range checked.Args {
		if a.Batch*a.Rows*a.Cols == 0 {
			return nil, checked
		}
		for _, several := range []bool{a.Batch > 1, a.Rows > 1, a.Cols > 1} {
			shape += map[bool]string{false: ".", true: "+"}[several]
		}
		shape += a.Name
	}
	if done[shape] || len(c.Same) > 0 {
		return nil, checked
	}
	done[shape] = true
	placed, err := cases.Place(c, cases.Awkward, 1)
	ok(t, err, "place")
	buffers := map[string]pass.Buffer{}
	for _, b := range placed.Buffers {
		buffers[b.Name], err = ses.Alloc(b.Type, len(b.Words))
		ok(t, err, "alloc")
	}
	op, err := placed.Op(buffers, loaded(t, dev, c), emptyCaches(t, ses, c))
	ok(t, err, "bind")
	checked, err = pass.Check(op)
	ok(t, err, "check")
	return op, checked
}

func argument(op pass.Checked, name string) pass.Arg {
	for _, a := range op.Args {
		if a.Name == name {
			return a
		}
	}
	return pass.Arg{}
}

// eitherType reports whether the type of one argument says what the others must be.
func eitherType(op pass.Op) bool {
	switch op.(type) {
	case pass.Copy, pass.Fill:
		return true
	}
	return false
}

// legal reports whether what would be a mistake elsewhere is none in a field.
func legal(op pass.Op, field string, m mistake) bool {
	switch op := op.(type) {
	case pass.Conv1D: // longer than the input: one step, or none
		return (field == "Stride" || field == "Pool") && m.far
	case pass.PoolNorm:
		return field == "Pool" && m.far
	case pass.Embed:
		return field == "Positions" && m.name == "no param"
	case pass.LayerNorm: // a second output is optional, and with it what it needs
		none := op.Rotated.IsZero()
		return field == "Rotated" && m.name == "no view" || none && (field == "Table" || field == "Heads")
	case pass.Conv2D:
		return field == "Residual" && m.name == "no view"
	case pass.Advance:
		return field == "IDRows" && op.IDs.IsZero() || len(op.Stop) == 0 && m.name == "no view" && (field == "IDs" || field == "Done")
	case pass.LSTM: // optional, and then of no size
		none := op.H0.IsZero() && op.H.IsZero()
		return field == "States" && m.far && none
	}
	return false
}

// misusedAliases gives every output the buffer of every other argument.
func misusedAliases(t testing.TB, ses pass.Session, op pass.Op, checked pass.Checked, done map[string]bool) {
	t.Helper()
	for _, a := range checked.Args {
		for _, b := range checked.Args {
			key := op.Name() + ": " + a.Name + " in the buffer of " + b.Name
			if a.Name == b.Name || a.Access&pass.Write == 0 || a.View.Buffer.Type() != b.View.Buffer.Type() || done[key] {
				continue
			}
			large, err := ses.Alloc(a.View.Buffer.Type(), a.View.Buffer.Len()+b.View.Buffer.Len())
			ok(t, err, "alloc")
			bad := reflect.New(reflect.TypeOf(op)).Elem()
			bad.Set(reflect.ValueOf(op))
			u, v := a.View, b.View // one behind the other, in one buffer
			u.Buffer, v.Buffer = large, large
			v.Offset += a.View.Buffer.Len()
			other := bad.FieldByName(b.Name)
			if other.Type() != reflect.TypeFor[pass.View]() {
				continue
			}
			done[key] = true
			bad.FieldByName(a.Name).Set(reflect.ValueOf(u))
			other.Set(reflect.ValueOf(v))
			_, err = ses.Record(background, pass.RecordOptions{}, func(p pass.Pass) { p.Do(bad.Interface().(pass.Op)) })
			fails(t, key, err, pass.ErrInvalid, op.Name(), a.Name, b.Name)
			ok(t, ses.Free(large), "free")
		}
	}
}
