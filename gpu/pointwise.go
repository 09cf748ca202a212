package gpu

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// A field is batch × rows × cols elements that a kernel visits one by one, or four by
// four.
type field struct{ batch, rows, cols int }

func (f field) empty() bool { return f.batch == 0 || f.rows == 0 || f.cols == 0 }

// flat joins items and rows that follow each other without gaps in all views, which are
// of this shape: long rows take few divisions and many vectors.
func (f field) flat(views ...*pass.View) field {
	all := func(ok func(v *pass.View) bool) bool {
		for _, v := range views {
			if !ok(v) {
				return false
			}
		}
		return true
	}
	if f.batch > 1 && all(func(v *pass.View) bool { return v.BatchStride == f.rows*v.RowStride }) {
		f.rows, f.batch = f.batch*f.rows, 1
	}
	if f.batch == 1 && f.rows > 1 && all(func(v *pass.View) bool { return v.RowStride == f.cols }) {
		f.cols, f.rows = f.rows*f.cols, 1
	}
	return f
}

// visit emits a kernel of which every invocation takes one unit at a time. Its words are
// those that say how many units there are, then the given ones.
func (c *compiler) visit(label string, k numbered, f field, vectors bool, words []uint32, cost pass.Cost) error {
	columns := f.cols
	if vectors {
		columns /= 4
	}
	return c.visitUnits(label, k, f, columns, vectors, words, cost)
}

// visitUnits is visit for rows of a given number of units.
func (c *compiler) visitUnits(label string, k numbered, f field, columns int, vectors bool, words []uint32, cost pass.Cost) error {
	k.values["Vectors"] = vectors
	k.values["Entry"] = k.entry
	units := f.batch * f.rows * columns
	const size = 64
	most := int(c.limits.MaxWorkgroups)
	groups := min(roundUp(units, size)/size, most*most)
	words = append([]uint32{uint32(units), uint32(columns), uint32(f.rows)}, words...)
	return c.emit(label, k.kernel, k.operands, words, [3]int{groups, 1, 1}, cost)
}

// words returns what a kernel has to know of lines: their first element, their strides.
func (l lines) words() []uint32 { return []uint32{uint32(l.shift), uint32(l.row), uint32(l.item)} }

// pointwise begins a kernel from x to y, which are bound once if they are the same
// elements.
func (c *compiler) pointwise(entry string, x, y lines, inPlace bool) numbered {
	k := numbered{kernel{shader: "pointwise", entry: entry, values: shaders.Values{
		"Epilogue": "none", "InPlace": inPlace, "Swish": false, "GateFirst": false, "BBinding": 0,
	}}, []operand{y.operand}}
	if !inPlace {
		k.operands = append(k.operands, x.operand)
	}
	return k
}

// between returns the words for x, y, a factor and a number of columns.
func between(x, y lines, factor float32, columns int) []uint32 {
	return append(append(x.words(), y.words()...), math.Float32bits(factor), uint32(columns), 0, 0, 0)
}

// mapped compiles a Map.
func (c *compiler) mapped(op pass.Map, cost pass.Cost) error {
	f := field{op.Batch, op.Rows, op.Cols}
	if f.empty() {
		return nil
	}
	f = f.flat(&op.X, &op.Y)
	x, y := c.lines(op.X, f.batch, f.rows, f.cols, false), c.lines(op.Y, f.batch, f.rows, f.cols, true)
	k := c.pointwise("map", x, y, false)
	k.values["Epilogue"] = epilogueName(op.Epilogue)
	return c.visit(op.Name(), k, f, f.cols%4 == 0 && x.inFours() && y.inFours(), between(x, y, op.Epilogue.Alpha(), 0), cost)
}

// magnitude compiles a Magnitude.
func (c *compiler) magnitude(op pass.Magnitude, cost pass.Cost) error {
	f := field{op.Batch, op.Rows, op.Cols}
	if f.empty() {
		return nil
	}
	x, y := c.lines(op.X, f.batch, f.rows, 2*f.cols, false), c.lines(op.Y, f.batch, f.rows, f.cols, true)
	k := c.pointwise("magnitude", x, y, false)
	return c.visit(op.Name(), k, f, f.cols%4 == 0 && x.inFours() && y.inFours(), between(x, y, 0, op.Cols), cost)
}

// scale compiles a Scale.
func (c *compiler) scale(op pass.Scale, cost pass.Cost) error {
	f := field{op.Batch, op.Rows, op.Cols}
	if f.empty() {
		return nil
	}
	inPlace := op.X == op.Y
	f = f.flat(&op.X, &op.Y)
	x, y := c.lines(op.X, f.batch, f.rows, f.cols, false), c.lines(op.Y, f.batch, f.rows, f.cols, true)
	k := c.pointwise("scale", x, y, inPlace)
	return c.visit(op.Name(), k, f, f.cols%4 == 0 && x.inFours() && y.inFours(), between(x, y, op.Factor, 0), cost)
}

// add compiles an Add. What serves all items or rows does not move from one to the next.
func (c *compiler) add(op pass.Add, cost pass.Cost) error {
	f := field{op.Batch, op.Rows, op.Cols}
	if f.empty() {
		return nil
	}
	inPlace := op.A == op.Y
	batch, rows := op.Batch, op.Rows
	if op.OverBatch {
		batch = 1
	}
	if op.OverRows {
		rows = 1
	}
	if batch == op.Batch && rows == op.Rows {
		f = f.flat(&op.A, &op.B, &op.Y)
		batch, rows = f.batch, f.rows
	}
	a, b, y := c.lines(op.A, f.batch, f.rows, f.cols, false), c.lines(op.B, batch, rows, f.cols, false), c.lines(op.Y, f.batch, f.rows, f.cols, true)
	if batch == 1 {
		b.item = 0
	}
	if rows == 1 {
		b.row = 0
	}
	k := c.pointwise("add", a, y, inPlace)
	k.bind("BBinding", true, b.operand)
	words := append(append(append(a.words(), y.words()...), 0, 0), b.words()...)
	return c.visit(op.Name(), k, f, f.cols%4 == 0 && a.inFours() && b.inFours() && y.inFours(), words, cost)
}

// gated compiles a SwiGLU, or without swish a GLU.
func (c *compiler) gated(label string, op pass.SwiGLU, swish bool, cost pass.Cost) error {
	f := field{op.Batch, op.Rows, op.Cols}
	if f.empty() {
		return nil
	}
	inPlace := op.X == op.Y
	x, y := c.lines(op.X, f.batch, f.rows, 2*f.cols, false), c.lines(op.Y, f.batch, f.rows, f.cols, true)
	if inPlace {
		x.write = true
		y = x
	}
	k := c.pointwise("gate", x, y, inPlace)
	k.values["Swish"], k.values["GateFirst"] = swish, op.GateFirst
	return c.visit(label, k, f, f.cols%4 == 0 && x.inFours() && y.inFours(), between(x, y, 0, op.Cols), cost)
}
