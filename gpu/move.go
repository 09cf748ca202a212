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
	k.status(c, from.index, to.index)
	words := append(y.words(), to.words(op.Rows)...)
	words = append(append(words, x.words()...), from.words(op.Rows)...)
	return c.visit(op.Name(), k, f, f.cols%4 == 0 && x.inFours() && y.inFours(), append(words, 0), cost)
}

// A side is one side of a Copy.
type side struct {
	view  pass.View
	index numbers
	each  uint32 // 1: every item has its own index
	rows  int    // to choose from, if the index is on the device
}

// chosen resolves the row index of a side.
func (c *compiler) chosen(v pass.View, x pass.Index, rows int, op pass.Copy) side {
	if n, ok := x.Const(); ok {
		return side{view: v.At(n * v.RowStride), index: numbers{kind: "none"}}
	}
	at, each := x.View()
	s := side{view: v, rows: rows}
	n := 1
	if each {
		s.each, n = 1, op.Batch
	}
	o, shift := c.bind(at.Buffer, at.Offset, at.Offset+n, false)
	s.index = numbers{"device", o, shift}
	return s
}

// words returns where the index is, and how large it may be for a number of rows.
func (s side) words(rows int) []uint32 {
	return []uint32{s.index.shift, s.each, uint32(max(s.rows-rows, 0))}
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
