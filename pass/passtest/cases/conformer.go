package cases

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases/truth"
)

func convGLUKind() kind {
	return kind{
		zero:    pass.ConvGLU{},
		outputs: []string{"Y"},
		sizes:   map[string][3]string{"X": {"Batch", "Rows", ""}},
		weights: (*weightReader).convGLU,
		list:    convGLUEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			g := op.Op.(pass.ConvGLU)
			w := d.weights("W").(pass.ConvGLUWeights)
			shape := w.Weight.Shape
			gated := truth.Gated{Channels: shape[0], K: shape[len(shape)-1], Kernel: d.decode(w.Weight), Bias: widen(w.Bias),
				Norm: truth.Norm{Gain: widen(w.Gain), Bias: widen(w.Shift)}, Normalised: w.Normalised, Eps: float64(w.Eps)}
			if w.Eps == 0 {
				gated.Eps = 1e-5
			}
			y := truth.ConvGLU(g, gated, d.values("X"), d.lengths(g.Lengths, g.Batch, g.Rows))
			return []Tensor{result(op, "Y", rounded(y))}, d.err
		},
	}
}

func depthwiseKind() kind {
	return kind{
		zero:    pass.DepthwiseConv2D{},
		outputs: []string{"Y"},
		sizes:   map[string][3]string{"X": {"Batch", "Time", ""}},
		needs:   []string{"Frequency"},
		weights: (*weightReader).depthwise,
		list:    depthwiseEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			v := op.Op.(pass.DepthwiseConv2D)
			w := d.weights("W").(pass.DepthwiseWeights)
			decoded := truth.Depthwise{Channels: w.Weight.Shape[0], W: d.decode(w.Weight), Bias: widen(w.Bias), Lead: widen(w.FirstBias)}
			if w.First.Data != nil {
				decoded.First = d.decode(w.First)
			}
			y := truth.DepthwiseConv2D(v, decoded, d.values("X"), d.lengths(v.Lengths, v.Batch, v.Time))
			return []Tensor{result(op, "Y", rounded(y))}, d.err
		},
	}
}

// gluParam makes the weights of a ConvGLU.
func gluParam(channels, kernel int, t pass.DType, bias, normalised bool, eps float32) func(string) []Param {
	return func(name string) []Param {
		w := pass.ConvGLUWeights{Name: name, Normalised: normalised, Eps: eps,
			Weight: Encode(name+"/W.weight", t, Recipe(name+"/W.weight", 1, channels*kernel, 1, 0), channels, kernel),
			Gain:   Recipe(name+"/W.gain", 1, channels, 0.5, 1), Shift: Recipe(name+"/W.shift", 1, channels, 1, 0)}
		if bias {
			w.Bias = Recipe(name+"/W.bias", 1, channels, 1, 0)
		}
		return []Param{{"W", w}}
	}
}

