package passtest

import (
	"slices"

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
	r := pass.Rope{Batch: x.batch, Rows: x.rows, Heads: heads, HeadDim: dim, Pos: f.index("Pos", x.batch, 50), Style: pass.RopeStyle(f.random.IntN(2))}
	table := cases.Param{Field: "Table", Weights: pass.RopeWeights{Positions: 60 + x.rows, Rot: rot, Base: 1000}}
	s := f.add(cases.Case{Op: r, Params: []cases.Param{table}}, nil, "X", x.batch, x.rows, x.cols)
	f.update(s, 0, x, "X")
}

// layerNorm normalises a value, in place or not, and turns the result besides or does not.
func (f *fuzzer) layerNorm(x *fuzzValue) {
	l := pass.LayerNorm{Batch: x.batch, Rows: x.rows, Cols: x.cols, Eps: 0.01}
	params, names := []cases.Param{f.norm(x.cols)}, []string{"Y"}
	outs := []*fuzzValue{f.value(pass.F32, x.batch, x.rows, x.cols)}
	if f.random.IntN(2) == 0 && x.cols > 1 {
		l.Heads = 1
		if x.cols%4 == 0 {
			l.Heads = 2
		}
		rot := 2 * f.n(x.cols/l.Heads/2)
		l.Pos = f.index("Pos", x.batch, 20)
		params = append(params, cases.Param{Field: "Table", Weights: pass.RopeWeights{Positions: 20 + x.rows, Rot: rot, Base: 1000}})
		names, outs = append(names, "Rotated"), append(outs, f.value(pass.F32, x.batch, x.rows, x.cols))
	}
	c := cases.Case{Op: l, Params: params}
	if f.random.IntN(2) == 0 {
		f.addAll(c, map[string]*fuzzValue{"X": x}, names, outs...)
		return
	}
	f.update(f.addAll(c, nil, names, outs...), 0, x, "X")
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
	s := f.add(cases.Case{Op: g, Params: []cases.Param{{Field: "W", Weights: w}}}, map[string]*fuzzValue{"A": x}, "C", x.batch, x.rows, n)
	f.update(s, 0, before, "C")
}

// lookup takes the largest of each row, and for it a row of a table.
func (f *fuzzer) lookup(x *fuzzValue) {
	n, more := f.n(30), f.random.IntN(5)
	held := x.rows + more
	best := pass.Argmax{Batch: x.batch, Rows: x.rows, Cols: x.cols, IDRows: held, ToRow: f.index("ToRow", x.batch, more)}
	// Both have the same index: an id that is not where it should be is not found.
	e := pass.Embed{Batch: x.batch, Rows: x.rows, IDRows: held, IDRow: best.ToRow}
	found := slices.Clone(f.numbers)
	before := f.words(x.batch, held, 1<<30)
	s := f.addAll(cases.Case{Op: best}, map[string]*fuzzValue{"X": x}, []string{"IDs"}, f.value(pass.U32, x.batch, held, 1))
	f.update(s, 0, before, "IDs")
	for _, number := range found {
		again := *number
		again.name = "IDRow"
		f.numbers = append(f.numbers, &again)
	}
	params := []cases.Param{{Field: "Table", Weights: pass.LinearWeights{Parts: []pass.Tensor{f.matrix("table", n, x.cols, n)}}}}
	if f.random.IntN(2) == 0 {
		e.Pos = f.index("Pos", x.batch, 9)
		params = append(params, cases.Param{Field: "Positions", Weights: pass.LinearWeights{Parts: []pass.Tensor{f.matrix("positions", n, x.rows+9, n)}}})
	}
	f.add(cases.Case{Op: e, Params: params}, map[string]*fuzzValue{"IDs": s.outs[0]}, "Out", x.batch, x.rows, n)
}

// stats pools a value as an image of one line.
func (f *fuzzer) stats(x *fuzzValue) {
	s := pass.StatsPool{Batch: x.batch, Height: 1, Width: x.rows, Channels: x.cols, Count: f.n(3), Frames: f.n(30)}
	masks := f.spread(x.batch, s.Count, s.Frames, 0.5, 0.5)
	f.add(cases.Case{Op: s}, map[string]*fuzzValue{"X": x, "Masks": masks}, "Y", x.batch, s.Count, 2*x.cols)
}

// copied copies some rows over a copy of another value, of numbers or of words.
func (f *fuzzer) copied(x *fuzzValue) {
	y := f.like(x, x.batch, f.n(20), x.cols)
	if f.random.IntN(4) == 0 {
		x, y = f.words(x.batch, x.rows, 1<<30), f.words(x.batch, y.rows, 1<<30)
	}
	rows := f.n(min(x.rows, y.rows))
	m := pass.Copy{Batch: x.batch, Rows: rows, Cols: x.cols, FromRows: x.rows, ToRows: y.rows,
		FromRow: f.index("FromRow", x.batch, x.rows-rows), ToRow: f.index("ToRow", x.batch, y.rows-rows)}
	s := f.addAll(cases.Case{Op: m}, map[string]*fuzzValue{"From": x}, []string{"To"}, f.value(y.typ, x.batch, y.rows, x.cols))
	f.update(s, 0, y, "To")
}
