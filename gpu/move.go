package gpu

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// copy compiles a Copy. Constant rows are part of the offsets.
func (c *compiler) copy(op pass.Copy, cost pass.Cost) error {
	f := field{op.Batch, op.Rows, op.Cols}
	if f.empty() {
		return nil
	}
	from, to := c.chosen(op.From, op.FromRow, op.FromRows, op), c.chosen(op.To, op.ToRow, op.ToRows, op)
	if from.index.kind == "none" && to.index.kind == "none" {
		f = f.flat(&from.view, &to.view)
	}
	x := c.lines(from.view, f.batch, max(f.rows, from.rows), f.cols, false)
	y := c.lines(to.view, f.batch, max(f.rows, to.rows), f.cols, true)
	k := numbered{kernel{shader: "move", entry: "copy", values: shaders.Values{
		"SourceIndex": from.index.kind == "device", "ToIndex": to.index.kind == "device",
	}}, []operand{y.operand, x.operand}}
	k.bind("SourceBinding", from.index.kind == "device", from.index.o)
	k.bind("ToBinding", to.index.kind == "device", to.index.o)
	k.status(c, from.index.numbers, to.index.numbers)
	words := append(y.words(), to.index.words()...)
	words = append(append(words, x.words()...), from.index.words()...)
	return c.visit(op.Name(), k, f, f.cols%4 == 0 && x.inFours() && y.inFours(), append(words, 0), cost)
}

// A side is one side of a Copy: the rows that its index leads to begin at the view.
type side struct {
	view  pass.View
	index indexed
	rows  int // to choose from, if the index is on the device
}

// chosen resolves the row index of a side.
func (c *compiler) chosen(v pass.View, x pass.Index, rows int, op pass.Copy) side {
	i := c.index(x, op.Batch, op.Rows, rows)
	switch {
	case i.kind == "none":
		return side{view: v.At(i.added * v.RowStride), index: i}
	case i.valid == 0: // nothing is moved
		return side{view: v, index: i, rows: rows}
	}
	return side{view: v.At(i.added * v.RowStride), index: i, rows: rows - i.added}
}

// fill compiles a Fill.
func (c *compiler) fill(op pass.Fill, cost pass.Cost) error {
	f := field{op.Batch, op.Rows, op.Cols}
	if f.empty() {
		return nil
	}
	f = f.flat(&op.To)
	y := c.lines(op.To, f.batch, f.rows, f.cols, true)
	return c.fillLines(op.Name(), y, f, op.Word|math.Float32bits(op.Value), cost) // one of them is zero
}

func (c *compiler) fillLines(label string, y lines, f field, word uint32, cost pass.Cost) error {
	k := numbered{kernel{shader: "move", entry: "fill", values: shaders.Values{"SourceIndex": false, "ToIndex": false}}, []operand{y.operand}}
	k.bind("SourceBinding", false, operand{})
	k.bind("ToBinding", false, operand{})
	k.status(c)
	words := append(y.words(), make([]uint32, 9)...)
	return c.visit(label, k, f, f.cols%4 == 0 && y.inFours(), append(words, word), cost)
}

// advance compiles an Advance.
func (c *compiler) advance(op pass.Advance, cost pass.Cost) error {
	k := numbered{kernel: kernel{shader: "advance", entry: "advance", values: shaders.Values{"IDs": !op.IDs.IsZero(), "Done": !op.Done.IsZero()}}}
	index := c.lines(op.Index, 1, op.Batch, 1, true)
	k.operands = []operand{index.operand}
	words := []uint32{uint32(op.Batch), uint32(index.shift), uint32(index.row), uint32(op.By), 0, 0, 0, 0, 0, 0, uint32(op.Plus), uint32(len(op.Stop))}
	k.bind("DoneBinding", false, operand{})
	k.bind("IDsBinding", false, operand{})
	if !op.Done.IsZero() {
		done := c.lines(op.Done, 1, op.Batch, 1, true)
		k.bind("DoneBinding", true, done.operand)
		words[4], words[5] = uint32(done.shift), uint32(done.row)
	}
	if !op.IDs.IsZero() {
		ids := c.lines(op.IDs, op.Batch, op.IDRows, 1, false)
		k.bind("IDsBinding", true, ids.operand)
		copy(words[6:], append(ids.words(), uint32(op.IDRows)))
	}
	k.status(c, numbers{kind: "device"}) // the counters
	most := int(c.limits.MaxWorkgroups)
	groups := min(roundUp(op.Batch, 64)/64, most*most)
	return c.emit(op.Name(), k.kernel, k.operands, append(words, op.Stop...), [3]int{groups, 1, 1}, cost)
}
