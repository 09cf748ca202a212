package cuda

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

func (d *device) loadConv2D(ctx context.Context, w pass.Conv2DWeights, s pass.Conv2DShape) (backend.Memory, error) {
	return d.loadConv(ctx, w.Name, w.Weight, s.Out, s.In, s.Size*s.Size, w.Bias)
}

// conv2d compiles a Conv2D.
func (c *compiler) conv2d(op pass.Conv2D, cost pass.Cost) error {
	_, width := op.Size()
	pixels := op.Out.Len() * width
	if op.Batch == 0 || pixels == 0 {
		return nil
	}
	p := c.plan.Param(op.W).(*convParam)
	const most = 1 << 30
	if rows := op.Batch * pixels; rows > most || op.Height > most || op.Width > most || p.depth() > most {
		return fmt.Errorf("%d output pixels of %d × %d, %d products: want at most 2^30 of each: %w", rows, op.Height, op.Width, p.depth(), pass.ErrUnsupported)
	}
	return c.conv2dDirect(op, p, width, cost)
}

// conv2dDirect emits a Conv2D as one launch in FP32.
func (c *compiler) conv2dDirect(op pass.Conv2D, p *convParam, width int, cost pass.Cost) error {
	size := op.W.Shape().(pass.Conv2DShape).Size
	pixels := op.Out.Len() * width
	rows := op.Batch * pixels
	t := chooseDirect(rows, p.out)
	k := c.call("conv2d_" + t.name)
	args := kernels.Conv2D{
		X:        k.read(op.X, op.Batch, op.Height*op.Width, p.in),
		Residual: k.read(op.Residual, op.Batch, pixels, p.out),
		Y:        k.write(op.Y, op.Batch, pixels, p.out),
		Weights:  kernels.F32(p.direct.at), Bias: p.biasAt(), WeightsRow: int64(p.stride),
		Height: uint32(op.Height), Width: uint32(op.Width), OutWidth: uint32(width), From: uint32(op.Out.From),
		Rows: uint32(rows), ItemRows: uint32(pixels), Columns: uint32(p.out),
		In: uint32(p.in), Size: uint32(size), Stride: uint32(op.Stride), ReLU: flag(op.ReLU),
	}
	args.Vectors = flag(inQuads(args.Y))
	return run(k.because("%s", t.why), args, t.grid(rows, p.out), 0, cost)
}
