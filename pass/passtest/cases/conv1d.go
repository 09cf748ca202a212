package cases

import (
	"fmt"
	"reflect"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases/truth"
)

func conv1DKind() kind {
	return kind{
		zero:    pass.Conv1D{},
		outputs: []string{"Y"},
		sizes:   map[string][3]string{"X": {"Batch", "In", ""}},
		weights: (*weightReader).conv,
		list:    conv1DEntries,
		check: func(op pass.Checked, d *data) error {
			v := op.Op.(pass.Conv1D)
			for b, n := range convLengths(v, d) {
				if pad := max(v.PadLeft, v.PadRight); v.Padding == pass.PadReflect && n > 0 && n <= pad {
					return invalid("%s: Lengths: item %d: want more than the %d steps to reflect, or 0, given %d", d.c.Name, b, pad, n)
				}
			}
			return d.err
		},
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			v := op.Op.(pass.Conv1D)
			lengths := convLengths(v, d)
			return []Tensor{result(op, "Y", rounded(truth.Conv1D(v, d.conv("W"), d.values("X"), lengths, d.values("Y"))))}, d.err
		},
	}
}

func convLengths(v pass.Conv1D, d *data) []int {
	return d.items("Lengths", v.Lengths, v.Batch, v.In, func(int) int { return v.In })
}

// conv decodes the weights of a field.
func (d *data) conv(field string) truth.Conv {
	w := d.weights(field).(pass.ConvWeights)
	s := w.Weight.Shape
	return truth.Conv{Out: s[0], In: s[1], Kernel: s[2], W: d.decode(w.Weight), Bias: widen(w.Bias)}
}

// A convSpec is a Conv1D case in few words: the op's own fields, and its weights.
type convSpec struct {
	op                 pass.Conv1D
	out, channels, ker int
	typ                pass.DType // 0: F32
	bias               bool
	lengths            []int
	onDevice           bool // lengths
	special            func(c *Case)
}

func (s convSpec) entry(label string) Entry {
	if s.typ == 0 {
		s.typ = pass.F32
	}
	name := fmt.Sprintf("conv1d/%s-%dx%dto%d-k%ds%d", label, max(s.op.Batch, 1)*s.op.In, s.channels, s.out, s.ker, max(s.op.Stride, 1))
	return Entry{Name: name, Op: "conv1d", make: s.make}
}

func (s convSpec) make(name string) Case {
	w := pass.ConvWeights{Name: name, Weight: Encode(name+"/W.weight", s.typ,
		Recipe(name+"/W.weight", 1, s.out*s.channels*s.ker, spread(s.channels*s.ker), 0), s.out, s.channels, s.ker)}
	if s.bias {
		w.Bias = Recipe(name+"/W.bias", 1, s.out, 1, 0)
	}
	batch := max(s.op.Batch, 1)
	x := Recipe(name+"/X", 1, batch*s.op.In*s.channels, 1, 0)
	c := Case{Op: s.op, Params: []Param{{"W", w}}, Outputs: []string{"Y"}}
	c.Inputs = []Tensor{F32("X", x, batch, s.op.In, s.channels)}
	poisonBeyond(&c, 0, s.lengths)
	if s.lengths != nil {
		c.setItems("Lengths", s.lengths, s.onDevice)
	}
	if s.op.Epilogue.InPlace() {
		steps := truth.Conv{Kernel: s.ker}.Steps(s.op, s.op.In)
		steps = s.op.Out.Resolve(steps).Len()
		c.Inputs = append(c.Inputs, F32("Y", Recipe(name+"/Y", 1, batch*steps*s.out, 2, 0), batch, steps, s.out))
	}
	if s.special != nil {
		s.special(&c)
	}
	return c
}

// poisonBeyond makes NaN of what lies beyond each item's length: it must not be read.
func poisonBeyond(c *Case, input int, lengths []int) {
	t := &c.Inputs[input]
	rows, cols := t.Shape[1], t.Shape[2]
	for b, n := range lengths {
		for i := n * cols; i < rows*cols; i++ {
			t.Words[b*rows*cols+i] = nan
		}
	}
}

// setItems sets a field of numbers, fixed or as a tensor on the device.
func (c *Case) setItems(field string, numbers []int, onDevice bool) {
	if onDevice {
		words := make([]uint32, len(numbers))
		for i, n := range numbers {
			words[i] = uint32(n)
		}
		c.Inputs = append(c.Inputs, U32(field, words, len(words)))
		return
	}
	op := reflect.New(reflect.TypeOf(c.Op)).Elem()
	op.Set(reflect.ValueOf(c.Op))
	op.FieldByName(field).Set(reflect.ValueOf(pass.Fixed(numbers...)))
	c.Op = op.Interface().(pass.Op)
}