func convGLUEntries() []Entry {
	var all []Entry
	add := func(label string, s rowSpec, channels int, params func(string) []Param) {
		op, _ := s.op.(pass.ConvGLU)
		op.Batch, op.Rows = s.batch, s.rows
		s.op, s.cols, s.params = op, 2*channels, params
		if s.values == nil {
			s.values = scaled(2, 0)
		}
		all = append(all, s.entry(label))
	}
	e := edges()
	for i, rows := range e {
		channels, kernel := e[(5*i+3)%len(e)], []int{1, 3, 5, 9, 31}[i%5]
		add(fmt.Sprintf("edge-k%d", kernel), rowSpec{batch: i % 3, rows: rows}, channels, gluParam(channels, kernel, pass.F32, i%4 > 0, i%2 == 0, 0))
	}
	add("gigaam", rowSpec{batch: 2, rows: 9}, 768, gluParam(768, 5, pass.F32, true, true, 0))
	add("parakeet", rowSpec{rows: 11}, 1024, gluParam(1024, 9, pass.F32, false, false, 0))
	for _, t := range []pass.DType{pass.F16, pass.BF16} {
		add(t.String(), rowSpec{rows: 12}, 40, gluParam(40, 9, t, true, false, 0))
	}
	add("eps", rowSpec{rows: 6}, 20, gluParam(20, 3, pass.F32, true, true, 0.25))
	add("shorter-than-kernel", rowSpec{batch: 2, rows: 3}, 6, gluParam(6, 31, pass.F32, true, true, 0))
	for _, out := range []pass.Span{{From: 0, To: 4}, {From: 5, To: 9}, {From: 11, To: 12}, {From: 3, To: 3}} {
		add(fmt.Sprintf("out-%d-%d", out.From, out.To), rowSpec{op: pass.ConvGLU{Out: out}, batch: 2, rows: 12}, 10, gluParam(10, 5, pass.F32, true, true, 0))
	}
	for _, onDevice := range []bool{false, true} {
		for _, normalised := range []bool{false, true} {
			label := map[bool]string{true: "lengths-norm", false: "lengths"}[normalised] + whereLabel(onDevice)
			add(label, rowSpec{batch: 4, rows: 13, lengths: []int{13, 0, 1, 8}, onDevice: onDevice}, 11, gluParam(11, 5, pass.F32, true, normalised, 0))
		}
		op := pass.ConvGLU{Out: pass.Span{From: 5, To: 10}}
		add("lengths-out"+whereLabel(onDevice), rowSpec{op: op, batch: 4, rows: 13, lengths: []int{13, 0, 6, 8}, onDevice: onDevice}, 11, gluParam(11, 5, pass.F32, true, true, 0))
	}
	add("nan-in-reach", rowSpec{rows: 20, special: putNaN(8*10 + 3)}, 5, gluParam(5, 5, pass.F32, true, false, 0))
	add("nan-gate", rowSpec{rows: 20, special: putNaN(8*10 + 7)}, 5, gluParam(5, 5, pass.F32, true, true, 0))
	add("extreme-gates", rowSpec{rows: 6, values: special(100, -100, 1e4, -1e4, 0, 50, -88)}, 5, gluParam(5, 3, pass.F32, true, false, 0))
	add("no-rows", rowSpec{}, 5, gluParam(5, 3, pass.F32, true, true, 0))
	return all
}

// A depthwiseSpec is a DepthwiseConv2D case in few words.
type depthwiseSpec struct {
	op          pass.DepthwiseConv2D
	channels    int
	typ         pass.DType // 0: F32
	first, bias bool
	lengths     []int
	onDevice    bool // lengths
	special     func(c *Case)
}

func (s depthwiseSpec) entry(label string) Entry {
	if s.first {
		label += "-first"
	}
	name := fmt.Sprintf("depthwiseconv2d/%s-%dx%dx%dx%d", label, max(s.op.Batch, 1), s.op.Time, s.op.Frequency, s.channels)
	return Entry{Name: name, Op: "depthwiseconv2d", make: s.make}
}

func (s depthwiseSpec) make(name string) Case {
	if s.typ == 0 {
		s.typ = pass.F32
	}
	kernel := func(suffix string) pass.Tensor {
		return Encode(name+suffix, s.typ, Recipe(name+suffix, 1, s.channels*9, 1, 0), s.channels, 3, 3)
	}
	w := pass.DepthwiseWeights{Name: name, Weight: kernel("/W")}
	if s.bias {
		w.Bias = Recipe(name+"/W.bias", 1, s.channels, 1, 0)
	}
	cols := s.op.Frequency * s.channels
	if s.first {
		cols, w.First = s.op.Frequency, kernel("/W.first")
		if s.bias {
			w.FirstBias = Recipe(name+"/W.first.bias", 1, s.channels, 1, 0)
		}
	}
	batch, held := max(s.op.Batch, 1), s.op.Held.Resolve(s.op.Time)
	c := Case{Op: s.op, Params: []Param{{"W", w}}, Outputs: []string{"Y"}}
	c.Inputs = []Tensor{F32("X", Recipe(name+"/X", 1, batch*held.Len()*cols, 1, 0), batch, held.Len(), cols)}
	if s.lengths != nil {
		within := make([]int, len(s.lengths)) // rows of X that belong to the item
		for b, n := range s.lengths {
			within[b] = min(max(n-held.From, 0), held.Len())
		}
		poisonBeyond(&c, 0, within)
		c.setItems("Lengths", s.lengths, s.onDevice)
	}
	if s.special != nil {
		s.special(&c)
	}
	return c
}

