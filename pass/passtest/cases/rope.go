package cases

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases/truth"
)

func ropeKind() kind {
	return kind{
		zero:    pass.Rope{},
		outputs: []string{"X"},
		sizes:   map[string][3]string{"X": {"Batch", "Rows", ""}},
		needs:   []string{"Heads", "HeadDim"},
		weights: (*weightReader).rope,
		list:    ropeEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			r := op.Op.(pass.Rope)
			table := d.weights("Table").(pass.RopeWeights)
			y := truth.Turn(table, r.Style, d.values("X"), r.Rows, r.Heads, r.HeadDim, d.index("Pos", r.Pos, r.Batch, table.Positions-r.Rows))
			return []Tensor{result(op, "X", rounded(y))}, nil
		},
		match: func(Case) Tolerance { return ExactTolerance },
	}
}

// ropeEntry makes a case of Rope. Positions are none for the constant of the op, one for
// the batch, or one for each item.
func ropeEntry(label string, r pass.Rope, table pass.RopeWeights, pos ...uint32) Entry {
	batch := max(r.Batch, 1)
	name := fmt.Sprintf("rope/%s-%v-%dx%dx%dx%d-rot%d", label, r.Style, batch, r.Rows, r.Heads, r.HeadDim, table.Rot)
	return Entry{Name: name, Op: "rope", make: func(name string) Case {
		width := r.Heads * r.HeadDim
		table.Name = name
		c := Case{Op: r, Outputs: []string{"X"}, Params: []Param{{"Table", table}}}
		c.Inputs = []Tensor{F32("X", Recipe(name+"/X", 1, batch*r.Rows*width, 2, 0), batch, r.Rows, width)}
		c.setIndex("Pos", pos)
		return c
	}}
}

func ropeEntries() []Entry {
	var all []Entry
	add := func(label string, r pass.Rope, table pass.RopeWeights, pos ...uint32) {
		all = append(all, ropeEntry(label, r, table, pos...))
	}
	for i, rows := range []int{1, 7, 8, 17, 33, 65} {
		table := pass.RopeWeights{Positions: 200, Rot: 2 + 6*i, Base: 10000}
		add("edge", pass.Rope{Batch: i % 3, Rows: rows, Heads: 1 + i%4, HeadDim: table.Rot + 3*(i%2), Pos: pass.Const(3 * i), Style: pass.RopeStyle(i % 2)}, table)
	}
	for _, style := range []pass.RopeStyle{pass.RopeHalves, pass.RopeInterleaved} {
		table := pass.RopeWeights{Positions: 300, Rot: 32, Base: 10000}
		add("moonshine-tiny", pass.Rope{Batch: 2, Rows: 5, Heads: 16, HeadDim: 36, Style: style}, table)
		add("moonshine-base", pass.Rope{Rows: 3, Heads: 16, HeadDim: 52, Style: style}, table)
		add("gigaam", pass.Rope{Rows: 5, Heads: 16, HeadDim: 48, Style: style}, pass.RopeWeights{Positions: 64, Rot: 48, Base: 5000})
		add("index", pass.Rope{Batch: 3, Rows: 2, Heads: 3, HeadDim: 12, Style: style}, pass.RopeWeights{Positions: 90, Rot: 8, Base: 100}, 88)
		add("index-each", pass.Rope{Batch: 3, Rows: 2, Heads: 3, HeadDim: 12, Style: style}, pass.RopeWeights{Positions: 90, Rot: 8, Base: 100}, 0, 88, 31)
		add("index-plus", pass.Rope{Batch: 2, Rows: 4, Heads: 3, HeadDim: 12, Style: style, Pos: pass.Const(5)}, pass.RopeWeights{Positions: 90, Rot: 12, Base: 100}, 7, 81)
		add("far", pass.Rope{Rows: 3, Heads: 2, HeadDim: 8, Style: style, Pos: pass.Const(99_990)}, pass.RopeWeights{Positions: 100_000, Rot: 8, Base: 10000})
	}
	add("no-heads", pass.Rope{Rows: 3, HeadDim: 8}, pass.RopeWeights{Positions: 9, Rot: 8, Base: 10})
	add("no-rows", pass.Rope{Heads: 2, HeadDim: 8}, pass.RopeWeights{Positions: 9, Rot: 8, Base: 10})
	return all
}
