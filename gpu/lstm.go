package gpu

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// lstm compiles an LSTM. For each layer and stretch of time a product makes the gates'
// share of the input for all steps at once, in scratch memory; then a kernel takes the
// steps one after the other, as many in one dispatch as it may take time.
func (c *compiler) lstm(op pass.LSTM) error {
	p := c.plan.Param(op.W).(*param)
	layout, err := layRecurrent(p.shape.(pass.LSTMShape), c.limits)
	if err != nil {
		return err
	}
	r := &recurrence{c: c, op: op, layout: layout, shape: layout.shape, buffers: p.buffers}
	r.geometry = chooseRecurrence(r.shape.Hidden, op.Batch, r.shape.Directions, c.limits)
	if r.stretch = min(r.steps(), r.bound()); r.stretch == 0 || !r.fitsScratch() {
		return c.halves(op)
	}
	r.lengths = c.numbers(op.Lengths, op.Batch, func(int) int { return op.Time })
	r.rows = c.numbers(op.StateRows, op.Batch, func(item int) int { return item })
	if err := r.begin(); err != nil {
		return err
	}
	in := series{view: op.X, cols: r.shape.In}
	for l := range r.shape.Layers {
		out := series{cols: r.shape.Directions * r.shape.Hidden}
		if l == r.shape.Layers-1 {
			out.view = op.Y
		} else {
			out.scratch = c.scratch(op.Batch * op.Time * out.cols)
		}
		if err := r.layer(l, in, out); err != nil {
			return fmt.Errorf("layer %d: %w", l, err)
		}
		if l > 0 {
			c.giveBack(in.scratch)
		}
		in = out
	}
	return r.end()
}

// halves compiles an LSTM whose scratch memory exceeds one binding in two parts.
func (c *compiler) halves(op pass.LSTM) error {
	whole, err := pass.Check(op)
	if err != nil {
		return err
	}
	if op.Batch < 2 {
		return fmt.Errorf("one step of one item exceeds the device's %d bytes for one binding: %w", c.limits.MaxStorageBindingSize, pass.ErrUnsupported)
	}
	for _, r := range [2][2]int{{0, op.Batch / 2}, {op.Batch / 2, op.Batch}} {
		part, err := pass.Part(whole, pass.AxisBatch, r[0], r[1])
		if err != nil {
			return err
		}
		if err := c.lstm(part.Op.(pass.LSTM)); err != nil {
			return err
		}
	}
	return nil
}

// A recurrence is an LSTM on its way to dispatches.
type recurrence struct {
	c             *compiler
	op            pass.LSTM
	layout        recurrentLayout
	shape         pass.LSTMShape
	buffers       []*memory
	geometry      recurrentTile
	stretch       int // steps whose gates are in scratch memory at a time
	lengths, rows numbers
	inPlace       bool  // h, c are the user's state
	h, cell       lines // the state that the kernel uses
	fresh         bool  // it is zero at first, whatever it holds

}

// fine reports whether sums lose next to nothing. A recurrence multiplies what it rounds:
// by a factor with every step where its weights are large. One that takes few steps at a
// time hands its state on, so nobody knows for how many it goes on; and it is short.
func (r *recurrence) fine() bool {
	const fewSteps = 4
	return r.op.Time <= fewSteps
}

// stretchWords bounds the scratch memory for gates.
const stretchWords = 16 << 20

// steps returns how many steps' gates fit scratch memory.
func (r *recurrence) steps() int {
	most := min(int(min(r.c.limits.MaxStorageBindingSize, r.c.limits.MaxBufferSize)/4), stretchWords)
	each := r.op.Batch * r.shape.Directions * gates * r.shape.Hidden
	if each > stretchWords { // one step, if it must be
		most = int(min(r.c.limits.MaxStorageBindingSize, r.c.limits.MaxBufferSize) / 4)
		return min(most/each, 1)
	}
	return min(most/each, max(r.op.Time, 1))
}

// A series is a row for each step of each item: of a view, or of scratch memory.
type series struct {
	view    pass.View
	scratch operand // if the view is zero
	cols    int
}

// whole reports whether all steps of a series can be bound.
func (r *recurrence) whole(s series) bool {
	if s.view.IsZero() {
		return r.c.fitsScratch(r.op.Batch * r.op.Time * s.cols)
	}
	return r.c.holds(s.view, r.op.Batch, pass.Span{To: r.op.Time}, s.cols)
}

