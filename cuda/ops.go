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
	case pass.LSTM:
		return c.lstm(op, step.Cost)
	case pass.Gemm:
		return c.gemm(op, step.Cost)
	case pass.Conv1D:
		return c.conv1d(op, step.Cost)
	case pass.Map:
		return c.mapped(op, step.Cost)
	case pass.Magnitude:
		return c.magnitude(op, step.Cost)
	case pass.Copy:
		return c.copy(op, step.Cost)
	case pass.Fill:
		return c.fill(op, step.Cost)
	case pass.LayerNorm:
		return c.layernorm(op, step.Cost)
	case pass.GroupNorm:
		return c.groupnorm(op, step.Cost)
	case pass.PoolNorm:
		return c.poolnorm(op, step.Cost)
	case pass.L2Norm:
		return c.l2norm(op, step.Cost)
	case pass.Softmax:
		return c.softmax(op, false, step.Cost)
	case pass.LogSoftmax:
		return c.softmax(pass.Softmax(op), true, step.Cost)
	case pass.Argmax:
		return c.argmax(op, step.Cost)
	case pass.Rope:
		return c.rope(op, step.Cost)
	case pass.Add:
		return c.add(op, step.Cost)
	case pass.Scale:
		return c.scale(op, step.Cost)
	case pass.SwiGLU:
		return c.swiglu(op, step.Cost)
	case pass.GLU:
		return c.glu(op, step.Cost)
	case pass.Embed:
		return c.embed(op, step.Cost)
	case pass.Permute:
		return c.permute(op, step.Cost)
	case pass.Advance:
		return c.advance(op, step.Cost)
	case pass.StatsPool:
		return c.statspool(op, step.Cost)
	case pass.Attention:
		return c.attention(op, step.Cost)
	case pass.Attend:
		return c.attend(op, step.Cost)
	case pass.Append:
		return c.appendRows(op, step.Cost)
	case pass.Conv2D:
		return c.conv2d(op, step.Cost)
	case pass.ConvGLU:
		return c.convGLU(op, step.Cost)
	case pass.DepthwiseConv2D:
		return c.depthwise(op, step.Cost)
	case pass.LogMel:
		return c.logMel(op, step.Cost)
	}
	return fmt.Errorf("no kernel: %w", pass.ErrUnsupported)
}

// load lays weights out on the device.
func (d *device) load(ctx context.Context, w pass.Weights, shape pass.ParamShape) (backend.Memory, error) {
	switch w := w.(type) {
	case pass.LSTMWeights:
		return d.loadLSTM(ctx, w, shape.(pass.LSTMShape))
	case pass.LinearWeights:
		return loadLinear(ctx, d, w, shape.(pass.LinearShape))
	case pass.NormWeights:
		return d.loadNorm(ctx, w)
	case pass.MelWeights:
		return d.loadMel(ctx, w, shape.(pass.MelShape))
	case pass.RopeWeights:
		return d.loadRope(ctx, w, shape.(pass.RopeShape))
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
