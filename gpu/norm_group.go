package gpu

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// chunkElements is about how many elements a workgroup of a GroupNorm takes: some rows.
// Where chunks are depends on shapes alone.
const chunkElements = 4096

// momentWords is what is known of a chunk: its mean in two parts, its sum of squared
// distances from it, and its number of elements.
const momentWords = 4

// groupnorm compiles a GroupNorm: the moments of chunks of rows, then the result, by the
// same chunks.
func (c *compiler) groupnorm(op pass.GroupNorm, cost pass.Cost) error {
	if op.Rows == 0 {
		return nil
	}
	quads := roundUp(op.Cols, 4) / 4
	chunk := max(chunkElements/4/quads, 1)
	chunks := (op.Rows + chunk - 1) / chunk
	tiles := op.Batch * chunks
	if !c.fitsScratch(momentWords * tiles) {
		return c.inHalves(op, op.Batch, func(part pass.Checked) error { return c.groupnorm(part.Op.(pass.GroupNorm), part.Cost) })
	}
	p := c.plan.Param(op.W).(*param)
	lengths := c.numbers(op.Lengths, op.Batch, func(int) int { return op.Rows })
	parts := c.scratch(momentWords * tiles)
	l := lanes{lanes: threadsWithin(c.limits), threads: threadsWithin(c.limits)}.inSteps()
	for _, entry := range []string{"moments", "apply"} {
		apply := entry == "apply"
		x, y := c.lines(op.X, op.Batch, op.Rows, op.Cols, false), c.lines(op.Y, op.Batch, op.Rows, op.Cols, true)
		k := numbered{kernel: kernel{shader: "norm_group", entry: entry, values: shaders.Values{
			"Entry": entry, "InPlace": apply && op.X == op.Y, "Lengths": lengths.kind, "Bias": p.shape.(pass.NormShape).Bias,
			"Vectors": op.Cols%4 == 0 && x.inFours() && y.inFours(),
		}}}
		l.set(k.values)
		if apply {
			k.operands = append(k.operands, y.operand)
		}
		k.bind("XBinding", !apply || op.X != op.Y, x.operand)
		parts.write = !apply
		k.bind("PartsBinding", true, parts)
		k.bind("WeightsBinding", apply, whole(p.buffers[0]))
		k.bind("LengthsBinding", lengths.kind != "none", lengths.o)
		k.status(c, lengths)
		words := append([]uint32{uint32(op.Batch * op.Rows), uint32(op.Rows), uint32(op.Cols), uint32(quads)}, x.words()...)
		words = append(append(words, y.words()...), math.Float32bits(op.Eps), uint32(chunk), uint32(chunks), lengths.shift)
		if err := c.tiles(op.Name(), k, words, tiles, nil, share(cost, 1, 2)); err != nil {
			return err
		}
	}
	return nil
}

// fitsScratch reports whether scratch memory of n words fits a binding.
func (c *compiler) fitsScratch(n int) bool {
	return 4*uint64(n) <= min(c.limits.MaxStorageBindingSize, c.limits.MaxBufferSize)
}

// inHalves compiles the halves of a batch one after the other, because scratch memory for
// the whole exceeds a binding.
func (c *compiler) inHalves(op pass.Op, batch int, compile func(part pass.Checked) error) error {
	if batch < 2 {
		return fmt.Errorf("scratch memory for one item exceeds the device's %d bytes for one binding: %w", c.limits.MaxStorageBindingSize, pass.ErrUnsupported)
	}
	checked, err := pass.Check(op)
	if err != nil {
		return err
	}
	for _, r := range [2][2]int{{0, batch / 2}, {batch / 2, batch}} {
		part, err := pass.Part(checked, pass.AxisBatch, r[0], r[1])
		if err != nil {
			return err
		}
		c.extra.release()
		if err := compile(part); err != nil {
			return err
		}
	}
	return nil
}