// bind binds all steps of a series, or those that are needed.
func (r *recurrence) bind(s series, steps pass.Span, write bool) lines {
	switch {
	case s.view.IsZero() && r.whole(s):
		o := s.scratch
		o.write = write
		return lines{operand: o, row: s.cols, item: r.op.Time * s.cols, single: r.op.Time == 1, items: r.op.Batch}
	case s.view.IsZero():
		o, shift := r.c.part(s.scratch, steps.From*s.cols, steps.To*s.cols, write)
		return lines{operand: o, shift: int(shift) - steps.From*s.cols, row: s.cols, items: r.op.Batch}
	case r.whole(s):
		return r.c.lines(s.view, r.op.Batch, r.op.Time, s.cols, write)
	}
	return r.c.window(s.view, r.op.Batch, steps, s.cols, write)
}

// bound returns for how many steps the rows of all series can be bound. Of one item those
// are fewer than all if it must be.
func (r *recurrence) bound() int {
	n, words := max(r.op.Time, 1), int(r.c.limits.MaxStorageBindingSize/4)-int(r.c.limits.StorageOffsetAlignment)/4
	width := r.shape.Directions * r.shape.Hidden
	between := series{cols: width}
	for _, s := range []series{{view: r.op.X, cols: r.shape.In}, {view: r.op.Y, cols: width}, between} {
		if row := max(s.view.RowStride, s.cols); !r.whole(s) && (r.shape.Layers > 1 || !s.view.IsZero()) {
			n = min(n, max(words-s.cols, 0)/row+1)
		}
	}
	return n
}

// fitsScratch reports whether the state fits a binding, and a buffer what is between
// layers; that of several items must fit a binding.
func (r *recurrence) fitsScratch() bool {
	between := 0
	if r.shape.Layers > 1 {
		between = r.op.Batch * r.op.Time * r.shape.Directions * r.shape.Hidden
	}
	return r.c.fitsScratch(r.op.Batch*r.shape.States()*r.shape.Hidden) &&
		(r.c.fitsScratch(between) || r.op.Batch == 1 && 4*uint64(between) <= r.c.limits.MaxBufferSize)
}

// scratch returns scratch memory of rows for each item.
func (r *recurrence) scratch(rows, cols int) lines {
	o := r.c.scratch(r.op.Batch * rows * cols)
	o.write = true
	return lines{operand: o, row: cols, item: rows * cols, single: rows == 1, items: r.op.Batch}
}

// layer emits one layer.
func (r *recurrence) layer(l int, in, out series) error {
	input := r.scratch(r.stretch, r.shape.Directions*gates*r.shape.Hidden)
	for first := 0; first < r.op.Time; first += r.stretch {
		n := min(r.stretch, r.op.Time-first)
		s := stretch{layer: l, steps: n, forward: first, backward: r.op.Time - first - n, first: first == 0}
		input := input
		input.item, input.single = n*input.row, n == 1
		if err := r.product(s, in, input); err != nil {
			return err
		}
		input.write = false
		if err := r.walk(s, input, out); err != nil {
			return err
		}
	}
	r.c.giveBack(input.operand)
	return nil
}

// A stretch is some steps of a layer: from forward on for the forward direction, and as
// many from backward on for the other.
type stretch struct {
	layer, steps      int
	forward, backward int
	first             bool
}

// product emits the gates' share of the input.
func (r *recurrence) product(s stretch, in series, out lines) error {
	h := r.shape.Hidden
	at := r.layout.layer(s.layer)
	m := product{
		label: r.op.Name(), rows: r.op.Batch * s.steps, itemRows: s.steps, biased: true, fine: r.fine(),
		weights: matrix{r.layout.inputs[s.layer], r.buffers[at:]},
	}
	emit := func(from, directions, first int) error {
		m.a, m.out = r.bind(in, pass.Span{From: first, To: first + s.steps}, false), out.from(from*gates*h)
		m.a.shift += first * m.a.row
		m.a.single = s.steps == 1
		m.columns = pass.Span{From: from * gates * h, To: (from + directions) * gates * h}
		m.cost = pass.Cost{FLOP: 2 * float64(m.rows) * float64(m.columns.Len()) * float64(in.cols)}
		m.cost.Bytes = 4 * float64(m.columns.Len()) * float64(in.cols+m.rows)
		return r.c.multiply(m)
	}
	if s.forward == s.backward || r.shape.Directions == 1 {
		return emit(0, r.shape.Directions, s.forward)
	}
	if err := emit(0, 1, s.forward); err != nil {
		return err
	}
	return emit(1, 1, s.backward)
}