func depthwiseEntries() []Entry {
	var all []Entry
	add := func(label string, s depthwiseSpec) { all = append(all, s.entry(label)) }
	e := edges()
	for i, time := range []int{1, 2, 3, 7, 8, 9, 16, 33} {
		for _, first := range []bool{false, true} {
			op := pass.DepthwiseConv2D{Batch: i % 3, Time: time, Frequency: e[(3*i+1)%9]}
			add("edge", depthwiseSpec{op: op, channels: e[(5*i+2)%8], first: first, bias: i%2 == 0})
		}
	}
	for _, first := range []bool{false, true} {
		add("parakeet", depthwiseSpec{op: pass.DepthwiseConv2D{Batch: 2, Time: 11, Frequency: 20}, channels: 64, first: first, bias: true})
		for _, t := range []pass.DType{pass.F16, pass.BF16} {
			add(t.String(), depthwiseSpec{op: pass.DepthwiseConv2D{Time: 9, Frequency: 10}, channels: 8, first: first, bias: true, typ: t})
		}
		// Output rows 2 to 4 read input rows 3 to 8, or 2 to 4 of the image between, which
		// are made of 5 to 16 of the input.
		op := pass.DepthwiseConv2D{Batch: 2, Time: 23, Frequency: 10, Out: pass.Span{From: 2, To: 4}}
		add("out", depthwiseSpec{op: op, channels: 6, first: first, bias: true})
		op.Held = pass.Span{From: 3, To: 8}
		if first {
			op.Held = pass.Span{From: 5, To: 16}
		}
		add("held", depthwiseSpec{op: op, channels: 6, first: first, bias: true})
		op.Held.From, op.Held.To = op.Held.From-2, op.Held.To+3
		add("held-more", depthwiseSpec{op: op, channels: 6, first: first, bias: true})
		time, _ := pass.DepthwiseConv2D{Time: 23}.Size()
		if first {
			time = (time + 1) / 2
		}
		op.Held, op.Out = pass.Span{From: 13, To: 23}, pass.Span{From: time - 2, To: time}
		add("held-last", depthwiseSpec{op: op, channels: 6, first: first})
		op.Held, op.Out = pass.Span{}, pass.Span{From: 2, To: 2}
		add("out-none", depthwiseSpec{op: op, channels: 6, first: first})
		for _, onDevice := range []bool{false, true} {
			op := pass.DepthwiseConv2D{Batch: 6, Time: 14, Frequency: 7}
			add("lengths"+whereLabel(onDevice), depthwiseSpec{op: op, channels: 5, first: first, bias: true, lengths: []int{14, 0, 1, 2, 9, 12}, onDevice: onDevice})
			op.Out = pass.Span{From: 1, To: 3}
			op.Held = pass.Span{From: 0, To: 13}
			add("lengths-held"+whereLabel(onDevice), depthwiseSpec{op: op, channels: 5, first: first, bias: true, lengths: []int{14, 0, 3, 4, 9, 12}, onDevice: onDevice})
		}
		add("nan-in-reach", depthwiseSpec{op: pass.DepthwiseConv2D{Time: 17, Frequency: 18}, channels: 3, first: first, special: func(c *Case) {
			c.Inputs[0].Words[len(c.Inputs[0].Words)/2] = nan
		}})
		add("no-time", depthwiseSpec{op: pass.DepthwiseConv2D{Frequency: 8}, channels: 3, first: first})
		add("no-frequency", depthwiseSpec{op: pass.DepthwiseConv2D{Time: 8}, channels: 3, first: first})
	}
	return all
}
