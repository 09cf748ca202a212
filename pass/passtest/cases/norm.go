package cases

import (
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases/truth"
)

func layerNormKind() kind {
	return kind{
		zero:    pass.LayerNorm{},
		outputs: []string{"Y"},
		sizes:   map[string][3]string{"X": {"Batch", "Rows", "Cols"}},
		weights: func(w *weightReader) (pass.Weights, error) {
			if w.field == "Table" {
				return w.rope()
			}
			return w.norm()
		},
		spare: []string{"Table"},
		list:  layerNormEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			l := op.Op.(pass.LayerNorm)
			y := truth.LayerNorm(l, d.norm("W"), d.values("X"))
			outputs := []Tensor{result(op, "Y", rounded(y))}
			if !l.Rotated.IsZero() {
				table := d.weights("Table").(pass.RopeWeights)
				turned := truth.Turn(table, pass.RopeHalves, y, l.Rows, l.Heads, l.Cols/l.Heads, d.index("Pos", l.Pos, l.Batch, table.Positions-l.Rows))
				outputs = append(outputs, result(op, "Rotated", rounded(turned)))
			}
			return outputs, d.err
		},
		match: func(Case) Tolerance { return ExactTolerance },
	}
}

func groupNormKind() kind {
	return kind{
		zero:    pass.GroupNorm{},
		outputs: []string{"Y"},
		sizes:   map[string][3]string{"X": {"Batch", "Rows", "Cols"}},
		weights: (*weightReader).norm,
		list:    groupNormEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			g := op.Op.(pass.GroupNorm)
			y := truth.GroupNorm(g, d.norm("W"), d.values("X"), d.lengths(g.Lengths, g.Batch, g.Rows))
			return []Tensor{result(op, "Y", rounded(y))}, d.err
		},
		match: func(Case) Tolerance { return ExactTolerance },
	}
}

func poolNormKind() kind {
	return kind{
		zero:    pass.PoolNorm{},
		outputs: []string{"Y"},
		sizes:   map[string][3]string{"X": {"Batch", "Rows", "Cols"}},
		weights: (*weightReader).norm,
		list:    poolNormEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			p := op.Op.(pass.PoolNorm)
			y := truth.PoolNorm(p, d.norm("W"), d.values("X"), d.lengths(p.Lengths, p.Batch, p.Rows))
			return []Tensor{result(op, "Y", rounded(y))}, d.err
		},
		match: func(Case) Tolerance { return ExactTolerance },
	}
}

func l2NormKind() kind {
	return kind{
		zero:    pass.L2Norm{},
		outputs: []string{"Y"},
		sizes:   map[string][3]string{"X": {"Batch", "Rows", "Cols"}},
		list:    l2NormEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			return []Tensor{result(op, "Y", rounded(truth.L2Norm(op.Op.(pass.L2Norm), d.values("X"))))}, nil
		},
		match: func(Case) Tolerance { return ExactTolerance },
	}
}

// norm returns the weights of a field in float64.
func (d *data) norm(field string) truth.Norm {
	w := d.weights(field).(pass.NormWeights)
	return truth.Norm{Gain: widen(w.Gain), Bias: widen(w.Bias)}
}

// normParam makes gain and bias of n channels.
func normParam(n int, bias bool) func(string) []Param {
	return func(name string) []Param {
		w := pass.NormWeights{Name: name, Gain: Recipe(name+"/W.gain", 1, n, 0.5, 1)}
		if bias {
			w.Bias = Recipe(name+"/W.bias", 1, n, 1, 0)
		}
		return []Param{{"W", w}}
	}
}

