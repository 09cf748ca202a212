package cpu

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// norm is a loaded [pass.NormWeights]. A bias that is not given is zero.
type norm struct {
	gain, bias []float32
	ledger     *ledger
}

// Free implements backend.Memory.
func (w *norm) Free() {
	w.ledger.release(4 * int64(len(w.gain)+len(w.bias)))
	w.gain, w.bias = nil, nil
}

func loadNorm(l *ledger, w pass.NormWeights) (backend.Memory, error) {
	n := len(w.Gain)
	if err := l.reserve(2*n, 4); err != nil {
		return nil, err
	}
	m := &norm{gain: make([]float32, n), bias: make([]float32, n), ledger: l}
	copy(m.gain, w.Gain)
	copy(m.bias, w.Bias)
	return m, nil
}

// apply computes y = (x − mean)·scale·gain + bias. Both may be the same.
func (w *norm) apply(y, x []float32, mean, scale float64) {
	x, gain, bias := x[:len(y)], w.gain[:len(y)], w.bias[:len(y)]
	for i, v := range x {
		y[i] = float32((float64(v)-mean)*scale*float64(gain[i]) + float64(bias[i]))
	}
}

// Moments are the mean of n numbers and the sum of their squared distances from it.
// They are taken in two passes in float64, so that the mean needs no correction: an
// offset of 1e4 costs 13 of 53 bits.
type moments struct{ n, mean, squares float64 }

// scale returns 1/sqrt(variance + eps).
func (m moments) scale(eps float64) float64 { return 1 / math.Sqrt(m.squares/m.n+eps) }

// merge returns the moments of the numbers of m and of o together (Chan, Golub and
// LeVeque, Updating formulae and a pairwise algorithm for computing sample variances,
// 1979).
func (m moments) merge(o moments) moments {
	if m.n == 0 {
		return o
	}
	if o.n == 0 {
		return m
	}
	n, d := m.n+o.n, o.mean-m.mean
	return moments{n, m.mean + d*(o.n/n), m.squares + o.squares + d*d*(m.n*o.n/n)}
}

// sum adds in four chains, which hides the latency of an addition.
func sum(x []float32) float64 {
	var s0, s1, s2, s3 float64
	for ; len(x) >= 4; x = x[4:] {
		v := (*[4]float32)(x)
		s0 += float64(v[0])
		s1 += float64(v[1])
		s2 += float64(v[2])
		s3 += float64(v[3])
	}
	for _, v := range x {
		s0 += float64(v)
	}
	return (s0 + s1) + (s2 + s3)
}

// squares returns Σ(x − mean)².
func squares(x []float32, mean float64) float64 {
	var s0, s1, s2, s3 float64
	for ; len(x) >= 4; x = x[4:] {
		v := (*[4]float32)(x)
		d0, d1, d2, d3 := float64(v[0])-mean, float64(v[1])-mean, float64(v[2])-mean, float64(v[3])-mean
		s0 += d0 * d0
		s1 += d1 * d1
		s2 += d2 * d2
		s3 += d3 * d3
	}
	for _, v := range x {
		d := float64(v) - mean
		s0 += d * d
	}
	return (s0 + s1) + (s2 + s3)
}

// layernorm computes a [pass.LayerNorm].
type layernorm struct {
	spread
	x, y, rotated view
	w             *norm
	table         *rope // for rotated
	pos           items
	head          int // columns
	eps           float64
	share         bool
}

func (p *program) layernorm(l pass.LayerNorm, cost pass.Cost) kernel {
	k := &layernorm{
		spread: newRows(l.Batch, l.Rows, l.Cols),
		x:      p.view(l.X), y: p.view(l.Y), rotated: p.view(l.Rotated),
		w:     p.plan.Param(l.W).(*norm),
		eps:   float64(l.Eps),
		share: cost.FLOP > worthSharing,
	}
	if k.rotated.given() {
		k.table = p.plan.Param(l.Table).(*rope)
		k.pos = p.index("layernorm", "Pos", l.Pos, l.Batch)
		k.head = l.Cols / l.Heads
	}
	return k
}

