package cases

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases/truth"
)

func conv2DKind() kind {
	return kind{
		zero:    pass.Conv2D{},
		outputs: []string{"Y"},
		sizes:   map[string][3]string{"X": {"Batch", "", ""}},
		needs:   []string{"Height", "Width"},
		weights: (*weightReader).conv2D,
		list:    conv2DEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			w := d.weights("W").(pass.Conv2DWeights)
			s := w.Weight.Shape
			decoded := truth.Conv2{Out: s[0], In: s[1], Size: s[2], W: d.decode(w.Weight), Bias: widen(w.Bias)}
			return []Tensor{result(op, "Y", rounded(truth.Conv2D(op.Op.(pass.Conv2D), decoded, d.values("X"), d.values("Residual"))))}, d.err
		},
	}
}

// A conv2DSpec is a Conv2D case in few words.
type conv2DSpec struct {
	op             pass.Conv2D
	in, out, size  int
	typ            pass.DType // 0: F32
	bias, residual bool
	special        func(c *Case)
}

func (s conv2DSpec) entry(label string) Entry {
	if s.typ == 0 {
		s.typ = pass.F32
	}
	name := fmt.Sprintf("conv2d/%s-%dx%dx%dx%dto%d-k%ds%d", label, max(s.op.Batch, 1), s.op.Height, s.op.Width, s.in, s.out, s.size, max(s.op.Stride, 1))
	return Entry{Name: name, Op: "conv2d", make: s.make}
}

func (s conv2DSpec) make(name string) Case {
	taps := s.in * s.size * s.size
	w := pass.Conv2DWeights{Name: name, Weight: Encode(name+"/W.weight", s.typ, Recipe(name+"/W.weight", 1, s.out*taps, spread(taps), 0), s.out, s.in, s.size, s.size)}
	if s.bias {
		w.Bias = Recipe(name+"/W.bias", 1, s.out, 1, 0)
	}
	batch, pixels := max(s.op.Batch, 1), s.op.Height*s.op.Width
	c := Case{Op: s.op, Params: []Param{{"W", w}}, Outputs: []string{"Y"}}
	c.Inputs = []Tensor{F32("X", Recipe(name+"/X", 1, batch*pixels*s.in, 1, 0), batch, pixels, s.in)}
	if s.residual {
		height, width := s.op.Size()
		pixels := s.op.Out.Resolve(height).Len() * width
		c.Inputs = append(c.Inputs, F32("Residual", Recipe(name+"/Residual", 1, batch*pixels*s.out, 2, 0), batch, pixels, s.out))
	}
	if s.special != nil {
		s.special(&c)
	}
	return c
}

