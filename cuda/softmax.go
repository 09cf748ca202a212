package cuda

import (
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// softmax compiles a Softmax, or with log a LogSoftmax. Rows that no block can hold are
// cut into stretches: their largest elements and sums, then the result.
func (c *compiler) softmax(op pass.Softmax, log bool, cost pass.Cost) error {
	if op.Rows == 0 || op.Batch == 0 {
		return nil
	}
	count, stretches := op.Batch*op.Rows, 1
	names, g := []string{"softmax_row_512"}, rowGrid(count, byWarps)
	switch {
	case op.Cols > 8192:
		stretches = ceilDiv(op.Cols, kernels.SoftmaxStretch)
		names, g = []string{"softmax_part", "softmax_join"}, rowGrid(count*stretches, byBlock)
	case op.Cols > 1536:
		names, g = []string{"softmax_row_8192"}, rowGrid(count, byBlock)
	case op.Cols > 512:
		names = []string{"softmax_row_1536"}
	case op.Cols <= 32:
		names, g = []string{"softmax_row_32"}, rowGrid(count, byLanes)
	}
	var parts region
	if stretches > 1 {
		parts = c.temporary(8 * count * stretches)
	}
	f := field{op.Batch, op.Rows, op.Cols}
	for i, name := range names {
		k := c.call(name).because("rows of %d columns", op.Cols)
		args := kernels.Softmax{
			X:     k.read(op.X, op.Batch, op.Rows, op.Cols),
			Count: k.count(count), Rows: k.count(op.Rows), Cols: k.count(op.Cols), Stretches: k.count(stretches),
		}
		args.Vectors = vectors(kernels.VectorX, args.X, f)
		if log {
			args.Log = 1
		}
		switch {
		case i < len(names)-1:
			args.Parts = kernels.F32(k.to(parts))
		case stretches > 1:
			args.Parts = kernels.F32(k.from(parts))
		}
		if i == len(names)-1 {
			args.Y = k.write(op.Y, op.Batch, op.Rows, op.Cols)
			args.Vectors |= vectors(kernels.VectorY, args.Y, f)
		}
		if err := run(k, args, g, 0, part(cost, 1, len(names))); err != nil {
			return err
		}
	}
	return nil
}

// argmax compiles an Argmax. Long rows are cut into stretches, of whose best one kernel
// more takes the best.
func (c *compiler) argmax(op pass.Argmax, cost pass.Cost) error {
	if op.Rows == 0 || op.Batch == 0 {
		return nil
	}
	count, stretches := op.Batch*op.Rows, 1
	name, g := "softmax_best_2048", rowGrid(count, byWarps)
	switch {
	case op.Cols > 8192:
		stretches = ceilDiv(op.Cols, kernels.ArgmaxStretch)
		name, g = "softmax_best_part", rowGrid(count*stretches, byBlock)
	case op.Cols > 2048:
		name, g = "softmax_best_8192", rowGrid(count, byBlock)
	}
	k := c.call(name).because("rows of %d columns", op.Cols)
	args := kernels.Argmax{
		X:     k.read(op.X, op.Batch, op.Rows, op.Cols),
		Count: k.count(count), Rows: k.count(op.Rows), Cols: k.count(op.Cols), Stretches: k.count(stretches),
	}
	args.Vectors = vectors(kernels.VectorX, args.X, field{op.Batch, op.Rows, op.Cols})
	if stretches > 1 {
		parts := c.temporary(8 * count * stretches)
		args.Parts = kernels.U32(k.to(parts))
		if err := run(k, args, g, 0, cost); err != nil {
			return err
		}
		k, g, cost = c.call("softmax_best_pick"), rowGrid(count, byWarps), part(cost, 1, kernels.ArgmaxStretch)
		k.from(parts)
	}
	args.IDs = k.writeWords(op.IDs, op.Batch, op.IDRows, 1)
	args.ToRow = k.index(op.ToRow, op.Batch, op.Rows, op.IDRows)
	return run(k, args, g, 0, cost)
}
