package cases

import (
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases/truth"
)

func lstmKind() kind {
	return kind{
		zero:    pass.LSTM{},
		outputs: []string{"Y"},
		keeps:   []string{"H", "C"},
		sizes:   map[string][3]string{"X": {"Batch", "Time", ""}, "H0": {"States", "", ""}, "H": {"States", "", ""}},
		weights: (*weightReader).lstm,
		list:    lstmEntries,
		check:   lstmCheck,
		truth:   lstmTruth,
	}
}

func lstmNumbers(l pass.LSTM, d *data) (lengths, rows []int) {
	lengths = d.items("Lengths", l.Lengths, l.Batch, l.Time, func(int) int { return l.Time })
	rows = d.items("StateRows", l.StateRows, l.Batch, l.States-1, func(b int) int { return b })
	return lengths, rows
}

func lstmCheck(op pass.Checked, d *data) error {
	_, rows := lstmNumbers(op.Op.(pass.LSTM), d)
	for b, row := range rows {
		if slices.Contains(rows[:b], row) {
			return invalid("%s: StateRows: item %d: row %d is given twice", d.c.Name, b, row)
		}
	}
	return d.err
}

func lstmTruth(op pass.Checked, d *data) ([]Tensor, error) {
	l := op.Op.(pass.LSTM)
	lengths, rows := lstmNumbers(l, d)
	w := d.recurrent("W")
	initial := truth.State{H: d.values("H0"), C: d.values("C0")}
	var before truth.State
	if !l.H.IsZero() {
		n := l.States * len(w.Cells) * len(w.Cells[0]) * w.Hidden
		before = truth.State{H: Tensor{Words: d.words("H", n)}.float64s(), C: Tensor{Words: d.words("C", n)}.float64s()}
	}
	y, after := truth.LSTM(l, w, d.values("X"), lengths, rows, initial, before)
	outputs := []Tensor{result(op, "Y", rounded(y))}
	if !l.H.IsZero() {
		outputs = append(outputs, result(op, "H", rounded(after.H)), result(op, "C", rounded(after.C)))
	}
	return outputs, d.err
}

// recurrent decodes the weights of a field.
func (d *data) recurrent(field string) truth.Recurrent {
	w := d.weights(field).(pass.LSTMWeights)
	r := truth.Recurrent{In: w.Layers[0][0].Input.Shape[1], Hidden: w.Layers[0][0].Hidden.Shape[1]}
	for _, layer := range w.Layers {
		var cells []truth.Cell
		for _, cell := range layer {
			cells = append(cells, truth.Cell{Input: d.decode(cell.Input), Hidden: d.decode(cell.Hidden), Bias: widen(cell.Bias)})
		}
		r.Cells = append(r.Cells, cells)
	}
	return r
}

// How a case treats the state.
type stateUse uint8

const (
	noState  stateUse = iota
	stateIn           // initial state only
	stateOut          // final state only
	stateTo           // from one pair of buffers to another
	inPlace
)

// An lstmSpec is an LSTM case in few words.
type lstmSpec struct {
	in, hidden, layers, directions int
	batch, time                    int
	state                          stateUse
	states                         int // rows of the state; 0: batch
	lengths, rows                  []int
	onDevice                       bool // lengths and rows
	typ                            pass.DType
	noBias                         bool
	special                        func(c *Case)
}

func (s lstmSpec) entry(label string) Entry {
	s.layers, s.directions = max(s.layers, 1), max(s.directions, 1)
	if s.typ == 0 {
		s.typ = pass.F32
	}
	name := fmt.Sprintf("lstm/%s-%dx%d-%dto%d-l%dd%d", label, s.batch, s.time, s.in, s.hidden, s.layers, s.directions)
	return Entry{Name: name, Op: "lstm", make: s.make}
}

func (s lstmSpec) weights(name string) pass.LSTMWeights {
	w := pass.LSTMWeights{Name: name}
	in := s.in
	for l := range s.layers {
		var layer []pass.LSTMCell
		for d := range s.directions {
			cell := fmt.Sprintf("%s/W.%d.%d", name, l, d)
			matrix := func(part string, k int) pass.Tensor {
				return Encode(cell+part, s.typ, Recipe(cell+part, 1, 4*s.hidden*k, spread(k), 0), 4*s.hidden, k)
			}
			c := pass.LSTMCell{Input: matrix(".input", in), Hidden: matrix(".hidden", s.hidden)}
			if !s.noBias {
				c.Bias = Recipe(cell+".bias", 1, 4*s.hidden, 1, 0)
			}
			layer = append(layer, c)
		}
		w.Layers = append(w.Layers, layer)
		in = s.directions * s.hidden
	}
	return w
}

