package cpu

import (
	"context"
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// conv is a loaded [pass.ConvWeights]: a matrix over [kernel][in].
type conv struct {
	*matrix
	in, kernel int
	ledger     *ledger
}

// Free implements backend.Memory.
func (w *conv) Free() {
	w.release(w.ledger)
	w.matrix = nil
}

func loadConv(ctx context.Context, l *ledger, w pass.ConvWeights, s pass.ConvShape) (backend.Memory, error) {
	m, err := newMatrix(l, s.Out, s.In*s.Kernel, w.Bias)
	if err != nil {
		return nil, err
	}
	if err := m.fillTaps(ctx, w.Weight, s.In, s.Kernel); err != nil {
		m.release(l)
		return nil, err
	}
	return &conv{m, s.In, s.Kernel, l}, nil
}

// conv1d computes a [pass.Conv1D] as the product of windows of the input with the
// weights. Where the input is dense a window is a piece of it; else the windows of a
// task are gathered in scratch. Taps that fall on zero padding are left out of a
// window's sums. Where output steps are pooled, a task takes the steps of the
// convolution that they come from a few at a time, and keeps the largest in the output.
type conv1d struct {
	x, y     view
	w        *conv
	op       pass.Conv1D
	lengths  items
	epilogue epilogue
	grid     grid // over the output steps of one item
	atOnce   int  // windows of a task that are made at once
	gather   bool // a window may have to be gathered
	share    bool
	windows  []float32 // scratch
}

func (p *program) conv1d(v pass.Conv1D, cost pass.Cost) kernel {
	k := &conv1d{
		x: p.view(v.X), y: p.view(v.Y),
		w:        p.plan.Param(v.W).(*conv),
		op:       v,
		lengths:  p.items("conv1d", "Lengths", v.Lengths, v.Batch, func(int) int { return v.In }),
		epilogue: newEpilogue(v.Epilogue),
		share:    cost.FLOP > worthSharing,
	}
	k.grid = newGrid(v.Out.Len()*v.Pool, panelsOf(k.w.n), k.w.k)
	k.atOnce = k.grid.rows
	if k.pooled() {
		k.grid = k.grid.grouped(v.Out.Len(), v.Pool)
	}
	k.gather = v.X.RowStride != k.w.in || v.Padding == pass.PadReflect && v.PadLeft+v.PadRight > 0
	return k
}

// grouped makes tasks of rows that each stand for so many as g has: at least one.
func (g grid) grouped(rows, each int) grid {
	g.rows = max(g.rows/each, 1)
	g.tasks = (rows + g.rows - 1) / g.rows * g.across
	return g
}

// pooled reports whether an output step is not simply one of the convolution.
func (c *conv1d) pooled() bool { return c.op.Abs || c.op.Pool > 1 }

func (c *conv1d) variant() string {
	name := "panels of 8, windows in place"
	if c.gather {
		name = "panels of 8, windows gathered"
	}
	if c.pooled() {
		name += ", pooled"
	}
	return name
}

func (c *conv1d) scratch(slots int) int {
	if !c.gather {
		return 0
	}
	if !c.share {
		slots = 1
	}
	return slots * c.atOnce * c.w.k
}

func (c *conv1d) run(t *team) error {
	if err := c.lengths.read(c.op.In); err != nil {
		return err
	}
	if pad := max(c.op.PadLeft, c.op.PadRight); c.op.Padding == pass.PadReflect {
		for b, n := range c.lengths.values {
			if n > 0 && n <= pad {
				return fmt.Errorf("conv1d: Lengths: item %d: want more than the %d steps to reflect, or 0, given %d: %w", b, pad, n, pass.ErrInvalid)
			}
		}
	}
	c.windows = t.scratch
	return t.do(c.op.Batch*c.grid.tasks, c.share, c)
}

// A window is the part of the input that an output step sums over: its elements, and
// the first of the weights that they belong to.
type window struct {
	x    []float32
	from int
}

func (c *conv1d) task(i, slot int) {
	b := i / c.grid.tasks
	row, rowEnd, panel, panelEnd := c.grid.task(i%c.grid.tasks, c.op.Out.Len(), panelsOf(c.w.n))
	length := c.lengths.values[b]
	end := max(row, min(rowEnd, c.op.Steps(length)-c.op.Out.From)) // of the rows to compute

	outputs := min(panelEnd*lanes, c.w.n)
	if c.pooled() {
		for r := row; r < end; r++ {
			y := c.y.row(b, r, outputs)[panel*lanes:]
			for j := range y {
				y[j] = float32(math.Inf(-1))
			}
		}
	}
	var windows [maxRows]window
	for from := row * c.op.Pool; from < end*c.op.Pool; from += c.atOnce {
		steps := min(from+c.atOnce, end*c.op.Pool) - from
		for i := range steps {
			windows[i] = c.window(b, c.op.Out.From*c.op.Pool+from+i, length, (slot*c.atOnce+i)*c.w.k)
		}
		for p := panel; p < panelEnd; p++ {
			weights := c.w.panel(p)
			s := within(p, 0, c.w.n)
			for i := range steps {
				w := &windows[i]
				var acc [lanes]float64
				dot8(&acc, w.x, weights[w.from:w.from+len(w.x)])
				y := c.y.row(b, (from+i)/c.op.Pool, s.To)[s.From:]
				if c.pooled() {
					c.pool(y, acc[:], c.w.bias[s.From:s.To])
				} else {
					c.epilogue.store(y, acc[:], c.w.bias[s.From:s.To])
				}
			}
		}
	}
	for r := end; r < rowEnd; r++ {
		clear(c.y.row(b, r, outputs)[panel*lanes:])
	}
}

// pool finishes the sums of a step of the convolution, and keeps in y what is larger
// there.
func (c *conv1d) pool(y []float32, acc []float64, bias []float32) {
	var step [lanes]float32
	c.epilogue.store(step[:len(y)], acc, bias)
	for j, v := range step[:len(y)] {
		if c.op.Abs {
			v = math.Float32frombits(math.Float32bits(v) &^ (1 << 31))
		}
		if v > y[j] { // not so for NaN
			y[j] = v
		}
	}
}

// window returns the window of step t of the convolution of item b. If it has to be
// gathered, that is done in scratch from at on.
func (c *conv1d) window(b, t, length, at int) window {
	in, kernel := c.w.in, c.w.kernel
	first := t*c.op.Stride - c.op.PadLeft // input step of tap 0
	from, to := max(0, -first), min(kernel, length-first)
	inside := from == 0 && to == kernel
	if c.op.Padding == pass.PadReflect && !inside {
		x := c.windows[at : at+kernel*in]
		for tap := range kernel {
			step := first + tap
			if step < 0 {
				step = -step
			}
			if step >= length {
				step = 2*(length-1) - step
			}
			copy(x[tap*in:(tap+1)*in], c.x.row(b, step, in))
		}
		return window{x, 0}
	}
	if to <= from {
		return window{} // nothing but padding
	}
	if to-from == 1 || c.x.stride == in {
		return window{c.x.row(b, first+from, (to-from)*in), from * in}
	}
	x := c.windows[at : at+(to-from)*in]
	if in == 1 {
		src := c.x.row(b, first+from, (to-from-1)*c.x.stride+1)
		for i := range x {
			x[i] = src[i*c.x.stride]
		}
	} else {
		for tap := from; tap < to; tap++ {
			copy(x[(tap-from)*in:], c.x.row(b, first+tap, in))
		}
	}
	return window{x, from * in}
}