func (l *layernorm) variant() string { return "rows" }
func (l *layernorm) scratch(int) int { return 0 }

func (l *layernorm) run(t *team) error {
	if l.rotated.given() && l.tasks > 0 {
		if err := l.pos.read(l.table.positions - l.rows); err != nil {
			return err
		}
	}
	return t.do(l.tasks, l.share, l)
}

func (l *layernorm) task(i, _ int) {
	row, end, _, _ := l.spread.task(i)
	for r := row; r < end; r++ {
		b, r := r/l.rows, r%l.rows
		x, y := l.x.row(b, r, l.cols), l.y.row(b, r, l.cols)
		n := float64(l.cols)
		mean := sum(x) / n
		l.w.apply(y, x, mean, moments{n, mean, squares(x, mean)}.scale(l.eps))
		if l.rotated.given() {
			turned := l.rotated.row(b, r, l.cols)
			copy(turned, y)
			l.table.turn(turned, l.head, l.pos.of(b)+r, pass.RopeHalves)
		}
	}
}

// groupnorm computes a [pass.GroupNorm] in two steps: the moments of chunks of rows,
// whose places depend on shapes alone, then the result, by the same chunks.
type groupnorm struct {
	x, y         view
	w            *norm
	batch        int
	rows, cols   int
	chunk        int // rows
	chunks       int // of an item
	lengths      items
	eps          float64
	share        bool
	parts, whole []moments // of each chunk and of each item
	second       bool      // step
}

func (p *program) groupnorm(g pass.GroupNorm, cost pass.Cost) kernel {
	k := &groupnorm{
		x: p.view(g.X), y: p.view(g.Y),
		w:     p.plan.Param(g.W).(*norm),
		batch: g.Batch, rows: g.Rows, cols: g.Cols,
		chunk:   newRows(1, max(g.Rows, 1), g.Cols).perTask,
		lengths: p.items("groupnorm", "Lengths", g.Lengths, g.Batch, func(int) int { return g.Rows }),
		eps:     float64(g.Eps),
		share:   cost.FLOP > worthSharing,
		whole:   make([]moments, g.Batch),
	}
	k.chunks = (k.rows + k.chunk - 1) / k.chunk
	k.parts = make([]moments, k.batch*k.chunks)
	return k
}

func (g *groupnorm) variant() string { return "chunks of rows" }
func (g *groupnorm) scratch(int) int { return 0 }

func (g *groupnorm) run(t *team) error {
	if err := g.lengths.read(g.rows); err != nil {
		return err
	}
	g.second = false
	if err := t.do(len(g.parts), g.share, g); err != nil {
		return err
	}
	for b := range g.whole {
		g.whole[b] = moments{}
		for _, m := range g.parts[b*g.chunks : (b+1)*g.chunks] {
			g.whole[b] = g.whole[b].merge(m)
		}
	}
	g.second = true
	return t.do(len(g.parts), g.share, g)
}

func (g *groupnorm) task(i, _ int) {
	b := i / g.chunks
	row := i % g.chunks * g.chunk
	rowEnd := min(row+g.chunk, g.rows)
	end := max(row, min(rowEnd, g.lengths.values[b]))
	if !g.second {
		m := moments{n: float64((end - row) * g.cols)}
		for r := row; r < end; r++ {
			m.mean += sum(g.x.row(b, r, g.cols))
		}
		m.mean /= max(m.n, 1)
		for r := row; r < end; r++ {
			m.squares += squares(g.x.row(b, r, g.cols), m.mean)
		}
		g.parts[i] = m
		return
	}
	m := g.whole[b]
	for r := row; r < end; r++ {
		g.w.apply(g.y.row(b, r, g.cols), g.x.row(b, r, g.cols), m.mean, m.scale(g.eps))
	}
	for r := end; r < rowEnd; r++ {
		clear(g.y.row(b, r, g.cols))
	}
}

// poolnorm computes a [pass.PoolNorm]. A task is some channels of an item: it pools
// them into the output, then normalises them there.
type poolnorm struct {
	x, y     view
	w        *norm
	op       pass.PoolNorm
	blocks   int // of channels
	lengths  items
	epilogue epilogue
	share    bool
}

