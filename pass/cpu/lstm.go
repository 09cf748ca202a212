package cpu

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// lstmStack is a loaded [pass.LSTMWeights].
type lstmStack struct {
	cells  [][]lstmCell // [layer][direction]
	ledger *ledger
}

type lstmCell struct {
	input  *matrix // [4·hidden][in], with the bias
	hidden *matrix // [4·hidden][hidden]
}

// Free implements backend.Memory.
func (w *lstmStack) Free() {
	for _, layer := range w.cells {
		for _, cell := range layer {
			cell.input.release(w.ledger)
			cell.hidden.release(w.ledger)
		}
	}
	w.cells = nil
}

func loadLSTM(ctx context.Context, l *ledger, w pass.LSTMWeights, s pass.LSTMShape) (_ backend.Memory, err error) {
	stack := &lstmStack{ledger: l}
	defer func() {
		if err != nil {
			stack.Free()
		}
	}()
	load := func(t pass.Tensor, bias []float32) (*matrix, error) {
		m, err := newMatrix(l, t.Shape[0], t.Shape[1], bias)
		if err != nil {
			return nil, err
		}
		return m, m.fill(ctx, t, 0)
	}
	for _, layer := range w.Layers {
		cells := make([]lstmCell, s.Directions)
		stack.cells = append(stack.cells, cells)
		for d, cell := range layer {
			if cells[d].input, err = load(cell.Input, cell.Bias); err != nil {
				return nil, err
			}
			if cells[d].hidden, err = load(cell.Hidden, nil); err != nil {
				return nil, err
			}
		}
	}
	return stack, nil
}

// Geometry of the work of a task.
const (
	lstmItems = 16 // items that go through time together, so that weights are read once for all
	lstmRows  = 64 // steps × items whose input products are made at once
)

// lstm computes a [pass.LSTM], layer by layer. A task is some items in one direction:
// the input products of many steps, then these steps one after the other.
type lstm struct {
	x, y, h0, c0, h, c view
	w                  *lstmStack
	op                 pass.LSTM
	lengths, rows      items
	hidden, directions int
	group              int // items of a task
	ahead              int // steps whose input products are made at once
	share              bool

	mid     view // output of every other layer below the last
	midSize int
	slot    int // scratch of a task
	layer   int // in hand
	space   []float32
	seen    []uint64 // run in which a row of the state was used last
	runs    uint64
}

func (p *program) lstm(v pass.LSTM, cost pass.Cost) []kernel {
	shape := v.W.Shape().(pass.LSTMShape)
	k := &lstm{
		x: p.view(v.X), y: p.view(v.Y), h0: p.view(v.H0), c0: p.view(v.C0), h: p.view(v.H), c: p.view(v.C),
		w:       p.plan.Param(v.W).(*lstmStack),
		op:      v,
		lengths: p.items("lstm", "Lengths", v.Lengths, v.Batch, func(int) int { return v.Time }),
		rows:    p.items("lstm", "StateRows", v.StateRows, v.Batch, func(b int) int { return b }),
		hidden:  shape.Hidden, directions: shape.Directions,
		group: min(v.Batch, lstmItems),
		share: cost.FLOP > worthSharing,
	}
	k.ahead = max(1, min(v.Time, lstmRows/k.group))
	if shape.Layers > 1 {
		width := shape.Directions * shape.Hidden
		k.mid = view{&memory{}, 0, width, v.Time * width}
		k.midSize = v.Batch * v.Time * width
	}
	k.slot = k.group * k.hidden * (2*4*k.ahead + 2)
	if k.rows.from.given() {
		k.seen = make([]uint64, v.States)
	}
	return k.layers()
}

func (l *lstm) variant() string {
	return fmt.Sprintf("%d items together, input products of %d steps at once", l.group, l.ahead)
}

func (l *lstm) scratch(slots int) int {
	if !l.share {
		slots = 1
	}
	return l.midSize + slots*l.slot
}

// An lstmLayer is one layer of an op, a piece of its own: what a layer hands to the
// next stays in scratch, since nothing of the stream runs between pieces of a step.
type lstmLayer struct {
	*lstm
	index int
}

func (l *lstm) layers() []kernel {
	var all []kernel
	for i := range l.w.cells {
		all = append(all, lstmLayer{l, i})
	}
	return all
}

func (l lstmLayer) run(t *team) error {
	if l.index == 0 {
		if err := l.readNumbers(); err != nil {
			return err
		}
	}
	if l.midSize > 0 {
		l.mid.m.floats = t.scratch[:l.midSize]
	}
	l.space = t.scratch[l.midSize:]
	l.layer = l.index
	return t.do((l.op.Batch+l.group-1)/l.group*l.directions, l.share, l.lstm)
}

// readNumbers takes lengths and rows of the state from the device.
func (l *lstm) readNumbers() error {
	if err := l.lengths.read(l.op.Time); err != nil {
		return err
	}
	if err := l.rows.read(l.op.States - 1); err != nil {
		return err
	}
	if l.seen != nil {
		l.runs++
		for b, row := range l.rows.values {
			if l.seen[row] == l.runs {
				return fmt.Errorf("lstm: StateRows: item %d: row %d is given twice: %w", b, row, pass.ErrInvalid)
			}
			l.seen[row] = l.runs
		}
	}
	return nil
}

// output returns where a layer's output goes: the last one's to Y, the one's below to
// mid, and so on in turn.
func (l *lstm) output(layer int) *view {
	if (len(l.w.cells)-1-layer)%2 == 0 {
		return &l.y
	}
	return &l.mid
}