func layerNormEntries() []Entry {
	var all []Entry
	add := func(label string, s rowSpec, bias bool) {
		op, _ := s.op.(pass.LayerNorm)
		op.Batch, op.Rows, op.Cols = s.batch, s.rows, s.cols
		s.op, s.params = op, normParam(s.cols, bias)
		all = append(all, s.entry(label))
	}
	e := edges()
	for i, rows := range e { // rows of several sizes; columns run apart
		add("edge", rowSpec{batch: i % 3, rows: min(rows, 33), cols: e[(5*i+4)%len(e)], inPlace: i%2 == 1}, i%3 != 0)
	}
	add("one-column", rowSpec{rows: 3, cols: 1}, true)
	add("offset", rowSpec{rows: 5, cols: 192, values: scaled(1, 1e4)}, true)
	add("offset-negative", rowSpec{rows: 5, cols: 65, values: scaled(0.5, -1e4), inPlace: true}, false)
	add("constant", rowSpec{rows: 3, cols: 48, values: special(3.7)}, true)
	add("small", rowSpec{rows: 3, cols: 48, values: scaled(1e-4, 0)}, true)
	add("large", rowSpec{rows: 3, cols: 48, values: scaled(1e15, 0)}, true)
	add("eps", rowSpec{op: pass.LayerNorm{Eps: 0.25}, rows: 4, cols: 20}, true)
	add("nan", rowSpec{rows: 5, cols: 33, special: putNaN(33+4, 4*33+32)}, true)
	add("whisper", rowSpec{batch: 2, rows: 3, cols: 1280}, true)
	add("moonshine", rowSpec{batch: 2, rows: 1, cols: 288}, false)
	add("no-rows", rowSpec{cols: 7}, true)
	rotated := func(label string, op pass.LayerNorm, rot int, pos ...uint32) {
		op.Batch, op.Rows = max(op.Batch, 1), max(op.Rows, 1)
		s := rowSpec{op: op, batch: op.Batch, rows: op.Rows, cols: op.Cols}
		s.params = func(name string) []Param {
			return append(normParam(op.Cols, true)(name), Param{"Table", pass.RopeWeights{Name: name, Positions: 300, Rot: rot, Base: 5000}})
		}
		s.special = func(c *Case) {
			c.Outputs = append(c.Outputs, "Rotated")
			c.setIndex("Pos", pos)
		}
		all = append(all, s.entry("rotated-"+label))
	}
	rotated("gigaam", pass.LayerNorm{Batch: 2, Rows: 5, Cols: 768, Heads: 16}, 48)
	rotated("part", pass.LayerNorm{Rows: 9, Cols: 108, Heads: 3, Pos: pass.Const(250)}, 32)
	rotated("index", pass.LayerNorm{Batch: 3, Rows: 4, Cols: 40, Heads: 5, Pos: pass.Const(2)}, 8, 17)
	rotated("each", pass.LayerNorm{Batch: 3, Rows: 4, Cols: 42, Heads: 3}, 14, 3, 0, 296)
	return all
}

func groupNormEntries() []Entry {
	var all []Entry
	add := func(label string, s rowSpec, bias bool) {
		op, _ := s.op.(pass.GroupNorm)
		op.Batch, op.Rows, op.Cols = s.batch, s.rows, s.cols
		s.op, s.params = op, normParam(s.cols, bias)
		all = append(all, s.entry(label))
	}
	e := edges()
	for i, rows := range e {
		add("edge", rowSpec{batch: i % 3, rows: rows, cols: e[(3*i+1)%10], inPlace: i%2 == 1}, i%3 != 0)
	}
	add("moonshine", rowSpec{batch: 2, rows: 91, cols: 288, values: scaled(0.5, 0.1)}, true)
	add("offset", rowSpec{rows: 20, cols: 17, values: scaled(1, 100)}, true)
	add("silence", rowSpec{rows: 9, cols: 17, values: special(0)}, true)
	add("eps", rowSpec{op: pass.GroupNorm{Eps: 0.25}, rows: 4, cols: 20}, true)
	add("nan-item", rowSpec{batch: 3, rows: 5, cols: 9, special: putNaN(5*9 + 7)}, true)
	add("no-rows", rowSpec{cols: 7}, true)
	for _, onDevice := range []bool{false, true} {
		for _, inPlace := range []bool{false, true} {
			label := map[bool]string{true: "-in-place"}[inPlace]
			add("lengths"+label+whereLabel(onDevice), rowSpec{batch: 4, rows: 12, cols: 10, inPlace: inPlace, lengths: []int{12, 0, 1, 7}, onDevice: onDevice}, true)
		}
	}
	return all
}

