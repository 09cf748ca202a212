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
	k.values["Vectors"] = vectors
	k.values["Entry"] = k.entry
	columns := f.cols
	if vectors {
		columns /= 4
	}
	units := f.batch * f.rows * columns
	const size = 64
	most := int(c.limits.MaxWorkgroups)
	groups := min(roundUp(units, size)/size, most*most)
	words = append([]uint32{uint32(units), uint32(columns), uint32(f.rows)}, words...)
	return c.emit(label, k.kernel, k.operands, words, [3]int{groups, 1, 1}, cost)
}

// words returns what a kernel has to know of lines: their first element, their strides.
func (l lines) words() []uint32 { return []uint32{uint32(l.shift), uint32(l.row), uint32(l.item)} }

// mapped compiles a Map.
func (c *compiler) mapped(op pass.Map, cost pass.Cost) error {
	f := field{op.Batch, op.Rows, op.Cols}
	if f.empty() {
		return nil
	}
	f = f.flat(&op.X, &op.Y)
	x, y := c.lines(op.X, f.batch, f.rows, f.cols, false), c.lines(op.Y, f.batch, f.rows, f.cols, true)
	k := numbered{kernel{shader: "pointwise", entry: "map", values: shaders.Values{"Epilogue": epilogueName(op.Epilogue)}}, []operand{x.operand, y.operand}}
	words := append(append(x.words(), y.words()...), math.Float32bits(op.Epilogue.Alpha()), 0)
	return c.visit(op.Name(), k, f, f.cols%4 == 0 && x.inFours() && y.inFours(), words, cost)
}

// magnitude compiles a Magnitude.
func (c *compiler) magnitude(op pass.Magnitude, cost pass.Cost) error {
	f := field{op.Batch, op.Rows, op.Cols}
	if f.empty() {
		return nil
	}
	x, y := c.lines(op.X, f.batch, f.rows, 2*f.cols, false), c.lines(op.Y, f.batch, f.rows, f.cols, true)
	k := numbered{kernel{shader: "pointwise", entry: "magnitude", values: shaders.Values{"Epilogue": "none"}}, []operand{x.operand, y.operand}}
	words := append(append(x.words(), y.words()...), 0, uint32(op.Cols))
	return c.visit(op.Name(), k, f, f.cols%4 == 0 && x.inFours() && y.inFours(), words, cost)
}