// poolBlock is how many channels a task of a poolnorm has: a cache line.
const poolBlock = 16

func (p *program) poolnorm(v pass.PoolNorm, cost pass.Cost) kernel {
	return &poolnorm{
		x: p.view(v.X), y: p.view(v.Y),
		w:        p.plan.Param(v.W).(*norm),
		op:       v,
		blocks:   (v.Cols + poolBlock - 1) / poolBlock,
		lengths:  p.items("poolnorm", "Lengths", v.Lengths, v.Batch, func(int) int { return v.Rows }),
		epilogue: newEpilogue(v.Epilogue),
		share:    cost.FLOP > worthSharing,
	}
}

func (p *poolnorm) variant() string { return "blocks of 16 channels" }
func (p *poolnorm) scratch(int) int { return 0 }

func (p *poolnorm) run(t *team) error {
	if err := p.lengths.read(p.op.Rows); err != nil {
		return err
	}
	return t.do(p.op.Batch*p.blocks, p.share, p)
}

func (p *poolnorm) task(i, _ int) {
	b, from := i/p.blocks, i%p.blocks*poolBlock
	to := min(from+poolBlock, p.op.Cols)
	n := p.lengths.values[b] / p.op.Pool
	var all [poolBlock]moments
	m := all[:to-from]
	for t := range n {
		for j, v := range p.pool(b, t, from, to) {
			m[j].mean += float64(v)
		}
	}
	for j := range m {
		m[j].n = float64(n)
		m[j].mean /= m[j].n
	}
	for t := range n {
		for j, v := range p.y.row(b, t, to)[from:] {
			d := float64(v) - m[j].mean
			m[j].squares += d * d
		}
	}
	var scale [poolBlock]float64
	for j := range m {
		scale[j] = m[j].scale(float64(p.op.Eps)) * float64(p.w.gain[from+j])
	}
	bias := p.w.bias[from:to]
	for t := range n {
		y := p.y.row(b, t, to)[from:]
		for j, v := range y {
			y[j] = float32((float64(v)-m[j].mean)*scale[j] + float64(bias[j]))
		}
		p.epilogue.apply(y, y)
	}
	for t := n; t < p.op.Rows/p.op.Pool; t++ {
		clear(p.y.row(b, t, to)[from:])
	}
}

// pool stores the maxima of a window in its row of the output, and returns them.
func (p *poolnorm) pool(b, t, from, to int) []float32 {
	y := p.y.row(b, t, to)[from:]
	for j := range y {
		y[j] = float32(math.Inf(-1))
	}
	sign := uint32(0)
	if p.op.Abs {
		sign = 1 << 31
	}
	for r := t * p.op.Pool; r < (t+1)*p.op.Pool; r++ {
		for j, v := range p.x.row(b, r, to)[from:] {
			v = math.Float32frombits(math.Float32bits(v) &^ sign)
			if v > y[j] { // not so for NaN
				y[j] = v
			}
		}
	}
	return y
}

// l2norm computes a [pass.L2Norm], in float64 since squares of float32 always fit
// there.
type l2norm struct {
	spread
	x, y  view
	eps   float64
	share bool
}

func (p *program) l2norm(l pass.L2Norm, cost pass.Cost) kernel {
	return &l2norm{newRows(l.Batch, l.Rows, l.Cols), p.view(l.X), p.view(l.Y), float64(l.Eps), cost.FLOP > worthSharing}
}

func (l *l2norm) variant() string   { return "rows" }
func (l *l2norm) scratch(int) int   { return 0 }
func (l *l2norm) run(t *team) error { return t.do(l.tasks, l.share, l) }

func (l *l2norm) task(i, _ int) {
	row, end, _, _ := l.spread.task(i)
	for r := row; r < end; r++ {
		b, r := r/l.rows, r%l.rows
		x, y := l.x.row(b, r, l.cols), l.y.row(b, r, l.cols)
		scale := 1 / max(math.Sqrt(squares(x, 0)), l.eps)
		for i, v := range x {
			y[i] = float32(float64(v) * scale)
		}
	}
}
