package gpu

import (
	"math"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// Geometry of kernels that sum down columns; see columns.wgsl.
const (
	columnsAcross = 32 // columns of a workgroup
	rowsEach      = 16 // pooled rows of an invocation of a PoolNorm
	mostUnrolled  = 4  // rows of a window
)

// columnsDown returns how many invocations share a column.
func columnsDown(limits driver.Limits) int {
	return max(threadsWithin(limits)/columnsAcross, 1)
}

// poolnorm compiles a PoolNorm: the moments of chunks of time for each channel, then the
// result, by the same chunks.
func (c *compiler) poolnorm(op pass.PoolNorm, cost pass.Cost) error {
	pooled := op.Rows / op.Pool
	if pooled == 0 {
		return nil
	}
	unrolled := op.Pool
	if unrolled > mostUnrolled {
		unrolled = 0
	}
	down := columnsDown(c.limits)
	chunks := (pooled + down*rowsEach - 1) / (down * rowsEach)
	if !c.fitsScratch(momentWords * op.Batch * chunks * op.Cols) {
		return c.inHalves(op, op.Batch, func(part pass.Checked) error { return c.poolnorm(part.Op.(pass.PoolNorm), part.Cost) })
	}
	p := c.plan.Param(op.W).(*param)
	lengths := c.numbers(op.Lengths, op.Batch, func(int) int { return op.Rows })
	parts := c.scratch(momentWords * op.Batch * chunks * op.Cols)
	parts.write = true
	x, y := c.lines(op.X, op.Batch, op.Rows, op.Cols, false), c.lines(op.Y, op.Batch, pooled, op.Cols, true)
	blocks := (op.Cols + columnsAcross - 1) / columnsAcross
	words := append([]uint32{uint32(op.Rows), uint32(pooled), uint32(op.Pool), uint32(op.Cols), uint32(blocks)}, x.words()...)
	words = append(append(words, y.words()...), math.Float32bits(op.Eps), math.Float32bits(op.Epilogue.Alpha()), uint32(chunks), lengths.shift)
	for _, entry := range []string{"moments", "apply"} {
		apply := entry == "apply"
		k := numbered{kernel: kernel{shader: "norm_pool", entry: entry, values: shaders.Values{
			"Entry": entry, "Pooled": op.Pool > 1 || op.Abs, "Pool": unrolled, "Abs": op.Abs, "Down": down, "RowsEach": rowsEach,
			"Lengths": lengths.kind, "Bias": p.shape.(pass.NormShape).Bias, "Epilogue": epilogueName(op.Epilogue),
		}}}
		if apply {
			k.operands = []operand{y.operand, x.operand}
			parts.write = false
		} else {
			k.operands = []operand{parts, x.operand}
		}
		k.bind("PartsBinding", apply, parts)
		k.bind("WeightsBinding", apply, whole(p.buffers[0]))
		k.bind("LengthsBinding", lengths.kind != "none", lengths.o)
		k.status(c, lengths)
		if err := c.tiles(op.Name(), k, words, op.Batch*chunks*blocks, nil, share(cost, 1, 2)); err != nil {
			return err
		}
	}
	return nil
}
