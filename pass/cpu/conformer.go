package cpu

import (
	"context"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// taps holds the kernels of a depthwise convolution, [tap][channel], and a bias, which
// is zero if it is not given.
type taps struct {
	n, channels int
	weights     []float32
	bias        []float32
}

// newTaps reads kernels of n taps from a tensor [channels][n].
func newTaps(ctx context.Context, l *ledger, t pass.Tensor, channels, n int, bias []float32) (taps, error) {
	k := taps{n: n, channels: channels}
	if err := l.reserve((n+1)*channels, 4); err != nil {
		return k, err
	}
	k.weights, k.bias = make([]float32, n*channels), make([]float32, channels)
	copy(k.bias, bias)
	err := readTensor(ctx, t, func(from int, v []float32) {
		for i, w := range v {
			k.weights[(from+i)%n*channels+(from+i)/n] = w
		}
	})
	if err != nil {
		k.release(l)
	}
	return k, err
}

func (k *taps) release(l *ledger) {
	l.release(4 * int64(len(k.weights)+len(k.bias)))
	k.weights, k.bias = nil, nil
}

// tap returns the weights of tap i.
func (k *taps) tap(i int) []float32 { return k.weights[i*k.channels : (i+1)*k.channels] }

// multiplyAdd adds x·w to acc for up to eight channels.
func multiplyAdd(acc *[lanes]float64, x, w []float32) {
	if len(x) >= lanes && len(w) >= lanes {
		x, w := (*[lanes]float32)(x), (*[lanes]float32)(w)
		for j := range acc {
			acc[j] += float64(x[j]) * float64(w[j])
		}
		return
	}
	for j := range min(len(x), len(w), lanes) {
		acc[j] += float64(x[j]) * float64(w[j])
	}
}

// convGLU is a loaded [pass.ConvGLUWeights].
type convGLU struct {
	taps
	gain, shift []float32
	ledger      *ledger
}

// Free implements backend.Memory.
func (w *convGLU) Free() {
	w.release(w.ledger)
	w.ledger.release(4 * int64(len(w.gain)+len(w.shift)))
	w.gain, w.shift = nil, nil
}

func loadConvGLU(ctx context.Context, l *ledger, w pass.ConvGLUWeights, s pass.ConvGLUShape) (backend.Memory, error) {
	k, err := newTaps(ctx, l, w.Weight, s.Channels, s.Kernel, w.Bias)
	if err != nil {
		return nil, err
	}
	if err := l.reserve(2*s.Channels, 4); err != nil {
		k.release(l)
		return nil, err
	}
	c := &convGLU{taps: k, gain: make([]float32, s.Channels), shift: make([]float32, s.Channels), ledger: l}
	copy(c.gain, w.Gain)
	copy(c.shift, w.Shift)
	return c, nil
}

// gluRows is how many rows a task of a gluConvolution has.
const gluRows = 32

// gluConvolution computes a [pass.ConvGLU]. A task gates the rows that some output rows
// reach, into scratch, and takes each output row through the convolution, the
// normalisation and the activation.
type gluConvolution struct {
	x, y       view
	w          *convGLU
	op         pass.ConvGLU
	normalised bool
	eps        float64
	chunks     int // of an item
	lengths    items
	share      bool
	space      []float32 // scratch
}

func (p *program) convGLU(g pass.ConvGLU, cost pass.Cost) kernel {
	shape := g.W.Shape().(pass.ConvGLUShape)
	return &gluConvolution{
		x: p.view(g.X), y: p.view(g.Y),
		w:          p.plan.Param(g.W).(*convGLU),
		op:         g,
		normalised: shape.Normalised, eps: float64(shape.Eps),
		chunks:  (g.Out.Len() + gluRows - 1) / gluRows,
		lengths: p.items("convglu", "Lengths", g.Lengths, g.Batch, func(int) int { return g.Rows }),
		share:   cost.FLOP > worthSharing,
	}
}

func (g *gluConvolution) variant() string { return "32 rows, gated in scratch" }

func (g *gluConvolution) scratch(slots int) int {
	if !g.share {
		slots = 1
	}
	return slots * g.slotSize()
}

func (g *gluConvolution) slotSize() int {
	return (min(gluRows, g.op.Out.Len()) + g.w.n - 1) * g.w.channels
}

func (g *gluConvolution) run(t *team) error {
	if err := g.lengths.read(g.op.Rows); err != nil {
		return err
	}
	g.space = t.scratch
	return t.do(g.op.Batch*g.chunks, g.share, g)
}

func (g *gluConvolution) task(i, slot int) {
	b, chunk := i/g.chunks, i%g.chunks
	first := g.op.Out.From + chunk*gluRows
	rowsEnd := min(first+gluRows, g.op.Out.To)
	length := g.lengths.values[b]
	end := max(first, min(rowsEnd, length))

	reach, n := g.w.n/2, g.w.channels
	gated := g.space[slot*g.slotSize():]
	from, to := max(first-reach, 0), min(end+reach, length)
	if first < end {
		for r := from; r < to; r++ {
			x := g.x.row(b, r, 2*n)
			gate(gated[(r-from)*n:(r-from+1)*n], x[:n], x[n:])
		}
	}
	for r := first; r < end; r++ {
		y := g.y.row(b, r-g.op.Out.From, n)
		g.convolve(y, gated, max(r-reach, 0)-from, max(reach-r, 0), min(r+reach+1, length)-max(r-reach, 0))
		if g.normalised {
			mean := sum(y) / float64(n)
			scale := moments{float64(n), mean, squares(y, mean)}.scale(g.eps)
			g.finish(y, mean, scale)
		} else {
			g.finish(y, 0, 1)
		}
	}
	for r := end; r < rowsEnd; r++ {
		clear(g.y.row(b, r-g.op.Out.From, n))
	}
}

// convolve sums count taps from the given one on over the gated rows from row on.
func (g *gluConvolution) convolve(y, gated []float32, row, tap, count int) {
	n := g.w.channels
	for c := 0; c < n; c += lanes {
		var acc [lanes]float64
		for i := range count {
			multiplyAdd(&acc, gated[(row+i)*n+c:(row+i+1)*n], g.w.tap(tap + i)[c:])
		}
		for j := range y[c:min(c+lanes, n)] {
			y[c+j] = float32(acc[j] + float64(g.w.bias[c+j]))
		}
	}
}

// finish normalises a row and applies x·sigmoid(x).
func (g *gluConvolution) finish(y []float32, mean, scale float64) {
	gain, shift := g.w.gain[:len(y)], g.w.shift[:len(y)]
	for i, v := range y {
		y[i] = float32(swish((float64(v)-mean)*scale*float64(gain[i]) + float64(shift[i])))
	}
}

// gate computes y = a·sigmoid(b).
func gate(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i, v := range a {
		y[i] = float32(float64(v) / (1 + exp(-float64(b[i]))))
	}
}

// depthwise is a loaded [pass.DepthwiseWeights].
type depthwise struct {
	taps
	first  taps // without weights: none
	ledger *ledger
}

// Free implements backend.Memory.
func (w *depthwise) Free() {
	w.release(w.ledger)
	w.first.release(w.ledger)
}

func loadDepthwise(ctx context.Context, l *ledger, w pass.DepthwiseWeights, s pass.DepthwiseShape) (backend.Memory, error) {
	k, err := newTaps(ctx, l, w.Weight, s.Channels, 9, w.Bias)
	if err != nil {
		return nil, err
	}
	d := &depthwise{taps: k, ledger: l}
	if s.First {
		if d.first, err = newTaps(ctx, l, w.First, s.Channels, 9, w.FirstBias); err != nil {
			d.taps.release(l)
			return nil, err
		}
	}
	return d, nil
}

// depthwiseRows is how many output rows a task has; with first weights it makes two
// rows of the image between for each, and one more.
const depthwiseRows = 8

// depthwiseConvolution computes a [pass.DepthwiseConv2D]. With first weights, a task
// makes the rows of the image between as it goes on, in turn in the places of three.
type depthwiseConvolution struct {
	x, y      view
	w         *depthwise
	op        pass.DepthwiseConv2D
	columns   int // of the image that is convolved by channel
	frequency int // columns of the output
	chunks    int // of an item
	lengths   items
	share     bool
	space     []float32 // scratch
}

func (p *program) depthwiseConv2D(d pass.DepthwiseConv2D, cost pass.Cost) kernel {
	k := &depthwiseConvolution{
		x: p.view(d.X), y: p.view(d.Y),
		w:       p.plan.Param(d.W).(*depthwise),
		op:      d,
		columns: d.Frequency,
		chunks:  (d.Out.Len() + depthwiseRows - 1) / depthwiseRows,
		lengths: p.items("depthwiseconv2d", "Lengths", d.Lengths, d.Batch, func(int) int { return d.Time }),
		share:   cost.FLOP > worthSharing,
	}
	if k.fused() {
		k.columns = halfOf(d.Frequency)
	}
	_, k.frequency = d.Size()
	return k
}

// halfOf returns how many output steps of stride 2 an axis of n has.
func halfOf(n int) int { return (n + 1) / 2 }

func (d *depthwiseConvolution) fused() bool { return d.w.first.n > 0 }

func (d *depthwiseConvolution) variant() string {
	if d.fused() {
		return "8 rows, of the image between three at once"
	}
	return "8 rows"
}

func (d *depthwiseConvolution) scratch(slots int) int {
	if !d.fused() {
		return 0
	}
	if !d.share {
		slots = 1
	}
	return slots * 3 * d.columns * d.w.channels
}

func (d *depthwiseConvolution) run(t *team) error {
	if err := d.lengths.read(d.op.Time); err != nil {
		return err
	}
	d.space = t.scratch
	return t.do(d.op.Batch*d.chunks, d.share, d)
}

func (d *depthwiseConvolution) task(i, slot int) {
	b, chunk := i/d.chunks, i%d.chunks
	first := d.op.Out.From + chunk*depthwiseRows
	last := min(first+depthwiseRows, d.op.Out.To)
	size := d.columns * d.w.channels // of a row of the image that is convolved
	length := d.lengths.values[b]
	rows := length // of that image
	if d.fused() {
		rows = halfOf(length)
	}
	made := 2*first - 1 // rows below are made
	for t := first; t < last; t++ {
		y := d.y.row(b, t-d.op.Out.From, d.frequency*d.w.channels)
		if t >= halfOf(rows) {
			clear(y)
			continue
		}
		var image [3][]float32 // nil: outside
		for k := range image {
			r := 2*t - 1 + k
			if r < 0 || r >= rows {
				continue
			}
			if !d.fused() {
				image[k] = d.x.row(b, r-d.op.Held.From, size)
				continue
			}
			image[k] = d.space[(3*slot+r%3)*size : (3*slot+r%3+1)*size]
			if r >= made {
				d.make(image[k], b, r, length)
				made = r + 1
			}
		}
		d.convolve(y, image)
	}
}

// convolve makes a row of the output of three rows of the image.
func (d *depthwiseConvolution) convolve(y []float32, image [3][]float32) {
	n := d.w.channels
	for f := range d.frequency {
		from, to := max(2*f-1, 0), min(2*f+2, d.columns)
		out := y[f*n : (f+1)*n]
		for c := 0; c < n; c += lanes {
			var acc [lanes]float64
			for k, row := range image {
				if row == nil {
					continue
				}
				for column := from; column < to; column++ {
					multiplyAdd(&acc, row[column*n+c:(column+1)*n], d.w.tap(3*k + column - 2*f + 1)[c:])
				}
			}
			for j := range out[c:min(c+lanes, n)] {
				out[c+j] = float32(acc[j] + float64(d.w.bias[c+j]))
			}
		}
	}
}

// make makes row r of the image between: relu(convolution of X + bias).
func (d *depthwiseConvolution) make(y []float32, b, r, length int) {
	n := d.w.channels
	var pixels [9]float32
	for f := range d.columns {
		for tap := range pixels {
			row, column := 2*r-1+tap/3, 2*f-1+tap%3
			pixels[tap] = 0
			if row >= 0 && row < length && column >= 0 && column < d.op.Frequency {
				pixels[tap] = d.x.row(b, row-d.op.Held.From, d.op.Frequency)[column]
			}
		}
		out := y[f*n : (f+1)*n]
		for c := 0; c < n; c += lanes {
			var acc [lanes]float64
			for tap, x := range pixels {
				w := d.w.first.tap(tap)[c:]
				for j := range min(len(w), lanes) {
					acc[j] += float64(x) * float64(w[j])
				}
			}
			for j := range out[c:min(c+lanes, n)] {
				v := float32(acc[j] + float64(d.w.first.bias[c+j]))
				if v < 0 {
					v = 0
				}
				out[c+j] = v
			}
		}
	}
}
