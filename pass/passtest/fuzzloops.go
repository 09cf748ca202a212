package passtest

import (
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// rope turns a copy of a value.
func (f *fuzzer) rope(x *fuzzValue) {
	if x.cols < 2 {
		x = f.fresh(x.batch, x.rows, 8)
	}
	rot := 2 * f.n(min(x.cols/2, 8))
	dim := rot + f.random.IntN(x.cols-rot+1)
	heads := x.cols / dim
	if heads*dim != x.cols {
		x = f.fresh(x.batch, x.rows, heads*dim)
	}
	r := pass.Rope{Batch: x.batch, Rows: x.rows, Heads: heads, HeadDim: dim, Pos: pass.Const(f.random.IntN(50)), Style: pass.RopeStyle(f.random.IntN(2))}
	table := cases.Param{Field: "Table", Weights: pass.RopeWeights{Positions: 60 + x.rows, Rot: rot, Base: 1000}}
	f.add(cases.Case{Op: r, Params: []cases.Param{table}}, nil, "X", x.batch, x.rows, x.cols).inPlace(x, "X")
}

// residual adds a product to a copy of a value.
func (f *fuzzer) residual(x *fuzzValue) {
	n := f.n(40)
	g := pass.Gemm{Batch: x.batch, Rows: x.rows, Epilogue: pass.Residual(0.5)}
	if f.random.IntN(2) == 0 {
		g.Epilogue = pass.GELUResidual
	}
	before := f.like(x, x.batch, x.rows, n)
	w := pass.LinearWeights{Parts: []pass.Tensor{f.matrix("w", x.cols, n, x.cols)}, Bias: f.bias(n)}
	f.add(cases.Case{Op: g, Params: []cases.Param{{Field: "W", Weights: w}}}, map[string]*fuzzValue{"A": x}, "C", x.batch, x.rows, n).inPlace(before, "C")
}

// cached attends to a value through a cache that two appends fill.
func (f *fuzzer) cached(x *fuzzValue) {
	dim := 4 * f.n(3)
	heads := max(1, x.cols/dim)
	if heads*dim != x.cols {
		x = f.fresh(x.batch, x.rows, heads*dim)
	}
	keys := f.n(25)
	k, v := f.like(x, x.batch, keys, x.cols), f.fresh(x.batch, keys, x.cols)
	g := pass.CacheConfig{Heads: heads, HeadDim: dim, Capacity: keys, Batch: x.batch, Type: pass.F32}
	used := f.random.IntN(keys + 1)
	a := pass.Attend{Batch: x.batch, Queries: x.rows, Keys: pass.Const(used), Causal: f.random.IntN(2) == 0}
	empty := make([]float32, x.batch*keys*x.cols)
	c := cases.Case{Op: a, Caches: []cases.Cache{{Field: "Cache", Config: g, K: empty, V: empty}}}
	s := f.add(c, map[string]*fuzzValue{"Q": x}, "O", x.batch, x.rows, x.cols)
	cut := f.random.IntN(keys + 1)
	s.first = func(p pass.Pass, at func(*fuzzValue) pass.View, _ map[string]pass.View) {
		late := func(v *fuzzValue) pass.View { return at(v).At(min(cut, keys-1) * v.view.RowStride) }
		p.Do(pass.Append{K: late(k), V: late(v), Cache: s.caches["Cache"], Batch: x.batch, Rows: keys - cut, At: pass.Const(cut)},
			pass.Append{K: at(k), V: at(v), Cache: s.caches["Cache"], Batch: x.batch, Rows: cut})
	}
	s.known = func(c *cases.Case, words func(*fuzzValue) []uint32) {
		c.Caches[0].K, c.Caches[0].V = floats(words(k)), floats(words(v))
	}
}

// lookup takes the largest of each row, and for it a row of a table.
func (f *fuzzer) lookup(x *fuzzValue) {
	n := f.n(30)
	best := pass.Argmax{Batch: x.batch, Rows: x.rows, Cols: x.cols}
	e := pass.Embed{Batch: x.batch, Rows: x.rows, IDRows: x.rows}
	params := []cases.Param{{Field: "Table", Weights: pass.LinearWeights{Parts: []pass.Tensor{f.matrix("table", n, x.cols, n)}}}}
	if f.random.IntN(2) == 0 {
		e.Pos = pass.Const(f.random.IntN(9))
		params = append(params, cases.Param{Field: "Positions", Weights: pass.LinearWeights{Parts: []pass.Tensor{f.matrix("positions", n, x.rows+9, n)}}})
	}
	s := f.add(cases.Case{Op: e, Params: params}, nil, "Out", x.batch, x.rows, n)
	s.first = func(p pass.Pass, at func(*fuzzValue) pass.View, views map[string]pass.View) {
		ids := p.Temp(pass.U32, x.batch*x.rows)
		a := best
		a.X, a.IDs = at(x), ids.View()
		p.Do(a)
		views["IDs"] = ids.View()
	}
	s.known = func(c *cases.Case, words func(*fuzzValue) []uint32) {
		argmax := cases.Case{Name: "argmax", Op: best, Outputs: []string{"IDs"}, Inputs: []cases.Tensor{{Name: "X", Type: pass.F32, Shape: []int{x.batch, x.rows, x.cols}, Words: words(x)}}}
		ids, err := argmax.Want()
		ok(f, err, f.what+": truth of argmax")
		c.Inputs = append(c.Inputs, ids[0])
	}
}

// stats pools a value as an image of one line.
func (f *fuzzer) stats(x *fuzzValue) {
	s := pass.StatsPool{Batch: x.batch, Height: 1, Width: x.rows, Channels: x.cols, Count: f.n(3), Frames: f.n(30)}
	masks := f.spread(x.batch, s.Count, s.Frames, 0.5, 0.5)
	f.add(cases.Case{Op: s}, map[string]*fuzzValue{"X": x, "Masks": masks}, "Y", x.batch, s.Count, 2*x.cols)
}

// copied copies some rows over a copy of another value.
func (f *fuzzer) copied(x *fuzzValue) {
	y := f.like(x, x.batch, f.n(20), x.cols)
	rows := f.n(min(x.rows, y.rows))
	m := pass.Copy{Batch: x.batch, Rows: rows, Cols: x.cols, FromRows: x.rows, ToRows: y.rows,
		FromRow: pass.Const(f.random.IntN(x.rows - rows + 1)), ToRow: pass.Const(f.random.IntN(y.rows - rows + 1))}
	f.add(cases.Case{Op: m}, map[string]*fuzzValue{"From": x}, "To", x.batch, y.rows, x.cols).inPlace(y, "To")
}
