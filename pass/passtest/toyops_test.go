package passtest

import (
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// copyWeights reads all tensors, since they are readable during Load only, and copies
// all values.
func copyWeights(w pass.Weights) (pass.Weights, error) {
	c := weightCopier{}
	v := reflect.New(reflect.TypeOf(w)).Elem()
	v.Set(reflect.ValueOf(w))
	c.copy(v)
	return v.Interface().(pass.Weights), c.err
}

type weightCopier struct{ err error }

// copy replaces everything that v shares with its owner.
func (c *weightCopier) copy(v reflect.Value) {
	if t, ok := v.Interface().(pass.Tensor); ok {
		if t.Data != nil {
			v.Set(reflect.ValueOf(c.read(t)))
		}
		return
	}
	switch v.Kind() {
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(fresh, v)
		v.Set(fresh)
		if k := v.Type().Elem().Kind(); k == reflect.Struct || k == reflect.Slice {
			for i := range v.Len() {
				c.copy(v.Index(i))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			c.copy(v.Field(i))
		}
	}
}

func (c *weightCopier) read(t pass.Tensor) pass.Tensor {
	b := make([]byte, t.Bytes())
	if n, err := t.Data.ReadAt(b, 0); n < len(b) && c.err == nil {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		c.err = fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	t.Data, t.Shape = strings.NewReader(string(b)), slices.Clone(t.Shape)
	return t
}

// indexOf returns the index that is a field of an op.
func indexOf(op pass.Op, field string) (pass.Index, bool) {
	f := reflect.ValueOf(op).FieldByName(field)
	if !f.IsValid() {
		return pass.Index{}, false
	}
	x, ok := f.Interface().(pass.Index)
	return x, ok
}

// withoutAddends is an op whose indices on the device have nothing added.
func withoutAddends(op pass.Op, fault string) pass.Op {
	if fault != "addend forgotten" {
		return op
	}
	v := reflect.New(reflect.TypeOf(op)).Elem()
	v.Set(reflect.ValueOf(op))
	for i := range v.NumField() {
		if x, ok := v.Field(i).Interface().(pass.Index); ok {
			if _, constant := x.Const(); !constant {
				v.Field(i).Set(reflect.ValueOf(x.Plus(-x.Addend())))
			}
		}
	}
	return v.Interface().(pass.Op)
}

// row returns the row that an index leads to, of which count follow each other.
func (g *toyProgram) row(op pass.Checked, name string, x pass.Index, b, count, rows int) (int, error) {
	n, constant := x.Const()
	if !constant {
		v, each := x.View()
		if !each {
			b = 0
		}
		n = int(g.words(g.p.Place(v.Buffer))[v.Offset+b])
		if g.s.h.fault != "addend forgotten" {
			n += x.Addend()
		}
		if n+count > rows && g.s.h.fault == "index clamped" {
			n = rows - count
		}
	}
	if n+count > rows {
		return 0, fmt.Errorf("%s: %s: item %d: want at most %d, given %d: %w", op.Op.Name(), name, b, rows-count, n, pass.ErrInvalid)
	}
	return n, nil
}

// indices checks that what lies on the device leads to where there is something.
func (g *toyProgram) indices(op pass.Checked) error {
	batch := 1
	check := func(name string, x pass.Index, count, rows int) error {
		for b := range batch {
			if _, err := g.row(op, name, x, b, count, rows); err != nil {
				return err
			}
		}
		return nil
	}
	switch v := op.Op.(type) {
	case pass.LayerNorm:
		if t, ok := v.Table.Shape().(pass.RopeShape); ok && !v.Rotated.IsZero() {
			batch = v.Batch
			return check("Pos", v.Pos, v.Rows, t.Positions)
		}
	case pass.Rope:
		batch = v.Batch
		return check("Pos", v.Pos, v.Rows, v.Table.Shape().(pass.RopeShape).Positions)
	case pass.Argmax:
		batch = v.Batch
		return check("ToRow", v.ToRow, v.Rows, v.IDRows)
	case pass.Append:
		batch = v.Batch
		return check("At", v.At, v.Rows, v.Cache.Config().Capacity)
	case pass.Attend:
		batch = v.Batch
		return check("Keys", v.Keys, 0, v.Cache.Config().Capacity)
	case pass.Embed:
		batch = v.Batch
		if err := check("IDRow", v.IDRow, v.Rows, v.IDRows); err != nil {
			return err
		}
		if t, ok := v.Positions.Shape().(pass.LinearShape); ok {
			if err := check("Pos", v.Pos, v.Rows, t.N); err != nil {
				return err
			}
		}
		return g.ids(op, v)
	case pass.Advance:
		return g.counters(op, v)
	}
	return nil
}

// ids checks the ids that an Embed looks up.
func (g *toyProgram) ids(op pass.Checked, e pass.Embed) error {
	n := e.Table.Shape().(pass.LinearShape).N
	words := g.words(g.p.Place(e.IDs.Buffer))
	for b := range e.Batch {
		from, err := g.row(op, "IDRow", e.IDRow, b, e.Rows, e.IDRows)
		for r := range e.Rows {
			if id := words[e.IDs.Offset+b*e.IDs.BatchStride+(from+r)*e.IDs.RowStride]; err == nil && int(id) >= n {
				return fmt.Errorf("embed: IDs: item %d: want less than %d, given %d: %w", b, n, id, pass.ErrInvalid)
			}
		}
	}
	return nil
}

// counters checks where the counters of an Advance look for ids.
func (g *toyProgram) counters(op pass.Checked, a pass.Advance) error {
	if a.IDs.IsZero() {
		return nil
	}
	for b := range a.Batch {
		if !a.Done.IsZero() && g.words(g.p.Place(a.Done.Buffer))[a.Done.Offset+b*a.Done.RowStride] != 0 {
			continue
		}
		x := pass.IndexIn(a.Index.At(b * a.Index.RowStride)).Plus(a.Plus)
		if _, err := g.row(op, "Index", x, 0, 1, a.IDRows); err != nil {
			return err
		}
	}
	return nil
}

// openCaches gives a case what the caches of its op hold.
func (g *toyProgram) openCaches(op pass.Checked, c *cases.Case) {
	for _, h := range op.Caches {
		words := g.p.Cache(h.Cache).(*toyMemory).words
		half, config := len(words)/2, h.Config()
		if g.s.h.fault == "caches never round" {
			config.Type = pass.F32
		}
		c.Caches = append(c.Caches, cases.Cache{Field: h.Name, Config: config, K: floats(words[:half]), V: floats(words[half:])})
	}
}

// closeCaches keeps what an op wrote to its caches.
func (g *toyProgram) closeCaches(op pass.Checked, wanted []cases.Tensor) {
	for _, h := range op.Caches {
		words := g.p.Cache(h.Cache).(*toyMemory).words
		for _, w := range wanted {
			switch w.Name {
			case h.Name + ".K":
				copy(words, w.Words)
			case h.Name + ".V":
				copy(words[len(words)/2:], w.Words)
				if g.s.h.fault == "value of a cache lost" {
					words[len(words)-1] = math.Float32bits(math.Float32frombits(words[len(words)-1]) + 1)
				}
			}
		}
	}
}
