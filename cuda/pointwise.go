package cuda

import (
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// mapped compiles a Map.
func (c *compiler) mapped(op pass.Map, cost pass.Cost) error {
	f := field{op.Batch, op.Rows, op.Cols}.flat(op.X, op.Y)
	if f.empty() {
		return nil
	}
	k := c.call("pointwise_map")
	args := kernels.Map{
		X: k.read(op.X, op.Batch, op.Rows, op.Cols), Y: k.write(op.Y, op.Batch, op.Rows, op.Cols),
		Epilogue: epilogue(op.Epilogue),
	}
	var g grid
	args.Units, args.Cols, args.Quads, args.Rows, g = k.units(f)
	args.Vectors = vectors(kernels.VectorX, args.X, f) | vectors(kernels.VectorY, args.Y, f)
	return run(k, args, g, 0, cost)
}

// scale compiles a Scale.
func (c *compiler) scale(op pass.Scale, cost pass.Cost) error {
	f := field{op.Batch, op.Rows, op.Cols}.flat(op.X, op.Y)
	if f.empty() {
		return nil
	}
	k := c.call("pointwise_scale")
	args := kernels.Scale{
		X: k.read(op.X, op.Batch, op.Rows, op.Cols), Y: k.write(op.Y, op.Batch, op.Rows, op.Cols),
		Factor: op.Factor,
	}
	var g grid
	args.Units, args.Cols, args.Quads, args.Rows, g = k.units(f)
	args.Vectors = vectors(kernels.VectorX, args.X, f) | vectors(kernels.VectorY, args.Y, f)
	return run(k, args, g, 0, cost)
}

// magnitude compiles a Magnitude.
func (c *compiler) magnitude(op pass.Magnitude, cost pass.Cost) error {
	f := field{op.Batch, op.Rows, op.Cols}
	if f.empty() {
		return nil
	}
	k := c.call("pointwise_magnitude")
	args := kernels.Magnitude{
		X: k.read(op.X, op.Batch, op.Rows, 2*op.Cols), Y: k.write(op.Y, op.Batch, op.Rows, op.Cols),
		Width: int64(op.Cols),
	}
	var g grid
	args.Units, args.Cols, args.Quads, args.Rows, g = k.units(f)
	args.Vectors = halfVectors(op.Cols, args.X, f) | vectors(kernels.VectorY, args.Y, f)
	return run(k, args, g, 0, cost)
}

// halfVectors is vectors for both halves of the rows of X.
func halfVectors(cols int, x kernels.View, f field) uint32 {
	if cols%4 != 0 {
		return 0
	}
	return vectors(kernels.VectorX, x, f)
}

// add compiles an Add. What serves all items or rows does not move from one to the next.
func (c *compiler) add(op pass.Add, cost pass.Cost) error {
	f := field{op.Batch, op.Rows, op.Cols}
	if f.empty() {
		return nil
	}
	batch, rows := op.Batch, op.Rows
	if op.OverBatch {
		batch = 1
	}
	if op.OverRows {
		rows = 1
	}
	k := c.call("pointwise_add")
	args := kernels.Addition{
		A: k.read(op.A, op.Batch, op.Rows, op.Cols), B: k.read(op.B, batch, rows, op.Cols),
		Y: k.write(op.Y, op.Batch, op.Rows, op.Cols),
	}
	if batch == op.Batch && rows == op.Rows {
		f = f.flat(op.A, op.B, op.Y)
	}
	if batch == 1 {
		args.B.Batch = 0
	}
	if rows == 1 {
		args.B.Row = 0
	}
	var g grid
	args.Units, args.Cols, args.Quads, args.Rows, g = k.units(f)
	args.Vectors = vectors(kernels.VectorX, args.A, f) | vectors(kernels.VectorB, args.B, f) | vectors(kernels.VectorY, args.Y, f)
	return run(k, args, g, 0, cost)
}

// swiglu and glu compile a SwiGLU and a GLU.
func (c *compiler) swiglu(op pass.SwiGLU, cost pass.Cost) error {
	args := kernels.Gate{Gate: int64(op.Cols), Swish: 1}
	if op.GateFirst {
		args.Value, args.Gate = args.Gate, args.Value
	}
	return c.gated(op, args, cost)
}

func (c *compiler) glu(op pass.GLU, cost pass.Cost) error {
	return c.gated(pass.SwiGLU{X: op.X, Y: op.Y, Batch: op.Batch, Rows: op.Rows, Cols: op.Cols}, kernels.Gate{Gate: int64(op.Cols)}, cost)
}

// gated compiles an op that gates one half of each row by the other, in place or not: an
// element of Y is read by the thread that writes it.
func (c *compiler) gated(op pass.SwiGLU, args kernels.Gate, cost pass.Cost) error {
	f := field{op.Batch, op.Rows, op.Cols}
	if f.empty() {
		return nil
	}
	k := c.call("pointwise_gate")
	args.X, args.Y = k.read(op.X, op.Batch, op.Rows, 2*op.Cols), k.write(op.Y, op.Batch, op.Rows, op.Cols)
	var g grid
	args.Units, args.Cols, args.Quads, args.Rows, g = k.units(f)
	args.Vectors = halfVectors(op.Cols, args.X, f) | vectors(kernels.VectorY, args.Y, f)
	return run(k, args, g, 0, cost)
}
