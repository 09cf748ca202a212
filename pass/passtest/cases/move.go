package cases

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases/truth"
)

func copyKind() kind {
	return kind{
		zero:    pass.Copy{},
		outputs: []string{"To"},
		keeps:   []string{"To"},
		sizes:   map[string][3]string{"From": {"Batch", "FromRows", "Cols"}, "To": {"", "ToRows", ""}},
		needs:   []string{"Rows"},
		element: func(c Case) pass.DType {
			from, _ := find(c.Inputs, "From")
			return from.Type
		},
		list: copyEntries,
		check: func(op pass.Checked, d *data) error {
			copyRows(op.Op.(pass.Copy), d)
			return d.err
		},
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			m := op.Op.(pass.Copy)
			before := d.words("To", m.Batch*m.ToRows*m.Cols)
			fromRow, toRow := copyRows(m, d)
			return []Tensor{result(op, "To", truth.Copy(m, d.words("From", 0), before, fromRow, toRow, m.FromRows, m.ToRows))}, nil
		},
		match: func(pass.Op) Tolerance { return Tolerance{Match: Bits} },
	}
}

func copyRows(m pass.Copy, d *data) (from, to []int) {
	return d.index("FromRow", m.FromRow, m.Batch, m.FromRows-m.Rows), d.index("ToRow", m.ToRow, m.Batch, m.ToRows-m.Rows)
}

func fillKind() kind {
	return kind{
		zero:    pass.Fill{},
		outputs: []string{"To"},
		sizes:   map[string][3]string{"To": {"Batch", "Rows", "Cols"}},
		element: func(c Case) pass.DType {
			if c.Op.(pass.Fill).Word != 0 {
				return pass.U32
			}
			return pass.F32
		},
		list: fillEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			f := op.Op.(pass.Fill)
			words := make([]uint32, f.Batch*f.Rows*f.Cols)
			for i := range words {
				words[i] = f.Word | math.Float32bits(f.Value) // one of them is zero
			}
			return []Tensor{result(op, "To", words)}, nil
		},
		match: func(pass.Op) Tolerance { return Tolerance{Match: Bits} },
	}
}

// A copySpec is a Copy case in few words: rows there are on either side, and the index
// of either side: nil for the constant of the op, one number for the batch in a buffer,
// or one for each item.
type copySpec struct {
	op               pass.Copy
	from, to         int
	fromRow, toRow   []uint32
	fromEach, toEach bool
	typ              pass.DType
}

func (s copySpec) entry(label string) Entry {
	if s.typ == 0 {
		s.typ = pass.F32
	}
	name := fmt.Sprintf("copy/%s-%dx%dx%d", label, max(s.op.Batch, 1), s.op.Rows, s.op.Cols)
	return Entry{Name: name, Op: "copy", make: func(name string) Case {
		batch := max(s.op.Batch, 1)
		op := s.op
		op.FromRows, op.ToRows = s.from, s.to
		tensor := func(field string, rows int) Tensor {
			words := garbage(name+"/"+field, 1, batch*rows*op.Cols)
			return Tensor{field, s.typ, []int{batch, rows, op.Cols}, words}
		}
		c := Case{Op: op, Inputs: []Tensor{tensor("From", s.from), tensor("To", s.to)}, Outputs: []string{"To"}}
		index := func(field string, rows []uint32, each bool) {
			if rows == nil {
				return
			}
			var shape []int
			if each {
				shape = []int{len(rows)}
			}
			c.Inputs = append(c.Inputs, U32(field, rows, shape...))
		}
		index("FromRow", s.fromRow, s.fromEach)
		index("ToRow", s.toRow, s.toEach)
		return c
	}}
}

func copyEntries() []Entry {
	var all []Entry
	add := func(label string, s copySpec) { all = append(all, s.entry(label)) }
	e := edges()
	for i, rows := range e {
		add("edge", copySpec{op: pass.Copy{Batch: i % 3, Rows: rows, Cols: e[(3*i+5)%len(e)]}, from: rows, to: rows})
	}
	for _, t := range []pass.DType{pass.F32, pass.U32} {
		add("rows-"+t.String(), copySpec{op: pass.Copy{Rows: 3, Cols: 5, FromRow: pass.Const(2), ToRow: pass.Const(4)}, from: 6, to: 9, typ: t})
		add("batch-rows-"+t.String(), copySpec{op: pass.Copy{Batch: 3, Rows: 2, Cols: 7, FromRow: pass.Const(1), ToRow: pass.Const(3)}, from: 4, to: 5, typ: t})
		add("from-index-"+t.String(), copySpec{op: pass.Copy{Batch: 2, Rows: 2, Cols: 3}, from: 7, to: 3, fromRow: []uint32{5}, typ: t})
		add("to-index-"+t.String(), copySpec{op: pass.Copy{Batch: 2, Rows: 2, Cols: 3, FromRow: pass.Const(1)}, from: 3, to: 6, toRow: []uint32{4}, typ: t})
		add("both-each-"+t.String(), copySpec{op: pass.Copy{Batch: 3, Rows: 1, Cols: 9}, from: 4, to: 5, fromRow: []uint32{3, 0, 1}, toRow: []uint32{0, 4, 2}, fromEach: true, toEach: true, typ: t})
	}
	add("mixed-index", copySpec{op: pass.Copy{Batch: 2, Rows: 2, Cols: 4}, from: 5, to: 8, fromRow: []uint32{3}, toRow: []uint32{6, 0}, toEach: true})
	add("no-rows", copySpec{op: pass.Copy{Rows: 0, Cols: 4}, from: 2, to: 2})
	add("no-cols", copySpec{op: pass.Copy{Rows: 2, Cols: 0}, from: 2, to: 2})
	return all
}

func fillEntries() []Entry {
	var all []Entry
	add := func(label string, f pass.Fill) {
		name := fmt.Sprintf("fill/%s-%dx%dx%d", label, max(f.Batch, 1), f.Rows, f.Cols)
		all = append(all, Entry{Name: name, Op: "fill", make: func(string) Case { return Case{Op: f, Outputs: []string{"To"}} }})
	}
	e := edges()
	for i, rows := range e {
		add("edge", pass.Fill{Batch: i % 3, Rows: rows, Cols: e[(5*i+4)%len(e)], Value: 1.25})
	}
	add("zero", pass.Fill{Rows: 3, Cols: 5})
	add("negative-zero", pass.Fill{Rows: 3, Cols: 5, Value: float32(math.Copysign(0, -1))})
	add("infinity", pass.Fill{Batch: 2, Rows: 3, Cols: 5, Value: float32(math.Inf(-1))})
	add("word", pass.Fill{Batch: 2, Rows: 3, Cols: 5, Word: 0xDEADBEEF})
	add("no-rows", pass.Fill{Rows: 0, Cols: 5, Value: 1})
	add("no-cols", pass.Fill{Rows: 3, Cols: 0, Value: 1})
	return all
}