func (s lstmSpec) make(name string) Case {
	c := Case{
		Op:      pass.LSTM{Batch: s.batch, Time: s.time, States: s.states},
		Inputs:  []Tensor{F32("X", Recipe(name+"/X", 1, s.batch*s.time*s.in, 1, 0), s.batch, s.time, s.in)},
		Params:  []Param{{"W", s.weights(name)}},
		Outputs: []string{"Y"},
	}
	poisonBeyond(&c, 0, s.lengths)
	states := max(s.states, s.batch)
	if s.states > 0 {
		states = s.states
	}
	row := s.layers * s.directions * s.hidden
	state := func(field string, scale float32) {
		t := F32(field, Recipe(name+"/"+field, 1, states*row, scale, 0), states, s.layers*s.directions, s.hidden)
		for r := range states { // a row that no item uses is neither read nor written
			if s.rows != nil && !slices.Contains(s.rows, r) {
				for i := range row {
					t.Words[r*row+i] = nan | uint32(i)
				}
			}
		}
		c.Inputs = append(c.Inputs, t)
	}
	if s.state == stateIn || s.state == stateTo || s.state == inPlace {
		state("H0", 1)
		state("C0", 2)
	}
	if s.state == stateOut || s.state == stateTo {
		state("H", 1)
		state("C", 2)
	}
	if s.state >= stateOut {
		c.Outputs = append(c.Outputs, "H", "C")
	}
	if s.state == inPlace {
		c.Same = map[string]string{"H": "H0", "C": "C0"}
	}
	if s.lengths != nil {
		c.setItems("Lengths", s.lengths, s.onDevice)
	}
	if s.rows != nil {
		c.setItems("StateRows", s.rows, s.onDevice)
	}
	if s.special != nil {
		s.special(&c)
	}
	return c
}

func lstmEntries() []Entry {
	var all []Entry
	add := func(label string, s lstmSpec) { all = append(all, s.entry(label)) }
	e := edges()
	for i, hidden := range e[:12] {
		add("edge", lstmSpec{in: e[(5*i+2)%12], hidden: hidden, batch: 1 + i%3, time: 1 + i%4, noBias: i%2 == 1})
	}
	add("silero", lstmSpec{in: 128, hidden: 128, batch: 1, time: 3, state: inPlace})
	add("silero-streams", lstmSpec{in: 128, hidden: 128, batch: 3, time: 1, state: inPlace, states: 5, rows: []int{4, 0, 2}, lengths: []int{1, 0, 1}, onDevice: true})
	for u, label := range []string{"plain", "state-in", "state-out", "state-to", "in-place"} {
		for _, dirs := range []int{1, 2} {
			add(label, lstmSpec{in: 6, hidden: 10, layers: dirs, directions: dirs, batch: 2, time: 5, state: stateUse(u)})
		}
	}
	add("stack", lstmSpec{in: 9, hidden: 8, layers: 3, batch: 2, time: 6, state: stateTo})
	add("bidirectional", lstmSpec{in: 5, hidden: 33, layers: 2, directions: 2, batch: 2, time: 7, state: stateTo, lengths: []int{7, 3}})
	for _, onDevice := range []bool{false, true} {
		where := map[bool]string{true: "-device"}[onDevice]
		for _, dirs := range []int{1, 2} {
			add("lengths"+where, lstmSpec{in: 4, hidden: 7, layers: 2, directions: dirs, batch: 4, time: 6, lengths: []int{6, 1, 0, 4}, state: stateTo, onDevice: onDevice})
			add("lengths-plain"+where, lstmSpec{in: 4, hidden: 7, directions: dirs, batch: 3, time: 4, lengths: []int{0, 4, 2}, onDevice: onDevice})
			add("rows"+where, lstmSpec{in: 4, hidden: 9, layers: 2, directions: dirs, batch: 2, time: 3, states: 5, rows: []int{3, 1}, state: inPlace, onDevice: onDevice})
			add("rows-to"+where, lstmSpec{in: 4, hidden: 9, directions: dirs, batch: 3, time: 3, states: 4, rows: []int{2, 0, 3}, lengths: []int{2, 0, 3}, state: stateTo, onDevice: onDevice})
			add("rows-out"+where, lstmSpec{in: 4, hidden: 9, directions: dirs, batch: 2, time: 3, states: 3, rows: []int{2, 0}, state: stateOut, onDevice: onDevice})
		}
	}
	add("more-states", lstmSpec{in: 3, hidden: 4, batch: 2, time: 2, states: 4, state: stateIn})
	add("no-time", lstmSpec{in: 3, hidden: 5, batch: 2, time: 0, state: stateTo})
	add("no-time-in-place", lstmSpec{in: 3, hidden: 5, batch: 2, time: 0, state: inPlace})
	for _, t := range []pass.DType{pass.F16, pass.BF16, pass.Q8_0} {
		add(t.String(), lstmSpec{in: 32, hidden: 32, batch: 2, time: 3, typ: t, state: stateTo})
	}
	add("long", lstmSpec{in: 8, hidden: 16, batch: 1, time: 129, state: stateOut})
	add("saturated", lstmSpec{in: 8, hidden: 8, batch: 2, time: 4, state: stateOut, special: scaleInput(1e6)})
	add("nan-item", lstmSpec{in: 4, hidden: 6, batch: 3, time: 4, state: stateTo, special: func(c *Case) { c.Inputs[0].Words[(1*4+2)*4+1] = nan }})
	for _, hidden := range e {
		for _, in := range e {
			all = append(all, full(lstmSpec{in: in, hidden: hidden, directions: 2, batch: 2, time: 5, lengths: []int{5, 4}, state: stateTo}.entry("pairs")))
		}
	}
	all = append(all, full(lstmSpec{in: 256, hidden: 256, layers: 3, batch: 3, time: 40, lengths: []int{40, 25, 1}, state: stateTo}.entry("ragged")))
	return all
}
