package passtest

import (
	"slices"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// update lets an output begin as a value; or, sometimes, be state that begins as a value
// before the first run.
func (f *fuzzer) update(s *fuzzStep, output int, before *fuzzValue, argument string) {
	if before.input != nil && f.random.IntN(2) == 0 {
		s.hold(output, before, argument)
		return
	}
	s.over(output, before, argument)
}

// lstm runs over a value, from zeros or a state, to a state or none.
func (f *fuzzer) lstm(x *fuzzValue) {
	hidden, directions := f.n(20), f.n(2)
	w := pass.LSTMWeights{}
	in := x.cols
	for range f.n(2) {
		var layer []pass.LSTMCell
		for range directions {
			layer = append(layer, pass.LSTMCell{Input: f.matrix("in", in, 4*hidden, in), Hidden: f.matrix("hidden", hidden, 4*hidden, hidden), Bias: f.bias(4 * hidden)})
		}
		w.Layers = append(w.Layers, layer)
		in = directions * hidden
	}
	l := pass.LSTM{Batch: x.batch, Time: x.rows, Lengths: f.lengths(x)}
	inputs, names := map[string]*fuzzValue{"X": x}, []string{"Y"}
	outs := []*fuzzValue{f.value(pass.F32, x.batch, x.rows, in)}
	given, asked, same := f.random.IntN(2) == 0, f.random.IntN(2) == 0, f.random.IntN(2) == 0
	if given || asked {
		l.States = x.batch + f.random.IntN(3)
		rows := f.random.Perm(l.States)
		l.StateRows = f.items("StateRows", x.batch, func(b int) int { return rows[b] })
	}
	state := func() *fuzzValue { return f.fresh(l.States, len(w.Layers)*directions, hidden) }
	if given && !(asked && same) {
		inputs["H0"], inputs["C0"] = state(), state()
	}
	if asked {
		names = append(names, "H", "C")
		for range 2 {
			outs = append(outs, f.value(pass.F32, l.States, len(w.Layers)*directions, hidden))
		}
	}
	s := f.addAll(cases.Case{Op: l, Params: []cases.Param{{Field: "W", Weights: w}}}, inputs, names, outs...)
	for i, name := range names[1:] {
		if given && same {
			name += "0"
		}
		f.update(s, 1+i, state(), name)
	}
}

// fuzzCounters are state on the device that an Advance steps, and a copy of it before
// each run.
type fuzzCounters struct{ value, before *fuzzValue }

// counters makes counters that begin at 0 to most. They lie side by side, as an index
// for each item does.
func (f *fuzzer) counters(n, most int) fuzzCounters {
	v := &fuzzValue{typ: pass.U32, batch: 1, rows: n, cols: 1}
	v.view = pass.View{Offset: f.random.IntN(4), RowStride: 1, BatchStride: n}
	v.length = v.view.Offset + n + f.random.IntN(3)
	start := make([]uint32, n)
	for i := range start {
		start[i] = uint32(f.random.IntN(most + 1))
	}
	before := *v
	v.held = v.scatter(start, fuzzFiller)
	return fuzzCounters{v, &before}
}

// advance steps counters that begin at 0 to most, unless they are done.
func (f *fuzzer) advance(n fuzzCounters, most, by int) {
	items := n.value.rows
	a := pass.Advance{By: by, Batch: items}
	inputs, names, outs := map[string]*fuzzValue{}, []string{"Index"}, []*fuzzValue{n.value}
	if f.random.IntN(2) == 0 {
		a.Plus = f.random.IntN(3)
		a.IDRows = most + by*f.rounds + a.Plus + f.n(3)
		inputs["IDs"] = f.words(items, a.IDRows, 9)
	}
	flagged := a.IDRows > 0 || f.random.IntN(2) == 0
	if flagged {
		names, outs = append(names, "Done"), append(outs, f.value(pass.U32, 1, items, 1))
	}
	if a.IDRows > 0 {
		for range f.random.IntN(5) {
			a.Stop = append(a.Stop, uint32(f.random.IntN(9)))
		}
	}
	s := f.addAll(cases.Case{Op: a}, inputs, names, outs...)
	s.before = append(s.before, fuzzBefore{"Index", n.value, n.before})
	if flagged {
		f.update(s, 1, f.words(1, items, 2), "Done")
	}
}

// halfway returns a value, or one between −1 and 1 if it is to be kept in F16, where large
// ones are refused.
func (f *fuzzer) halfway(x *fuzzValue, t pass.DType) *fuzzValue {
	if t == pass.F16 {
		op := pass.Map{Batch: x.batch, Rows: x.rows, Cols: x.cols, Epilogue: pass.Tanh}
		x = f.add(cases.Case{Op: op}, map[string]*fuzzValue{"X": x}, "Y", x.batch, x.rows, x.cols).outs[0]
	}
	return x
}

// attended makes a cache for a value, with keys and values for it.
func (f *fuzzer) attended(x *fuzzValue) (q, k, v *fuzzValue, h cases.Cache) {
	dim := 4 * f.n(3)
	heads := max(1, x.cols/dim)
	if heads*dim != x.cols {
		x = f.fresh(x.batch, x.rows, heads*dim)
	}
	keys := 12 + f.random.IntN(20)
	g := pass.CacheConfig{Heads: heads, HeadDim: dim, Capacity: keys, Batch: x.batch, Type: pass.F32}
	if f.random.IntN(2) == 0 {
		g.Type = pass.F16
	}
	k = f.halfway(f.like(x, x.batch, keys, x.cols), g.Type)
	v = f.halfway(f.fresh(x.batch, keys, x.cols), g.Type)
	empty := make([]float32, x.batch*keys*x.cols)
	return x, k, v, cases.Cache{Field: "Cache", Config: g, K: empty, V: empty}
}

// filled says what a cache holds.
func (s *fuzzStep) filled(k, v *fuzzValue) {
	s.known = func(c *cases.Case, words func(*fuzzValue) []uint32) {
		c.Caches = []cases.Cache{{Field: "Cache", Config: c.Caches[0].Config, K: floats(words(k)), V: floats(words(v))}}
	}
}

// cached attends to a value through a cache that two appends fill.
func (f *fuzzer) cached(x *fuzzValue) {
	x, k, v, h := f.attended(x)
	keys := k.rows
	a := pass.Attend{Batch: x.batch, Queries: x.rows, Keys: f.index("Keys", x.batch, keys), Causal: f.random.IntN(2) == 0}
	s := f.add(cases.Case{Op: a, Caches: []cases.Cache{h}}, map[string]*fuzzValue{"Q": x}, "O", x.batch, x.rows, x.cols)
	cut := f.random.IntN(keys + 1)
	s.filled(k, v)
	s.first = func(r *fuzzRecord) {
		late := func(v *fuzzValue) pass.View { return r.at(v).At(min(cut, keys-1) * v.view.RowStride) }
		r.p.Do(pass.Append{K: late(k), V: late(v), Cache: s.caches["Cache"], Batch: x.batch, Rows: keys - cut, At: pass.Const(cut)},
			pass.Append{K: r.at(k), V: r.at(v), Cache: s.caches["Cache"], Batch: x.batch, Rows: cut})
	}
}

// decode attends to a value through a cache that grows by some rows a run, from where
// counters on the device say, which then step.
func (f *fuzzer) decode(x *fuzzValue) {
	x, k, v, h := f.attended(x)
	by, items := f.n(3), x.batch
	one := f.random.IntN(2) == 0
	if one {
		items = 1
	}
	most := k.rows - by*f.rounds
	n := f.counters(items, most)
	f.numbers = []*fuzzNumbers{{name: "Keys", words: make([]uint32, items), one: one, at: n.value, now: n.before}}
	a := pass.Attend{Batch: x.batch, Queries: x.rows, Keys: pass.Const(by), Causal: f.random.IntN(2) == 0}
	s := f.add(cases.Case{Op: a, Caches: []cases.Cache{h}}, map[string]*fuzzValue{"Q": x}, "O", x.batch, x.rows, x.cols)
	s.filled(k, v)
	s.first = func(r *fuzzRecord) {
		at := pass.IndexEach(r.at(n.value))
		if one {
			at = pass.IndexIn(r.at(n.value))
		}
		rows := func(v *fuzzValue) pass.View {
			to := r.p.Temp(pass.F32, v.batch*by*v.cols)
			r.p.Do(pass.Copy{From: r.at(v), To: to.View(), Batch: v.batch, Rows: by, Cols: v.cols, FromRow: at, FromRows: v.rows})
			return to.View()
		}
		begin := int(slices.Max(n.value.gather(n.value.held)))
		r.p.Do(pass.Append{K: r.at(k), V: r.at(v), Cache: s.caches["Cache"], Batch: x.batch, Rows: begin},
			pass.Append{K: rows(k), V: rows(v), Cache: s.caches["Cache"], Batch: x.batch, Rows: by, At: at})
	}
	f.advance(n, most, by)
}
