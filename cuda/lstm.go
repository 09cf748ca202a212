package cuda

import (
	"fmt"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// lstm compiles an LSTM. For each layer and stretch of time a product makes the gates'
// share of the input for all steps at once; then one launch takes all these steps, if the
// recurrent weights fit the chip, or each step has a launch.
func (c *compiler) lstm(op pass.LSTM, cost pass.Cost) error {
	if op.Batch == 0 {
		return nil
	}
	p := c.plan.Param(op.W).(*lstmParam)
	r := &recurrence{c: c, op: op, p: p, hidden: p.shape.Hidden, directions: p.shape.Directions, cost: cost}
	if op.Time == 0 {
		return r.copyState()
	}
	r.choose()
	r.allocate()
	in := rowsIn{at: func(k *call) kernels.View { return k.read(op.X, op.Batch, op.Time, p.shape.In) }, cols: p.shape.In}
	for l := range p.layers {
		out := func(k *call) kernels.View { return k.write(op.Y, op.Batch, op.Time, r.width()) }
		if l < len(p.layers)-1 {
			between := r.between[l%2]
			out = func(k *call) kernels.View { return r.rows(k.to(between)) }
			if err := r.layer(l, in, out); err != nil {
				return err
			}
			in = rowsIn{at: func(k *call) kernels.View { return r.rows(k.from(between)) }, cols: r.width()}
			continue
		}
		if err := r.layer(l, in, out); err != nil {
			return err
		}
	}
	return r.end()
}

// A recurrence is an LSTM on its way to launches.
type recurrence struct {
	c                  *compiler
	op                 pass.LSTM
	p                  *lstmParam
	hidden, directions int
	cost               pass.Cost // of the op

	way     lstmWay
	why     string
	stretch int // steps whose gates are in scratch at a time

	gates   [2]region // of stretches in turn, so that the next product need not wait
	between [2]region // outputs of layers below the last, in turn
	state   [2]region // h between launches, read and written in turn
	cells   region
	final   region // [batch][layer][direction][depth] h, if it cannot be stored at once
}

// rowsIn are the inputs of a layer: rows for each item and step.
type rowsIn struct {
	at   func(k *call) kernels.View // notes that the launch reads them
	cols int
}

func (r *recurrence) width() int       { return r.directions * r.hidden }
func (r *recurrence) gateColumns() int { return lstmGates * r.width() }
func (r *recurrence) inPlace() bool    { return !r.op.H.IsZero() && !r.op.H0.IsZero() }

// allocate takes the scratch of the op.
func (r *recurrence) allocate() {
	c, op := r.c, r.op
	if !r.way.whole {
		r.gates[0] = c.temporary(4 * op.Batch * r.stretch * r.gateColumns())
		if r.stretch < op.Time {
			r.gates[1] = c.temporary(r.gates[0].bytes)
		}
	}
	for i := range min(len(r.p.layers)-1, 2) {
		r.between[i] = c.temporary(4 * op.Batch * op.Time * r.width())
	}
	if r.way.resident && r.stretch == op.Time {
		return
	}
	if op.Time == 1 && !r.late() {
		return
	}
	if r.late() {
		r.final = c.temporary(4 * op.Batch * r.p.shape.States() * lstmDepth(r.hidden))
		return
	}
	r.cells = c.temporary(4 * op.Batch * r.width())
	for i := range r.state {
		r.state[i] = c.temporary(4 * op.Batch * r.directions * lstmDepth(r.hidden))
	}
}

// late reports whether the final h must wait until all blocks have read the initial one,
// which may be the same memory: a single step in a launch of many blocks.
func (r *recurrence) late() bool { return !r.way.resident && r.op.Time == 1 && r.inPlace() }

// rows returns the view of rows between layers.
func (r *recurrence) rows(at driver.Pointer) kernels.View {
	return kernels.View{P: kernels.F32(at), Row: int64(r.width()), Batch: int64(r.op.Time * r.width())}
}

// layer emits one layer.
func (r *recurrence) layer(l int, in rowsIn, out func(k *call) kernels.View) error {
	for i, first := 0, 0; first < r.op.Time; i, first = i+1, first+r.stretch {
		s := stretch{layer: l, first: first, steps: min(r.stretch, r.op.Time-first), gates: r.gates[i%2]}
		if !r.way.whole {
			if err := r.inputs(s, in); err != nil {
				return fmt.Errorf("layer %d: inputs: %w", l, err)
			}
		}
		if err := r.walk(s, in, out); err != nil {
			return fmt.Errorf("layer %d: %w", l, err)
		}
	}
	return nil
}

// A stretch is some steps of a layer.
type stretch struct {
	layer, first, steps int
	gates               region
}

// walk emits the launches that take the steps of a stretch.
func (r *recurrence) walk(s stretch, in rowsIn, out func(k *call) kernels.View) error {
	if r.way.resident {
		blocks := ceilDiv(r.op.Batch, r.way.items) * r.directions * r.way.blocks
		return r.launch(r.c.call(r.way.kernel), s, s.first, s.steps, in, out, grid{blocks, 1, 1})
	}
	blocks := ceilDiv(r.op.Batch, r.way.items) * ceilDiv(r.hidden, 4) * r.directions
	for i := range s.steps {
		if err := r.launch(r.c.call(r.way.kernel), s, s.first+i, 1, in, out, grid{blocks, 1, 1}); err != nil {
			return err
		}
	}
	return nil
}

// launch emits one launch, of steps from first on.
func (r *recurrence) launch(k *call, s stretch, first, steps int, in rowsIn, out func(k *call) kernels.View, g grid) error {
	op, w := r.op, r.p.layers[s.layer]
	a := kernels.LSTM{
		Weights: kernels.F32(w.hidden.at), Y: out(k),
		Lengths: k.items(op.Lengths, op.Batch, op.Time), Rows: k.items(op.StateRows, op.Batch, op.States-1),
		Batch: uint32(op.Batch), Time: uint32(op.Time), Directions: uint32(r.directions),
		Hidden: uint32(r.hidden), Depth: uint32(lstmDepth(r.hidden)),
		First: uint32(first), Steps: uint32(steps), Offset: uint32(first - s.first), Count: uint32(s.steps),
		Vectors: uint32(r.directions),
	}
	if r.way.whole {
		a.InputWeights, a.InputRow, a.Inputs = kernels.F32(w.input.at(0)), int64(w.input.stride), uint32(in.cols)
		a.Bias, a.X = kernels.F32(w.biasAt(0)), in.at(k)
	} else {
		a.Gates = kernels.F32(k.from(s.gates))
	}
	if begins := first == 0; begins {
		a.Begin = 1
		a.H0, a.C0 = r.stateAt(k, op.H0, s.layer, false), r.stateAt(k, op.C0, s.layer, false)
	} else {
		a.From, a.Cells = kernels.F32(k.from(r.state[r.turn(first)])), kernels.F32(k.from(r.cells))
	}
	if ends := first+steps == op.Time; !ends {
		a.End = kernels.LSTMKeepCells | kernels.LSTMKeepHidden
		a.To, a.Cells = kernels.F32(k.to(r.state[1-r.turn(first)])), kernels.F32(k.to(r.cells))
	} else if !op.H.IsZero() {
		a.C = r.stateAt(k, op.C, s.layer, true)
		if r.late() {
			a.End = kernels.LSTMEndCells | kernels.LSTMKeepHidden
			a.To = kernels.F32(k.to(r.final)) + kernels.F32(4*s.layer*r.directions*lstmDepth(r.hidden))
			a.Vectors = uint32(r.p.shape.States())
		} else {
			a.End = kernels.LSTMEndCells | kernels.LSTMEndHidden
			a.H = r.stateAt(k, op.H, s.layer, true)
		}
	}
	return run(k.because("%s", r.why), a, g, k.l.entry.Shared, r.share(steps))
}

// turn says which of the two buffers of h a launch reads whose first step is given. A
// launch of all steps of a stretch has its blocks to itself and writes where it reads.
func (r *recurrence) turn(first int) int {
	if r.way.resident {
		return first / r.stretch % 2
	}
	return first % 2
}

// stateAt returns the view of a layer's part of a state.
func (r *recurrence) stateAt(k *call, v pass.View, layer int, write bool) kernels.View {
	if v.IsZero() {
		return kernels.View{}
	}
	var to kernels.View
	if write {
		to = k.write(v, r.op.States, r.p.shape.States(), r.hidden)
	} else {
		to = k.read(v, r.op.States, r.p.shape.States(), r.hidden)
	}
	to.P += kernels.F32(4 * layer * r.directions * v.RowStride)
	return to
}

// share returns the recurrence's part of the op's cost for some steps.
func (r *recurrence) share(steps int) pass.Cost {
	weights := float64(r.directions) * lstmGates * float64(r.hidden) * float64(r.hidden)
	return pass.Cost{
		FLOP:  2 * float64(r.op.Batch) * float64(steps) * weights,
		Bytes: 4 * (weights + float64(r.op.Batch)*float64(steps)*float64(r.gateColumns()+r.width())),
	}
}