func conv1DEntries() []Entry {
	var all []Entry
	add := func(label string, s convSpec) { all = append(all, s.entry(label)) }
	e := edges()
	for i, in := range e { // pairs of steps and channels; kernel, stride and padding run along
		k, stride := 1+i%5, 1+i%3
		add("edge", convSpec{op: pass.Conv1D{In: in, Stride: stride, PadLeft: i % 3, PadRight: k - 1}, channels: e[(i+4)%len(e)], out: e[(3*i+1)%len(e)], ker: k, bias: i%2 == 0})
	}
	for i, ep := range epilogues() {
		op := pass.Conv1D{In: 11, Stride: 1 + i%2, PadLeft: 1, PadRight: 1, Epilogue: ep}
		add(ep.String(), convSpec{op: op, channels: 5, out: 7, ker: 3, bias: i%2 == 1})
		op.Batch = 2
		add(ep.String()+"-ragged", convSpec{op: op, channels: 3, out: 9, ker: 3, bias: i%2 == 0, lengths: []int{4, 11}})
	}
	for _, t := range []pass.DType{pass.F16, pass.BF16, pass.Q8_0} {
		add(t.String(), convSpec{op: pass.Conv1D{In: 40, Stride: 2}, channels: 2, out: 18, ker: 32, typ: t, bias: true})
	}
	// The layers of Silero.
	add("silero-stft", convSpec{op: pass.Conv1D{In: 576, Stride: 128, PadRight: 64, Padding: pass.PadReflect}, channels: 1, out: 258, ker: 256})
	add("silero-stft-batch", convSpec{op: pass.Conv1D{Batch: 3, In: 576, Stride: 128, PadRight: 64, Padding: pass.PadReflect}, channels: 1, out: 258, ker: 256})
	for i, s := range []struct{ in, from, to, stride int }{{4, 129, 128, 1}, {4, 128, 64, 2}, {2, 64, 64, 2}, {1, 64, 128, 1}} {
		op := pass.Conv1D{Batch: 2, In: s.in, Stride: s.stride, PadLeft: 1, PadRight: 1, Epilogue: pass.ReLU}
		add(fmt.Sprintf("silero-encoder%d", i), convSpec{op: op, channels: s.from, out: s.to, ker: 3, bias: true})
	}
	// Padding.
	for _, p := range []pass.Padding{pass.PadZero, pass.PadReflect} {
		for _, pads := range [][2]int{{0, 0}, {3, 0}, {0, 4}, {2, 5}, {6, 6}} {
			op := pass.Conv1D{In: 7, PadLeft: pads[0], PadRight: pads[1], Padding: p}
			add(fmt.Sprintf("%v-%d-%d", p, pads[0], pads[1]), convSpec{op: op, channels: 2, out: 3, ker: 4})
		}
	}
	add("zero-wide", convSpec{op: pass.Conv1D{In: 3, PadLeft: 9, PadRight: 12}, channels: 2, out: 3, ker: 5, bias: true})
	add("stride-over-kernel", convSpec{op: pass.Conv1D{In: 50, Stride: 7, PadLeft: 1}, channels: 3, out: 4, ker: 3})
	add("sinc", convSpec{op: pass.Conv1D{In: 700, Stride: 10}, channels: 1, out: 12, ker: 251})
	// Parts of the output.
	for _, out := range []pass.Span{{From: 0, To: 3}, {From: 5, To: 6}, {From: 9, To: 13}, {From: 4, To: 4}} {
		op := pass.Conv1D{In: 25, Stride: 2, PadLeft: 2, PadRight: 2, Padding: pass.PadReflect, Out: out}
		add(fmt.Sprintf("out-%d-%d", out.From, out.To), convSpec{op: op, channels: 4, out: 5, ker: 5, bias: true, typ: pass.F32})
	}
	// Absolute values and pooling.
	add("sinc-pool", convSpec{op: pass.Conv1D{In: 911, Stride: 10, Abs: true, Pool: 3}, channels: 1, out: 16, ker: 251})
	add("segmentation-pool", convSpec{op: pass.Conv1D{Batch: 2, In: 47, Pool: 3}, channels: 20, out: 12, ker: 5, bias: true})
	for i, in := range []int{1, 7, 9, 16, 31, 65} {
		op := pass.Conv1D{Batch: i % 3, In: in, Stride: 1 + i%2, PadLeft: 1, PadRight: 1 + i%2, Abs: i%2 == 0, Pool: 1 + i%4}
		add("pool", convSpec{op: op, channels: e[(2*i+1)%6], out: e[(3*i+2)%8], ker: 3, bias: i%2 == 1})
	}
	add("abs-leaky", convSpec{op: pass.Conv1D{In: 17, PadLeft: 2, Abs: true, Epilogue: pass.Leaky(0.125)}, channels: 3, out: 6, ker: 3, bias: true})
	add("pool-tanh", convSpec{op: pass.Conv1D{In: 23, Pool: 2, Epilogue: pass.Tanh}, channels: 3, out: 6, ker: 3, bias: true})
	add("pool-out", convSpec{op: pass.Conv1D{In: 60, Stride: 2, Pool: 3, Abs: true, Out: pass.Span{From: 2, To: 7}}, channels: 2, out: 9, ker: 5})
	add("pool-over-steps", convSpec{op: pass.Conv1D{In: 8, Pool: 9}, channels: 2, out: 3, ker: 3})
	add("pool-nan", convSpec{op: pass.Conv1D{In: 24, Pool: 6, Abs: true}, channels: 2, out: 5, ker: 1, special: putNaN(2*7+1, 2*8, 2*20)})
	for _, onDevice := range []bool{false, true} {
		op := pass.Conv1D{Batch: 4, In: 30, PadLeft: 1, PadRight: 1, Abs: true, Pool: 4, Epilogue: pass.Sigmoid}
		add("pool-lengths"+whereLabel(onDevice), convSpec{op: op, channels: 3, out: 5, ker: 3, bias: true, lengths: []int{30, 0, 3, 18}, onDevice: onDevice})
	}
	// Other networks.
	add("whisper-stem", convSpec{op: pass.Conv1D{In: 12, Stride: 2, PadLeft: 1, PadRight: 1, Epilogue: pass.GELUResidual}, channels: 80, out: 48, ker: 3, bias: true})
	add("moonshine-stem", convSpec{op: pass.Conv1D{In: 900, Stride: 64, Epilogue: pass.Tanh}, channels: 1, out: 36, ker: 127})
	add("moonshine-second", convSpec{op: pass.Conv1D{In: 25, Stride: 3, Epilogue: pass.GELU}, channels: 36, out: 40, ker: 7, bias: true})
	add("gigaam-stem", convSpec{op: pass.Conv1D{Batch: 2, In: 15, Stride: 2, PadLeft: 2, PadRight: 2, Epilogue: pass.ReLU}, channels: 64, out: 48, ker: 5, bias: true, lengths: []int{15, 6}})
	// Lengths.
	for _, onDevice := range []bool{false, true} {
		where := map[bool]string{true: "-device"}[onDevice]
		ragged := pass.Conv1D{Batch: 4, In: 20, Stride: 2, PadLeft: 1, PadRight: 1}
		add("lengths"+where, convSpec{op: ragged, channels: 3, out: 8, ker: 3, bias: true, lengths: []int{20, 0, 1, 13}, onDevice: onDevice})
		ragged.Padding = pass.PadReflect
		ragged.PadLeft, ragged.PadRight = 2, 3
		add("lengths-reflect"+where, convSpec{op: ragged, channels: 3, out: 8, ker: 4, lengths: []int{4, 20, 0, 9}, onDevice: onDevice})
		ragged.Out = pass.Span{From: 3, To: 9}
		ragged.Epilogue = pass.Sigmoid // of 0 is not 0: what lies beyond is zero all the same
		add("lengths-out"+where, convSpec{op: ragged, channels: 3, out: 8, ker: 4, bias: true, lengths: []int{4, 20, 0, 9}, onDevice: onDevice})
		all0 := pass.Conv1D{Batch: 2, In: 6, PadLeft: 1, PadRight: 1, Epilogue: pass.Residual(1)}
		add("lengths-all-zero"+where, convSpec{op: all0, channels: 2, out: 3, ker: 3, bias: true, lengths: []int{0, 0}, onDevice: onDevice})
	}
	add("no-steps", convSpec{op: pass.Conv1D{In: 0, PadLeft: 2, PadRight: 2}, channels: 2, out: 3, ker: 3, bias: true})
	add("too-short", convSpec{op: pass.Conv1D{In: 3, PadLeft: 1}, channels: 2, out: 3, ker: 5})
	add("nan-in-reach", convSpec{op: pass.Conv1D{In: 24, Stride: 2, PadLeft: 1, PadRight: 1}, channels: 4, out: 17, ker: 3, special: func(c *Case) { c.Inputs[0].Words[11*4+2] = nan }})
	add("nan-reflected", convSpec{op: pass.Conv1D{In: 12, PadLeft: 3, PadRight: 3, Padding: pass.PadReflect}, channels: 2, out: 5, ker: 3, special: func(c *Case) { c.Inputs[0].Words[2*2] = nan }})
	add("exact", convSpec{op: pass.Conv1D{In: 30, PadLeft: 1, PadRight: 1, Exact: true}, channels: 32, out: 32, ker: 3})
	for _, in := range e {
		for _, ch := range e {
			all = append(all, full(convSpec{op: pass.Conv1D{Batch: 2, In: in, PadLeft: 1, PadRight: 1}, channels: ch, out: 33, ker: 3, bias: true}.entry("pairs")))
		}
	}
	return all
}