func conv2DEntries() []Entry {
	var all []Entry
	add := func(label string, s conv2DSpec) { all = append(all, s.entry(label)) }
	e := edges()
	for i, width := range e { // widths and channels run apart; size, stride and the rest along
		op := pass.Conv2D{Batch: i % 3, Height: 1 + i%6, Width: width, Stride: 1 + i%2, ReLU: i%3 == 0}
		add("edge", conv2DSpec{op: op, in: e[(3*i+1)%8], out: e[(5*i+2)%8], size: 3 - 2*(i%3/2), bias: i%2 == 0, residual: i%4 == 3})
	}
	for i := range 16 { // every choice
		op := pass.Conv2D{Height: 5, Width: 6, Stride: 1 + i%2, ReLU: i&2 > 0}
		add(fmt.Sprintf("choice%d", i), conv2DSpec{op: op, in: 5, out: 7, size: 3 - 2*(i%2), bias: i&4 > 0, residual: i&8 > 0})
	}
	for _, t := range []pass.DType{pass.F16, pass.BF16} {
		add(t.String(), conv2DSpec{op: pass.Conv2D{Height: 4, Width: 7, ReLU: true}, in: 12, out: 20, size: 3, typ: t, bias: true})
	}
	// The stages of ResNet34, on a few columns.
	add("resnet-first", conv2DSpec{op: pass.Conv2D{Batch: 2, Height: 20, Width: 11, ReLU: true}, in: 1, out: 32, size: 3, bias: true})
	for i, s := range []struct{ height, from, to, stride int }{{10, 32, 32, 1}, {9, 32, 64, 2}, {6, 64, 64, 1}, {5, 64, 128, 2}, {3, 128, 128, 1}, {3, 128, 256, 2}} {
		op := pass.Conv2D{Height: s.height, Width: 7, Stride: s.stride, ReLU: true}
		add(fmt.Sprintf("resnet%d", i), conv2DSpec{op: op, in: s.from, out: s.to, size: 3, bias: true, residual: s.stride == 1})
	}
	add("resnet-shortcut", conv2DSpec{op: pass.Conv2D{Batch: 2, Height: 9, Width: 7, Stride: 2}, in: 32, out: 64, size: 1, bias: true})
	for _, stride := range []int{1, 2} { // many channels of single pixels
		add("resnet-shortcut", conv2DSpec{op: pass.Conv2D{Height: 17 * stride, Width: 16*stride + 1, Stride: stride}, in: 76, out: 128, size: 1, bias: true})
	}
	// Parts of the output.
	for _, stride := range []int{1, 2} {
		for _, out := range []pass.Span{{From: 0, To: 2}, {From: 2, To: 5}, {From: 4, To: 5}, {From: 3, To: 3}} {
			op := pass.Conv2D{Batch: 2, Height: 5 * stride, Width: 4, Stride: stride, Out: out, ReLU: true}
			add(fmt.Sprintf("out-%d-%d", out.From, out.To), conv2DSpec{op: op, in: 3, out: 6, size: 3, bias: true, residual: true})
		}
	}
	add("exact", conv2DSpec{op: pass.Conv2D{Height: 6, Width: 6, Exact: true}, in: 32, out: 32, size: 3})
	add("nan-in-reach", conv2DSpec{op: pass.Conv2D{Height: 7, Width: 8}, in: 4, out: 17, size: 3, special: putNaN((3*8+5)*4 + 1)})
	add("nan-stride", conv2DSpec{op: pass.Conv2D{Batch: 2, Height: 7, Width: 8, Stride: 2, ReLU: true}, in: 4, out: 17, size: 3, special: putNaN((56+3*8+5)*4 + 1)})
	add("nan-skipped", conv2DSpec{op: pass.Conv2D{Height: 7, Width: 8, Stride: 2}, in: 4, out: 9, size: 1, special: putNaN((3*8+5)*4 + 1)})
	add("large", conv2DSpec{op: pass.Conv2D{Height: 4, Width: 4}, in: 8, out: 8, size: 3, special: scaleInput(1e15)})
	add("no-lines", conv2DSpec{op: pass.Conv2D{Width: 4}, in: 3, out: 4, size: 3})
	add("no-columns", conv2DSpec{op: pass.Conv2D{Height: 4}, in: 3, out: 4, size: 3})
	for _, width := range e {
		for _, ch := range e {
			all = append(all, full(conv2DSpec{op: pass.Conv2D{Height: 5, Width: width, ReLU: true}, in: ch, out: 33, size: 3, bias: true, residual: true}.entry("pairs")))
		}
	}
	all = append(all,
		full(conv2DSpec{op: pass.Conv2D{Height: 80, Width: 200, ReLU: true}, in: 1, out: 32, size: 3, bias: true}.entry("resnet-first")),
		full(conv2DSpec{op: pass.Conv2D{Batch: 2, Height: 40, Width: 100, Stride: 2, ReLU: true}, in: 32, out: 64, size: 3, bias: true}.entry("resnet-down")),
		full(conv2DSpec{op: pass.Conv2D{Height: 10, Width: 125, ReLU: true}, in: 256, out: 256, size: 3, bias: true, residual: true}.entry("resnet-last")))
	return all
}
