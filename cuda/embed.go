package cuda

import (
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// embed compiles an Embed.
func (c *compiler) embed(op pass.Embed, cost pass.Cost) error {
	t := c.plan.Param(op.Table).(*linearParam)
	f := field{op.Batch, op.Rows, t.shape.K}
	if f.empty() {
		return nil
	}
	k := c.call("linear_embed")
	args := kernels.Embed{
		IDs:    k.readWords(op.IDs, op.Batch, op.IDRows, 1),
		Y:      k.write(op.Out, op.Batch, op.Rows, t.shape.K),
		Table:  table(k, t),
		IDRow:  k.index(op.IDRow, op.Batch, op.Rows, op.IDRows),
		Status: k.status(), // of the ids
	}
	if !op.Positions.IsZero() {
		p := c.plan.Param(op.Positions).(*linearParam)
		args.Positions = table(k, p)
		args.Pos = k.index(op.Pos, op.Batch, op.Rows, p.shape.N)
	}
	var g grid
	args.Units, args.Cols, args.Quads, args.Rows, g = k.units(f)
	args.Vectors = vectors(kernels.VectorY, args.Y, f)
	return run(k, args, g, 0, cost)
}

// table returns the parameter for weights of which rows are looked up.
func table(k *call, p *linearParam) kernels.RowTable {
	types := map[pass.DType]uint32{pass.F32: kernels.TableF32, pass.F16: kernels.TableF16, pass.BF16: kernels.TableBF16, pass.Q8_0: kernels.TableQ8}
	return kernels.RowTable{
		Values: kernels.U32(p.at(0)), Scales: kernels.F16(p.scalesAt(0)),
		Stride: int64(p.stride), Rows: k.count(p.shape.N), Type: types[p.typ],
	}
}