func (l *lstm) task(i, slot int) {
	first, d := i/l.directions*l.group, i%l.directions
	lengths := l.lengths.values[first:min(first+l.group, l.op.Batch)]
	n := len(lengths)
	space := l.space[slot*l.slot : (slot+1)*l.slot]
	h, space := space[:n*l.hidden], space[n*l.hidden:]
	c, space := space[:n*l.hidden], space[n*l.hidden:]
	size := n * 4 * l.hidden // of the gates of a step
	gates := fineSums{space[:size*l.ahead], space[size*l.ahead:]}
	l.start(first, d, h, c)
	steps := 0
	for _, length := range lengths {
		steps = max(steps, length)
	}
	for from := 0; from < steps; from += l.ahead {
		to := min(from+l.ahead, steps)
		l.inputs(first, d, lengths, from, to, gates)
		for s := from; s < to; s++ {
			l.step(first, d, lengths, s, h, c, gates.part((s-from)*size, (s-from+1)*size))
		}
	}
	l.finish(first, d, lengths, h, c)
}

// at returns the time of a direction's step s in an item of the given length.
func (l *lstm) at(d, s, length int) int {
	if d == 1 {
		return length - 1 - s
	}
	return s
}

// start sets h and c of a task's items to the initial state.
func (l *lstm) start(first, d int, h, c []float32) {
	if !l.h0.given() {
		clear(h)
		clear(c)
		return
	}
	for i := range len(h) / l.hidden {
		row, at := l.rows.values[first+i], i*l.hidden
		copy(h[at:at+l.hidden], l.h0.row(row, l.layer*l.directions+d, l.hidden))
		copy(c[at:at+l.hidden], l.c0.row(row, l.layer*l.directions+d, l.hidden))
	}
}

// inputs computes what the inputs of steps [from, to) give to the gates, bias
// included: gates [step][item][4·hidden].
func (l *lstm) inputs(first, d int, lengths []int, from, to int, gates fineSums) {
	w := l.w.cells[l.layer][d].input
	in := &l.x
	if l.layer > 0 {
		in = l.output(l.layer - 1)
	}
	for p := range panelsOf(w.n) {
		weights, s := w.panel(p), within(p, 0, w.n)
		for step := from; step < to; step++ {
			for i, length := range lengths {
				if step >= length {
					continue
				}
				var acc [lanes]float64
				dotFine(&acc, in.row(first+i, l.at(d, step, length), w.k), weights)
				row := ((step-from)*len(lengths) + i) * w.n
				for j := s.From; j < s.To; j++ {
					gates.set(row+j, acc[j-s.From]+float64(w.bias[j]))
				}
			}
		}
	}
}

// step takes the items that are long enough through step s.
func (l *lstm) step(first, d int, lengths []int, s int, h, c []float32, gates fineSums) {
	w, n := l.w.cells[l.layer][d].hidden, l.hidden
	for p := range panelsOf(w.n) {
		weights, cols := w.panel(p), within(p, 0, w.n)
		for i, length := range lengths {
			if s >= length {
				continue
			}
			var acc [lanes]float64
			dotFine(&acc, h[i*n:(i+1)*n], weights)
			for j := cols.From; j < cols.To; j++ {
				gates.set(i*w.n+j, gates.at(i*w.n+j)+acc[j-cols.From])
			}
		}
	}
	out := l.output(l.layer)
	for i, length := range lengths {
		if s >= length {
			continue
		}
		h, c := h[i*n:(i+1)*n], c[i*n:(i+1)*n]
		gates.part(i*w.n, (i+1)*w.n).cell(h, c)
		copy(out.row(first+i, l.at(d, s, length), (d+1)*n)[d*n:], h)
	}
}

// fineSums are sums in two float32 each, which together have 48 bits.
type fineSums struct{ high, low []float32 }

func (g fineSums) part(from, to int) fineSums { return fineSums{g.high[from:to], g.low[from:to]} }
func (g fineSums) at(i int) float64           { return float64(g.high[i]) + float64(g.low[i]) }

func (g fineSums) set(i int, v float64) {
	g.high[i], g.low[i] = float32(v), 0
	if rest := v - float64(g.high[i]); rest-rest == 0 { // else v or its half is infinite
		g.low[i] = float32(rest)
	}
}

// cell applies the formulas of [pass.LSTM] to the sums of the gates, rounding nothing but
// c and h.
func (g fineSums) cell(h, c []float32) {
	n := len(h)
	for j := range h {
		i, f, z, o := g.at(j), g.at(n+j), g.at(2*n+j), g.at(3*n+j)
		s := logistic(f)*float64(c[j]) + logistic(i)*hyperbolic(z)
		c[j] = float32(s)
		h[j] = float32(logistic(o) * hyperbolic(s))
	}
}

// finish stores the final state, and zeros beyond the items' lengths.
func (l *lstm) finish(first, d int, lengths []int, h, c []float32) {
	n := l.hidden
	for i, length := range lengths {
		if l.h.given() {
			row, state := l.rows.values[first+i], l.layer*l.directions+d
			copy(l.h.row(row, state, n), h[i*n:(i+1)*n])
			copy(l.c.row(row, state, n), c[i*n:(i+1)*n])
		}
		if l.layer == len(l.w.cells)-1 {
			for t := length; t < l.op.Time; t++ {
				clear(l.y.row(first+i, t, (d+1)*n)[d*n:])
			}
		}
	}
}
