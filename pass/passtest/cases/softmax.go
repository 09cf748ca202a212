package cases

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases/truth"
)

func softmaxKind() kind {
	return kind{
		zero:    pass.Softmax{},
		outputs: []string{"Y"},
		sizes:   map[string][3]string{"X": {"Batch", "Rows", "Cols"}},
		list:    softmaxEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			return []Tensor{result(op, "Y", rounded(truth.Softmax(d.values("X"), op.Op.(pass.Softmax).Cols)))}, nil
		},
		match: func(Case) Tolerance { return ExactTolerance },
	}
}

func logSoftmaxKind() kind {
	return kind{
		zero:    pass.LogSoftmax{},
		outputs: []string{"Y"},
		sizes:   map[string][3]string{"X": {"Batch", "Rows", "Cols"}},
		list:    logSoftmaxEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			return []Tensor{result(op, "Y", rounded(truth.LogSoftmax(d.values("X"), op.Op.(pass.LogSoftmax).Cols)))}, nil
		},
		match: func(Case) Tolerance { return ExactTolerance },
	}
}

func argmaxKind() kind {
	return kind{
		zero:    pass.Argmax{},
		outputs: []string{"IDs"},
		keeps:   []string{"IDs"},
		sizes:   map[string][3]string{"X": {"Batch", "Rows", "Cols"}, "IDs": {"", "IDRows", ""}},
		element: func(Case) pass.DType { return pass.U32 },
		list:    argmaxEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			a := op.Op.(pass.Argmax)
			before := d.words("IDs", a.Batch*a.IDRows)
			ids := truth.Argmax(a, d.values("X"), before, d.index("ToRow", a.ToRow, a.Batch, a.IDRows-a.Rows))
			return []Tensor{result(op, "IDs", ids)}, nil
		},
		match: func(Case) Tolerance { return Tolerance{Match: Bits} },
	}
}

// softened lists rows at which naive formulas fail, for softmax and its logarithm.
func softened(add func(label string, s rowSpec)) {
	e := edges()
	for i, cols := range e {
		add("edge", rowSpec{batch: i % 3, rows: 1 + 2*i, cols: cols})
	}
	inf := float32(math.Inf(-1))
	add("one-column", rowSpec{rows: 3, cols: 1})
	add("classes", rowSpec{batch: 2, rows: 2, cols: 1025})
	add("powerset", rowSpec{batch: 2, rows: 30, cols: 7})
	add("large", rowSpec{rows: 4, cols: 33, values: scaled(1e4, 0)})
	add("offset", rowSpec{rows: 4, cols: 33, values: scaled(4, 1e4)})
	add("minus-infinity", rowSpec{rows: 4, cols: 5, values: special(1, inf, 2, inf, -3, 0.5, 0.25)})
	add("masked-rows", rowSpec{rows: 4, cols: 5, values: special(inf, inf, inf, inf, inf, 1, 2, inf, 3, 4)})
	add("equal", rowSpec{rows: 2, cols: 100, values: special(-7.5)})
	add("far-apart", rowSpec{rows: 2, cols: 9, values: special(3e38, -3e38, 0)})
	add("nan", rowSpec{rows: 5, cols: 9, special: putNaN(11, 44)})
	add("nan-beside-infinity", rowSpec{rows: 2, cols: 3, values: special(inf, float32(math.NaN()), inf, inf, inf, inf)})
	add("no-rows", rowSpec{cols: 7})
}

func softmaxEntries() []Entry {
	var all []Entry
	softened(func(label string, s rowSpec) {
		s.op = pass.Softmax{Batch: s.batch, Rows: s.rows, Cols: s.cols}
		all = append(all, s.entry(label))
	})
	return all
}

func logSoftmaxEntries() []Entry {
	var all []Entry
	softened(func(label string, s rowSpec) {
		s.op = pass.LogSoftmax{Batch: s.batch, Rows: s.rows, Cols: s.cols}
		all = append(all, s.entry(label))
	})
	return all
}

// An argmaxSpec is an Argmax case in few words.
type argmaxSpec struct {
	op     pass.Argmax
	toRow  []uint32 // nil for the constant of the op
	values func(string, int) []float32
}

func (s argmaxSpec) entry(label string) Entry {
	batch := max(s.op.Batch, 1)
	name := fmt.Sprintf("argmax/%s-%dx%dx%d", label, batch, s.op.Rows, s.op.Cols)
	return Entry{Name: name, Op: "argmax", make: func(name string) Case {
		values := s.values
		if values == nil {
			values = usual
		}
		c := Case{Op: s.op, Outputs: []string{"IDs"}}
		c.Inputs = []Tensor{F32("X", values(name+"/X", batch*s.op.Rows*s.op.Cols), batch, s.op.Rows, s.op.Cols)}
		if s.op.IDRows > 0 {
			c.Inputs = append(c.Inputs, U32("IDs", RecipeWords(name+"/IDs", 1, batch*s.op.IDRows), batch, s.op.IDRows, 1))
		}
		c.setIndex("ToRow", s.toRow)
		return c
	}}
}

func argmaxEntries() []Entry {
	var all []Entry
	add := func(label string, s argmaxSpec) { all = append(all, s.entry(label)) }
	e := edges()
	for i, cols := range e {
		add("edge", argmaxSpec{op: pass.Argmax{Batch: i % 3, Rows: 1 + 2*i, Cols: cols}})
	}
	inf, none := float32(math.Inf(1)), float32(math.NaN())
	add("vocabulary", argmaxSpec{op: pass.Argmax{Batch: 2, Rows: 1, Cols: 32768}})
	add("ties", argmaxSpec{op: pass.Argmax{Rows: 5, Cols: 300}, values: special(1, 3, 2, 3, 0, 3, -1)})
	add("equal", argmaxSpec{op: pass.Argmax{Rows: 2, Cols: 1000}, values: special(-2)})
	add("zeros", argmaxSpec{op: pass.Argmax{Rows: 3, Cols: 2}, values: special(float32(math.Copysign(0, -1)), 0, 0)})
	add("nan", argmaxSpec{op: pass.Argmax{Rows: 4, Cols: 9}, values: special(none, -5, none, -4, none)})
	add("all-nan", argmaxSpec{op: pass.Argmax{Rows: 2, Cols: 70}, values: special(none)})
	add("nan-and-infinity", argmaxSpec{op: pass.Argmax{Rows: 3, Cols: 4}, values: special(none, -inf, none, -inf, -inf)})
	add("infinity", argmaxSpec{op: pass.Argmax{Rows: 3, Cols: 5}, values: special(3e38, -inf, inf, inf)})
	add("close", argmaxSpec{op: pass.Argmax{Rows: 3, Cols: 200}, values: scaled(1e-6, 1)})
	add("to-row", argmaxSpec{op: pass.Argmax{Batch: 2, Rows: 3, Cols: 5, ToRow: pass.Const(2), IDRows: 7}})
	add("index", argmaxSpec{op: pass.Argmax{Batch: 2, Rows: 2, Cols: 5, IDRows: 9}, toRow: []uint32{7}})
	add("index-each", argmaxSpec{op: pass.Argmax{Batch: 3, Rows: 1, Cols: 5, IDRows: 9}, toRow: []uint32{8, 0, 3}})
	add("index-plus", argmaxSpec{op: pass.Argmax{Batch: 3, Rows: 2, Cols: 5, IDRows: 9, ToRow: pass.Const(3)}, toRow: []uint32{4, 0, 3}})
	add("no-rows", argmaxSpec{op: pass.Argmax{Cols: 5}})
	return all
}
