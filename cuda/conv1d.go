package cuda

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

func (d *device) loadConv1D(ctx context.Context, w pass.ConvWeights, s pass.ConvShape) (backend.Memory, error) {
	return d.loadConv(ctx, w.Name, w.Weight, s.Out, s.In, s.Kernel, w.Bias)
}

// conv1d compiles a Conv1D.
func (c *compiler) conv1d(op pass.Conv1D, cost pass.Cost) error {
	if op.Batch == 0 || op.Out.Len() == 0 {
		return nil
	}
	p := c.plan.Param(op.W).(*convParam)
	if err := c.checkConv1D(op, p); err != nil {
		return err
	}
	return c.conv1dDirect(op, p, cost)
}

// checkConv1D refuses what kernels cannot count.
func (c *compiler) checkConv1D(op pass.Conv1D, p *convParam) error {
	const most = 1<<31 - 1
	if rows := op.Batch * op.Out.Len() * op.Pool; rows > most/2 || 2*op.In > most-p.taps || p.depth() > most || op.Stride > most {
		return fmt.Errorf("%d output steps of %d input steps, %d × %d products, stride %d: want less than 2^30 of each: %w",
			rows, op.In, p.taps, p.in, op.Stride, pass.ErrUnsupported)
	}
	return nil
}

// conv1dDirect emits a Conv1D as one launch in FP32.
func (c *compiler) conv1dDirect(op pass.Conv1D, p *convParam, cost pass.Cost) error {
	rows := op.Batch * op.Out.Len()
	t := chooseDirect(rows, p.out)
	k := c.call("conv1d_" + t.name)
	args := kernels.Conv1D{
		X:       k.read(op.X, op.Batch, op.In, p.in),
		Y:       k.write(op.Y, op.Batch, op.Out.Len(), p.out),
		Weights: kernels.F32(p.direct.at), Bias: p.biasAt(), WeightsRow: int64(p.stride),
		Lengths: k.items(op.Lengths, op.Batch, op.In),
		PadLeft: int64(op.PadLeft), PadRight: int64(op.PadRight), From: int64(op.Out.From),
		Rows: uint32(rows), ItemRows: uint32(op.Out.Len()), Columns: uint32(p.out), In: uint32(p.in), Kernel: uint32(p.taps),
		Stride: uint32(op.Stride), Pool: uint32(op.Pool),
		Reflect: flag(op.Padding == pass.PadReflect && max(op.PadLeft, op.PadRight) > 0), Abs: flag(op.Abs),
		Epilogue: epilogue(op.Epilogue),
	}
	args.Vectors = flag(inQuads(args.Y))
	return run(k.because("%s", t.why), args, t.grid(rows, p.out), 0, cost)
}

// A directChoice is the tile of a convolution in FP32.
type directChoice struct {
	name          string
	rows, columns int
	why           string
}

// chooseDirect decides by the shape alone: tiles of many outputs use what they load most
// often, but where those are too few to keep a large GPU busy, smaller ones are faster,
// whose warps share the sum.
func chooseDirect(rows, columns int) directChoice {
	const enough = 64
	t := directChoice{name: "tile", rows: 64, columns: 64}
	tiles := ceilDiv(rows, t.rows) * ceilDiv(columns, t.columns)
	t.why = fmt.Sprintf("%d tiles in FP32", tiles)
	if tiles < enough {
		t = directChoice{"few", 8, 32, fmt.Sprintf("%d large tiles in FP32 are too few", tiles)}
	}
	return t
}

func (t directChoice) grid(rows, columns int) grid {
	return grid{ceilDiv(rows, t.rows) * ceilDiv(columns, t.columns), 1, 1}
}
