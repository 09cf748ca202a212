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
		match: func(Case) Tolerance { return Tolerance{Match: Bits} },
	}
}

func permuteKind() kind {
	return kind{
		zero:    pass.Permute{},
		outputs: []string{"Y"},
		needs:   []string{"Dims", "Order"},
		list:    permuteEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			return []Tensor{result(op, "Y", truth.Permute(op.Op.(pass.Permute), d.words("X", 0)))}, nil
		},
		match: func(Case) Tolerance { return Tolerance{Match: Bits} },
	}
}

func advanceKind() kind {
	return kind{
		zero:    pass.Advance{},
		outputs: []string{"Index"},
		sizes:   map[string][3]string{"Index": {"", "Batch", ""}, "IDs": {"", "IDRows", ""}},
		list:    advanceEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			a := op.Op.(pass.Advance)
			var ids, done []uint32
			if !a.IDs.IsZero() {
				ids = d.words("IDs", 0)
			}
			if !a.Done.IsZero() {
				done = d.words("Done", 0)
			}
			for b, n := range d.words("Index", a.Batch) {
				if len(a.Stop) > 0 && done[b] == 0 {
					d.within("Index", b, int(n)+a.Plus, a.IDRows-1)
				}
			}
			if d.err != nil {
				return nil, d.err
			}
			index, flags := truth.Advance(a, d.words("Index", a.Batch), ids, done)
			outputs := []Tensor{result(op, "Index", index)}
			if done != nil {
				outputs = append(outputs, result(op, "Done", flags))
			}
			return outputs, nil
		},
		match: func(Case) Tolerance { return Tolerance{Match: Bits} },
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
		match: func(Case) Tolerance { return Tolerance{Match: Bits} },
	}
}

// A copySpec is a Copy case in few words: rows there are on either side, and the index
// of either side: nil for the constant of the op, one number for the batch in a buffer,
// or one for each item.
type copySpec struct {
	op             pass.Copy
	from, to       int
	fromRow, toRow []uint32
	typ            pass.DType
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
		c.setIndex("FromRow", s.fromRow)
		c.setIndex("ToRow", s.toRow)
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
		add("both-each-"+t.String(), copySpec{op: pass.Copy{Batch: 3, Rows: 1, Cols: 9}, from: 4, to: 5, fromRow: []uint32{3, 0, 1}, toRow: []uint32{0, 4, 2}, typ: t})
	}
	add("mixed-index", copySpec{op: pass.Copy{Batch: 2, Rows: 2, Cols: 4}, from: 5, to: 8, fromRow: []uint32{3}, toRow: []uint32{6, 0}})
	add("from-index-plus", copySpec{op: pass.Copy{Batch: 2, Rows: 2, Cols: 4, FromRow: pass.Const(3)}, from: 8, to: 2, fromRow: []uint32{3}})
	add("to-index-plus", copySpec{op: pass.Copy{Batch: 2, Rows: 2, Cols: 4, ToRow: pass.Const(1)}, from: 2, to: 8, toRow: []uint32{5}})
	add("each-plus", copySpec{op: pass.Copy{Batch: 3, Rows: 3, Cols: 5, FromRow: pass.Const(2), ToRow: pass.Const(4)}, from: 9, to: 9, fromRow: []uint32{4, 0, 1}, toRow: []uint32{0, 2, 1}, typ: pass.U32})
	add("no-rows", copySpec{op: pass.Copy{Rows: 0, Cols: 4}, from: 2, to: 2})
	add("no-cols", copySpec{op: pass.Copy{Rows: 2, Cols: 0}, from: 2, to: 2})
	return all
}

func fillEntry(label string, f pass.Fill) Entry {
	name := fmt.Sprintf("fill/%s-%dx%dx%d", label, max(f.Batch, 1), f.Rows, f.Cols)
	return Entry{Name: name, Op: "fill", make: func(string) Case { return Case{Op: f, Outputs: []string{"To"}} }}
}

