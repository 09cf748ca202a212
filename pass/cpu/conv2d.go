package cpu

import (
	"context"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// conv2d is a loaded [pass.Conv2DWeights]: a matrix over [line][column][in] of a kernel.
type conv2d struct {
	*matrix
	in, size int
	ledger   *ledger
}

// Free implements backend.Memory.
func (w *conv2d) Free() {
	w.release(w.ledger)
	w.matrix = nil
}

func loadConv2D(ctx context.Context, l *ledger, w pass.Conv2DWeights, s pass.Conv2DShape) (backend.Memory, error) {
	taps := s.Size * s.Size
	m, err := newMatrix(l, s.Out, s.In*taps, w.Bias)
	if err != nil {
		return nil, err
	}
	if err := m.fillTaps(ctx, w.Weight, s.In, taps); err != nil {
		m.release(l)
		return nil, err
	}
	return &conv2d{m, s.In, s.Size, l}, nil
}

// convolution computes a [pass.Conv2D] as the product of windows of the image with the
// weights. A task gathers the windows of some pixels, unless a window is a pixel, and
// takes them through some panels.
type convolution struct {
	x, residual, y view
	w              *conv2d
	op             pass.Conv2D
	width, pixels  int // of the output: of a line, and of all lines of an item
	grid           grid
	share          bool
	windows        []float32 // scratch
}

func (p *program) conv2d(v pass.Conv2D, cost pass.Cost) kernel {
	_, width := v.Size()
	k := &convolution{
		x: p.view(v.X), residual: p.view(v.Residual), y: p.view(v.Y),
		w:     p.plan.Param(v.W).(*conv2d),
		op:    v,
		width: width, pixels: v.Out.Len() * width,
		share: cost.FLOP > worthSharing,
	}
	k.grid = newGrid(k.pixels, panelsOf(k.w.n), k.w.k)
	if k.w.size > 1 {
		k.grid = k.grid.wider(k.pixels, panelsOf(k.w.n), 8)
	}
	return k
}

// wider makes tasks of at least so many panels, where what a task prepares for its rows
// should be used often.
func (g grid) wider(rows, panels, least int) grid {
	g.panels = max(g.panels, min(panels, least))
	g.across = (panels + g.panels - 1) / g.panels
	g.tasks = (rows + g.rows - 1) / g.rows * g.across
	return g
}

func (c *convolution) variant() string {
	if c.w.size > 1 {
		return "panels of 8, windows gathered"
	}
	return "panels of 8"
}

func (c *convolution) scratch(slots int) int {
	if c.w.size == 1 {
		return 0
	}
	if !c.share {
		slots = 1
	}
	return slots * c.grid.rows * c.w.k
}

func (c *convolution) run(t *team) error {
	c.windows = t.scratch
	return t.do(c.op.Batch*c.grid.tasks, c.share, c)
}

func (c *convolution) task(i, slot int) {
	b := i / c.grid.tasks
	row, rowEnd, panel, panelEnd := c.grid.task(i%c.grid.tasks, c.pixels, panelsOf(c.w.n))
	var windows [maxRows][]float32
	for r := row; r < rowEnd; r++ {
		line, column := (c.op.Out.From+r/c.width)*c.op.Stride, r%c.width*c.op.Stride
		if c.w.size == 1 {
			windows[r-row] = c.x.row(b, line*c.op.Width+column, c.w.in)
			continue
		}
		at := (slot*c.grid.rows + r - row) * c.w.k
		windows[r-row] = c.windows[at : at+c.w.k]
		c.gather(windows[r-row], b, line, column)
	}
	var acc [maxRows][lanes]float64
	for p := panel; p < panelEnd; p++ {
		weights, s := c.w.panel(p), within(p, 0, c.w.n)
		acc := acc[:rowEnd-row]
		clear(acc)
		for from := 0; from < c.w.k; from += block {
			to := min(from+block, c.w.k)
			for i := range acc {
				dotBlock(&acc[i], windows[i][from:to], weights[from:to])
			}
		}
		for i := range acc {
			c.store(b, row+i, s, acc[i][:])
		}
	}
}

// gather fills the window of 3×3 pixels around a pixel, with zeros around the image.
func (c *convolution) gather(window []float32, b, line, column int) {
	in := c.w.in
	from, to := max(column-1, 0), min(column+2, c.op.Width) // columns within the image
	for l := line - 1; l <= line+1; l++ {
		taps := window[:3*in]
		window = window[3*in:]
		if l < 0 || l >= c.op.Height {
			clear(taps)
			continue
		}
		if from > column-1 {
			clear(taps[:in])
		}
		if to < column+2 {
			clear(taps[2*in:])
		}
		taps = taps[(from-column+1)*in:]
		if first := l*c.op.Width + from; c.x.stride == in {
			copy(taps, c.x.row(b, first, (to-from)*in))
		} else {
			for i := range to - from {
				copy(taps[i*in:], c.x.row(b, first+i, in))
			}
		}
	}
}

// store finishes the sums of the outputs s of a pixel.
func (c *convolution) store(b, pixel int, s pass.Span, acc []float64) {
	y := c.y.row(b, pixel, s.To)[s.From:]
	bias := c.w.bias[s.From:s.To]
	acc = acc[:len(y)]
	if c.residual.given() {
		for j, v := range c.residual.row(b, pixel, s.To)[s.From:] {
			acc[j] += float64(v)
		}
	}
	for j := range y {
		v := float32(acc[j] + float64(bias[j]))
		if c.op.ReLU && v < 0 {
			v = 0
		}
		y[j] = v
	}
}
