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

// groupChunks returns the rows of a chunk and how many chunks an item has.
func groupChunks(op pass.GroupNorm) (chunk, chunks int) {
	chunk = max(chunkElements/4/(roundUp(op.Cols, 4)/4), 1)
	return chunk, (op.Rows + chunk - 1) / chunk
}

// groupnorm compiles a GroupNorm: the moments of chunks of rows, then the result, by the
// same chunks.
func (c *compiler) groupnorm(op pass.GroupNorm, cost pass.Cost) error {
	if op.Rows == 0 {
		return nil
	}
	chunk, chunks := groupChunks(op)
	tiles := op.Batch * chunks
	if !c.fitsScratch(momentWords * tiles) {
		return c.inHalves(op, op.Batch, func(part pass.Checked) error { return c.groupnorm(part.Op.(pass.GroupNorm), part.Cost) })
	}
	p := c.plan.Param(op.W).(*param)
	lengths := c.numbers(op.Lengths, op.Batch, func(int) int { return op.Rows })
	parts := c.scratch(momentWords * tiles)
	rows := func(s pass.Span) pass.Span { return pass.Span{From: s.From * chunk, To: min(s.To*chunk, op.Rows)} }
	parts.write = true
	windows, ok := runs(pass.Span{To: chunks}, func(s pass.Span) bool {
		return c.holds(op.X, op.Batch, rows(s), op.Cols) && c.holds(op.Y, op.Batch, rows(s), op.Cols)
	})
	if !ok {
		return c.tooMuch(fmt.Sprintf("a chunk of %d rows", chunk))
	}
	g := groupNorm{op: op, bias: p.shape.(pass.NormShape).Bias, weights: whole(p.buffers[0]), lengths: lengths, parts: parts, chunk: chunk, chunks: chunks}
	for _, entry := range []string{"moments", "apply"} {
		for _, s := range windows {
			g.x, g.y = c.window(op.X, op.Batch, rows(s), op.Cols, false), c.window(op.Y, op.Batch, rows(s), op.Cols, true)
			if err := g.emit(c, entry, s, share(cost, s.Len(), 2*chunks)); err != nil {
				return err
			}
		}
		g.parts.write = false
	}
	return nil
}

// A groupNorm is a GroupNorm with its operands.
type groupNorm struct {
	op             pass.GroupNorm
	bias           bool
	weights, parts operand
	lengths        numbers
	chunk, chunks  int
	x, y           lines // of some chunks, or of all of several items
}

// emit emits one of the two kernels for the chunks that are bound.
func (g *groupNorm) emit(c *compiler, entry string, chunks pass.Span, cost pass.Cost) error {
	op, apply, inPlace := g.op, entry == "apply", g.op.X == g.op.Y
	k := numbered{kernel: kernel{shader: "norm_group", entry: entry, values: shaders.Values{
		"Entry": entry, "InPlace": apply && inPlace, "Lengths": g.lengths.kind, "Bias": g.bias,
		"Vectors": op.Cols%4 == 0 && g.x.inFours() && g.y.inFours(),
	}}}
	lanes{lanes: threadsWithin(c.limits), threads: threadsWithin(c.limits)}.inSteps().set(k.values)
	if apply {
		k.operands = append(k.operands, g.y.operand)
	}
	k.bind("XBinding", !apply || !inPlace, g.x.operand)
	k.bind("PartsBinding", true, g.parts)
	k.bind("WeightsBinding", apply, g.weights)
	k.bind("LengthsBinding", g.lengths.kind != "none", g.lengths.o)
	k.status(c, g.lengths)
	words := append([]uint32{uint32(op.Batch * op.Rows), uint32(op.Rows), uint32(op.Cols), uint32(roundUp(op.Cols, 4) / 4)}, g.x.words()...)
	words = append(append(words, g.y.words()...), math.Float32bits(op.Eps), uint32(g.chunk), uint32(g.chunks), g.lengths.shift)
	tiles := pass.Span{From: chunks.From, To: (op.Batch-1)*g.chunks + chunks.To} // several items have all of theirs
	return c.someTiles(op.Name(), k, words, tiles, nil, cost)
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