func poolNormEntries() []Entry {
	var all []Entry
	add := func(label string, s rowSpec, bias bool) {
		op, _ := s.op.(pass.PoolNorm)
		op.Batch, op.Rows, op.Cols = s.batch, s.rows, s.cols
		s.op, s.params = op, normParam(s.cols, bias)
		all = append(all, s.entry(label))
	}
	e := edges()
	for i, rows := range e {
		op := pass.PoolNorm{Pool: 1 + i%4, Abs: i%2 == 1}
		if i%3 == 0 {
			op.Epilogue = pass.Leaky(0.01)
		}
		add("edge", rowSpec{op: op, batch: i % 3, rows: max(rows, 2*op.Pool), cols: e[(5*i+3)%10]}, i%3 != 2)
	}
	add("waveform", rowSpec{batch: 2, rows: 2500, cols: 1, values: scaled(0.1, 0.01)}, true)
	add("segmentation", rowSpec{op: pass.PoolNorm{Abs: true, Pool: 3, Epilogue: pass.Leaky(0.01)}, batch: 2, rows: 200, cols: 80}, true)
	add("one-row", rowSpec{op: pass.PoolNorm{Pool: 3}, rows: 5, cols: 6}, true)
	add("shorter-than-pool", rowSpec{op: pass.PoolNorm{Pool: 9}, rows: 5, cols: 6}, true)
	add("silence", rowSpec{rows: 9, cols: 3, values: special(0)}, true)
	add("offset", rowSpec{rows: 40, cols: 5, values: scaled(1, 100)}, true)
	add("eps", rowSpec{op: pass.PoolNorm{Eps: 0.25, Pool: 2}, rows: 14, cols: 20}, true)
	add("nan-ignored", rowSpec{op: pass.PoolNorm{Pool: 3, Abs: true}, rows: 12, cols: 5, special: putNaN(2, 5*4+3, 5*5+3)}, true)
	add("nan-channel", rowSpec{batch: 2, rows: 12, cols: 5, special: putNaN(5*4 + 3)}, true)
	add("no-rows", rowSpec{cols: 7}, true)
	for _, onDevice := range []bool{false, true} {
		op := pass.PoolNorm{Abs: true, Pool: 2, Epilogue: pass.Leaky(0.125)}
		add("lengths"+whereLabel(onDevice), rowSpec{op: op, batch: 5, rows: 12, cols: 10, lengths: []int{12, 0, 1, 7, 4}, onDevice: onDevice}, true)
	}
	return all
}

func l2NormEntries() []Entry {
	var all []Entry
	add := func(label string, s rowSpec) {
		op, _ := s.op.(pass.L2Norm)
		op.Batch, op.Rows, op.Cols = s.batch, s.rows, s.cols
		s.op = op
		all = append(all, s.entry(label))
	}
	e := edges()
	for i, cols := range e {
		add("edge", rowSpec{batch: i % 3, rows: 1 + i, cols: cols})
	}
	add("embedding", rowSpec{batch: 2, rows: 3, cols: 256})
	add("huge", rowSpec{rows: 3, cols: 40, values: scaled(1e30, 0)})
	add("largest", rowSpec{rows: 3, cols: 40, values: special(3e38, -3e38)})
	add("tiny", rowSpec{op: pass.L2Norm{Eps: 1e-37}, rows: 3, cols: 40, values: scaled(1e-30, 0)})
	add("under-eps", rowSpec{rows: 3, cols: 40, values: scaled(1e-13, 0)})
	add("mixed", rowSpec{rows: 2, cols: 5, values: special(1e30, 1e-30, 0, -2e30, 1)})
	add("zero", rowSpec{rows: 3, cols: 8, values: special(0)})
	add("eps", rowSpec{op: pass.L2Norm{Eps: 100}, rows: 3, cols: 8})
	add("nan", rowSpec{rows: 5, cols: 9, special: putNaN(11, 44)})
	add("no-rows", rowSpec{cols: 7})
	return all
}
