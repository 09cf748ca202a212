package cuda

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// op compiles one op.
func (c *compiler) op(step pass.Checked) error {
	switch op := step.Op.(type) {
	case pass.Conv1D:
		return c.conv1d(op, step.Cost)
	case pass.Fill:
		return c.fill(op, step.Cost)
	case pass.Conv2D:
		return c.conv2d(op, step.Cost)
	case pass.ConvGLU:
		return c.convGLU(op, step.Cost)
	case pass.DepthwiseConv2D:
		return c.depthwise(op, step.Cost)
	}
	return fmt.Errorf("no kernel: %w", pass.ErrUnsupported)
}

// load lays weights out on the device.
func (d *device) load(ctx context.Context, w pass.Weights, shape pass.ParamShape) (backend.Memory, error) {
	switch w := w.(type) {
	case pass.ConvWeights:
		return d.loadConv1D(ctx, w, shape.(pass.ConvShape))
	case pass.Conv2DWeights:
		return d.loadConv2D(ctx, w, shape.(pass.Conv2DShape))
	case pass.ConvGLUWeights:
		return d.loadConvGLU(ctx, w, shape.(pass.ConvGLUShape))
	case pass.DepthwiseWeights:
		return d.loadDepthwise(ctx, w, shape.(pass.DepthwiseShape))
	}
	return nil, fmt.Errorf("weights %T: %w", w, pass.ErrUnsupported)
}