func fillEntries() []Entry {
	var all []Entry
	add := func(label string, f pass.Fill) { all = append(all, fillEntry(label, f)) }
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

func permuteEntry(label string, dims, order [4]int) Entry {
	name := fmt.Sprintf("permute/%s-%dx%dx%dx%d-%d%d%d%d", label, dims[0], dims[1], dims[2], dims[3], order[0], order[1], order[2], order[3])
	return Entry{Name: name, Op: "permute", make: func(name string) Case {
		x := Tensor{"X", pass.F32, []int{dims[0], dims[1] * dims[2], dims[3]}, garbage(name+"/X", 1, dims[0]*dims[1]*dims[2]*dims[3])}
		return Case{Op: pass.Permute{Dims: dims, Order: order}, Inputs: []Tensor{x}, Outputs: []string{"Y"}}
	}}
}

func permuteEntries() []Entry {
	var all []Entry
	add := func(label string, dims, order [4]int) { all = append(all, permuteEntry(label, dims, order)) }
	orders := [][4]int{
		{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 1, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 3, 2, 1},
		{1, 0, 2, 3}, {1, 2, 3, 0}, {2, 0, 3, 1}, {2, 3, 0, 1}, {3, 0, 1, 2}, {3, 1, 0, 2}, {3, 2, 1, 0},
	}
	e := edges()
	for i, order := range orders {
		add("order", [4]int{2 + i%2, 3, 4, 5 + i%3}, order)
		add("edge", [4]int{1 + i%3, 1, e[i], e[(3*i+5)%len(e)]}, order)
	}
	add("parakeet", [4]int{2, 9, 10, 64}, [4]int{0, 1, 3, 2}) // channel-major, before a Linear
	add("channels-last", [4]int{2, 1, 80, 61}, [4]int{0, 1, 3, 2})
	add("empty", [4]int{2, 0, 3, 4}, [4]int{0, 3, 1, 2})
	return all
}

// An advanceSpec is an Advance case in few words.
type advanceSpec struct {
	op                pass.Advance
	index, ids, stops []uint32 // ids of all items
	done              []uint32
}

func (s advanceSpec) entry(label string) Entry {
	s.op.Batch = len(s.index)
	name := fmt.Sprintf("advance/%s-%d", label, s.op.Batch)
	return Entry{Name: name, Op: "advance", make: func(string) Case {
		s.op.Stop = s.stops
		c := Case{Op: s.op, Outputs: []string{"Index"}, Inputs: []Tensor{U32("Index", s.index, 1, s.op.Batch, 1)}}
		if s.ids != nil {
			c.Inputs = append(c.Inputs, U32("IDs", s.ids, s.op.Batch, s.op.IDRows, 1))
		}
		if s.done != nil {
			c.Inputs = append(c.Inputs, U32("Done", s.done, 1, s.op.Batch, 1))
			c.Outputs = append(c.Outputs, "Done")
		}
		return c
	}}
}

func advanceEntries() []Entry {
	var all []Entry
	add := func(label string, s advanceSpec) { all = append(all, s.entry(label)) }
	ids := []uint32{7, 2, 3, 4, 5, 6, 2, 2, 1, 0, 9, 2}
	add("one", advanceSpec{op: pass.Advance{By: 1}, index: []uint32{41}})
	add("by-3", advanceSpec{op: pass.Advance{By: 3}, index: []uint32{0, 5, 1 << 20}})
	add("by-0", advanceSpec{op: pass.Advance{}, index: []uint32{4, 5}})
	add("done", advanceSpec{op: pass.Advance{By: 2}, index: []uint32{4, 5, 6}, done: []uint32{0, 1, 0}})
	add("stop", advanceSpec{op: pass.Advance{By: 1, IDRows: 4}, index: []uint32{1, 2, 0}, ids: ids, stops: []uint32{2}, done: []uint32{0, 0, 0}})
	add("stop-plus", advanceSpec{op: pass.Advance{By: 1, IDRows: 4, Plus: 1}, index: []uint32{0, 1, 2}, ids: ids, stops: []uint32{2}, done: []uint32{0, 0, 0}})
	add("stop-done", advanceSpec{op: pass.Advance{By: 1, IDRows: 4}, index: []uint32{1, 2, 3}, ids: ids, stops: []uint32{2, 0}, done: []uint32{1, 0, 1}})
	stops := make([]uint32, pass.MaxStop)
	for i := range stops {
		stops[i] = uint32(100 + i)
	}
	stops[pass.MaxStop-1] = 9
	add("many-stops", advanceSpec{op: pass.Advance{By: 1, IDRows: 4}, index: []uint32{0, 0, 2}, ids: ids, stops: stops, done: []uint32{0, 0, 0}})
	add("no-stops", advanceSpec{op: pass.Advance{By: 1, IDRows: 4}, index: []uint32{0, 0, 2}, ids: ids, done: []uint32{0, 0, 0}})
	large := make([]uint32, 129)
	flags := make([]uint32, 129)
	for i := range large {
		large[i], flags[i] = uint32(3*i), uint32(i%5/4)
	}
	add("batch", advanceSpec{op: pass.Advance{By: 1}, index: large, done: flags})
	return all
}
