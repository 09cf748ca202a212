package gpu

import (
	"fmt"
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
	n := poolNorm{op: op, unrolled: unrolled, down: columnsDown(c.limits), cost: cost}
	n.chunk = n.down * rowsEach
	n.chunks = (pooled + n.chunk - 1) / n.chunk
	if op.Batch > 1 && !c.fitsScratch(momentWords*op.Batch*n.chunks*op.Cols) {
		return c.inHalves(op, op.Batch, func(part pass.Checked) error { return c.poolnorm(part.Op.(pass.PoolNorm), part.Cost) })
	}
	p := c.plan.Param(op.W).(*param)
	n.bias, n.weights = p.shape.(pass.NormShape).Bias, whole(p.buffers[0])
	n.lengths = c.numbers(op.Lengths, op.Batch, func(int) int { return op.Rows })
	// Of one item, a chunk of the columns must fit a binding, wherever that starts, and what
	// is found in all chunks.
	columns, ok := runs(pass.Span{To: op.Cols}, func(s pass.Span) bool {
		chunk := min(n.chunk, pooled)*op.Pool*s.Len() + int(c.limits.StorageOffsetAlignment)/4
		return op.Batch > 1 || c.fitsScratch(momentWords*n.chunks*s.Len()) && c.fitsScratch(chunk)
	})
	if !ok {
		return c.tooMuch(fmt.Sprintf("a chunk of %d rows", n.chunk*op.Pool))
	}
	for _, s := range columns {
		if err := n.columns(c, s); err != nil {
			return err
		}
	}
	return nil
}

// A poolNorm is a PoolNorm with its operands.
type poolNorm struct {
	op             pass.PoolNorm
	unrolled, down int
	chunk, chunks  int // pooled rows of a chunk, and how many chunks an item has
	bias           bool
	weights, parts operand
	lengths        numbers
	cost           pass.Cost

	channels pass.Span // that are bound
	x, y     lines     // of some chunks, or of all of several items
}

// rows returns the rows of X and Y of some chunks.
func (n *poolNorm) rows(chunks pass.Span) (x, y pass.Span) {
	y = pass.Span{From: chunks.From * n.chunk, To: min(chunks.To*n.chunk, n.op.Rows/n.op.Pool)}
	return pass.Span{From: y.From * n.op.Pool, To: y.To * n.op.Pool}, y
}

// columns emits the kernels for some channels.
func (n *poolNorm) columns(c *compiler, channels pass.Span) error {
	op, cols := n.op, channels.Len()
	xView, yView := op.X.At(channels.From), op.Y.At(channels.From)
	fit := func(s pass.Span) bool {
		x, y := n.rows(s)
		return c.holds(xView, op.Batch, x, cols) && c.holds(yView, op.Batch, y, cols)
	}
	windows, ok := runs(pass.Span{To: n.chunks}, fit)
	if !ok {
		x, y := n.rows(pass.Span{To: n.chunks})
		from, err := c.gather(pass.Arg{Name: "X", Access: pass.Read, View: xView, Batch: 1, Rows: x.Len(), Cols: cols})
		if err != nil {
			return err
		}
		to, err := c.gather(pass.Arg{Name: "Y", Access: pass.Write, View: yView, Batch: 1, Rows: y.Len(), Cols: cols})
		if err != nil {
			return err
		}
		if err := from.in(c); err != nil {
			return err
		}
		near := *n
		near.op.X, near.op.Y = from.to.At(-channels.From), to.to.At(-channels.From)
		if err := near.columns(c, channels); err != nil {
			return err
		}
		if err := from.out(c); err != nil {
			return err
		}
		return to.out(c)
	}
	n.channels = channels
	n.parts = c.scratch(momentWords * op.Batch * n.chunks * cols)
	n.parts.write = true
	for _, entry := range []string{"moments", "apply"} {
		for _, s := range windows {
			x, y := n.rows(s)
			n.x, n.y = c.window(xView, op.Batch, x, cols, false), c.window(yView, op.Batch, y, cols, true)
			if err := n.emit(c, entry, s, share(n.cost, s.Len()*cols, 2*n.chunks*op.Cols)); err != nil {
				return err
			}
		}
		n.parts.write = false
	}
	c.giveBack(n.parts)
	return nil
}

// emit emits one of the two kernels for the chunks that are bound.
func (n *poolNorm) emit(c *compiler, entry string, chunks pass.Span, cost pass.Cost) error {
	op, apply := n.op, entry == "apply"
	k := numbered{kernel: kernel{shader: "norm_pool", entry: entry, values: shaders.Values{
		"Entry": entry, "Pooled": op.Pool > 1 || op.Abs, "Pool": n.unrolled, "Abs": op.Abs, "Down": n.down, "RowsEach": rowsEach,
		"Lengths": n.lengths.kind, "Bias": n.bias, "Epilogue": epilogueName(op.Epilogue),
	}}, operands: []operand{n.parts, n.x.operand}}
	if apply {
		k.operands[0] = n.y.operand
	}
	k.bind("PartsBinding", apply, n.parts)
	k.bind("WeightsBinding", apply, n.weights)
	k.bind("LengthsBinding", n.lengths.kind != "none", n.lengths.o)
	k.status(c, n.lengths)
	_, bound := n.rows(chunks)
	blocks := (n.channels.Len() + columnsAcross - 1) / columnsAcross
	words := append([]uint32{uint32(op.Rows), uint32(op.Rows / op.Pool), uint32(op.Pool), uint32(n.channels.Len()), uint32(blocks)}, n.x.words()...)
	words = append(append(words, n.y.words()...), math.Float32bits(op.Eps), math.Float32bits(op.Epilogue.Alpha()), uint32(n.chunks), n.lengths.shift,
		uint32(bound.From), uint32(bound.To-1), uint32(n.channels.From), uint32(roundUp(op.Cols, 4)+n.channels.From))
	tiles := pass.Span{From: chunks.From * blocks, To: ((op.Batch-1)*n.chunks + chunks.To) * blocks} // several items have all of theirs
	return c.someTiles(op.Name(), k, words, tiles, nil, cost)
}
