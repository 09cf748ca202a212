package gpu

import (
	"math"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// layConv2D lays out convolution weights: a matrix of F32 [out][taps·in], in each row
// tap after tap as the kernel walks over its image.
func layConv2D(s pass.Conv2DShape, limits driver.Limits) (matrixLayout, error) {
	return layMatrix(pass.LinearShape{N: s.Out, K: s.Size * s.Size * s.In, Type: pass.F32, Bias: s.Bias}, limits)
}

func packConv2D(w pass.Conv2DWeights, s pass.Conv2DShape, limits driver.Limits) ([]packedBuffer, error) {
	m, err := layConv2D(s, limits)
	if err != nil {
		return nil, err
	}
	taps := s.Size * s.Size
	row := make([]float32, s.In*taps)
	encode := func(dst []uint32, o int) error {
		if err := w.Weight.Decode(row, o*len(row)); err != nil {
			return err
		}
		clear(dst[len(row):])
		for i := range s.In {
			for tap := range taps {
				dst[tap*s.In+i] = math.Float32bits(row[i*taps+tap])
			}
		}
		return nil
	}
	return m.pack(encode, nil, func(i int) float32 { return w.Bias[i] }), nil
}

// conv2d compiles a Conv2D as a product whose rows are the output pixels of all images.
func (c *compiler) conv2d(op pass.Conv2D, cost pass.Cost) error {
	p := c.plan.Param(op.W).(*param)
	s := p.shape.(pass.Conv2DShape)
	layout, err := layConv2D(s, c.limits)
	if err != nil {
		return err
	}
	_, width := op.Size()
	pixels := op.Out.Len() * width
	if op.Batch == 0 || pixels == 0 {
		return nil
	}
	v := imageConvolution{op: op, shape: s, weights: matrix{layout, p.buffers}, width: width, cost: cost}
	all := pass.Span{To: op.Height * op.Width}
	if c.holds(op.X, op.Batch, all, s.In) && v.holdsOutput(c, op.Out) {
		v.x = c.lines(op.X, op.Batch, all.To, s.In, false)
		return v.emit(c)
	}
	windows, ok := runs(op.Out, func(out pass.Span) bool { return c.holds(op.X, op.Batch, v.read(out), s.In) && v.holdsOutput(c, out) })
	if !ok {
		return c.tooMuch("what a line reads")
	}
	for _, out := range windows {
		part := v
		part.x, part.cost = c.window(op.X, op.Batch, v.read(out), s.In, false), share(cost, out.Len(), op.Out.Len())
		part.op.Out = out
		part.op.Y, part.op.Residual = v.output(op.Y, out), v.output(op.Residual, out)
		if err := part.emit(c); err != nil {
			return err
		}
	}
	return nil
}

// read returns the rows of X, pixels, that some output lines read.
func (v *imageConvolution) read(out pass.Span) pass.Span {
	op, half := v.op, v.shape.Size/2
	lines := within(pass.Span{From: out.From*op.Stride - half, To: (out.To-1)*op.Stride + half + 1}, op.Height)
	return pass.Span{From: lines.From * op.Width, To: lines.To * op.Width}
}

// output returns Y or the residual from some output lines on.
func (v *imageConvolution) output(y pass.View, out pass.Span) pass.View {
	if y.IsZero() {
		return y
	}
	return y.At((out.From - v.op.Out.From) * v.width * y.RowStride)
}

// holdsOutput reports whether Y and the residual of some lines can be bound.
func (v *imageConvolution) holdsOutput(c *compiler, out pass.Span) bool {
	pixels := pass.Span{To: out.Len() * v.width}
	return c.holds(v.output(v.op.Y, out), v.op.Batch, pixels, v.shape.Out) &&
		(v.op.Residual.IsZero() || c.holds(v.output(v.op.Residual, out), v.op.Batch, pixels, v.shape.Out))
}

// emit emits the dispatches for the output lines.
func (v *imageConvolution) emit(c *compiler) error {
	pixels := v.op.Out.Len() * v.width
	v.y = c.lines(v.op.Y, v.op.Batch, pixels, v.shape.Out, true)
	if !v.op.Residual.IsZero() {
		v.residual = c.lines(v.op.Residual, v.op.Batch, pixels, v.shape.Out, false)
	}
	for i := range v.weights.pieces() {
		if err := v.piece(c, i); err != nil {
			return err
		}
	}
	return nil
}

// An imageConvolution is a Conv2D with its operands.
type imageConvolution struct {
	op             pass.Conv2D
	shape          pass.Conv2DShape
	weights        matrix
	width          int // of the output
	x, y, residual lines
	cost           pass.Cost
}

// piece emits the dispatches for the output channels of a piece of the weights.
func (v *imageConvolution) piece(c *compiler, piece int) error {
	op, w, channels := v.op, v.weights, v.weights.piece(piece)
	n, pixels := channels.Len(), op.Out.Len()*v.width
	rows := op.Batch * pixels
	y, residual, wanted := v.y.from(channels.From), v.residual.from(channels.From), !op.Residual.IsZero()
	epilogue := pass.None
	if op.ReLU {
		epilogue = pass.ReLU
	}
	quads := v.x.inFours() && v.shape.In%4 == 0
	fixed := 0 // channels in the text of the kernel: where it is likely that they are used again
	if quads && v.shape.In >= 16 || v.shape.In == 1 {
		fixed = v.shape.In
	}
	t := chooseTile(rows, n, w.k, c.limits)
	k := numbered{kernel: kernel{shader: "conv2d", entry: "tile", values: shaders.Values{
		"Type": "F32", "ScaleBinding": 0, "Quads": quads, "Channels": fixed, "Size": v.shape.Size, "Residual": wanted,
		"Vectors": y.inFours() && n%4 == 0 && (!wanted || residual.inFours()),
		"Bias":    v.shape.Bias, "Epilogue": epilogueName(epilogue), "InPlace": false, "Ragged": false, "Pooled": false,
		"Tile": t.size, "Rows": t.rows, "Columns": t.columns, "Long": t.long, "Fine": false,
	}}, operands: []operand{w.values(piece), v.x.operand}}
	k.bind("OutBinding", true, y.operand)
	var bias operand
	var biasAt uint32
	if v.shape.Bias {
		bias, biasAt = c.part(w.bias(), channels.From, channels.To, false)
	}
	k.bind("BiasBinding", v.shape.Bias, bias)
	k.bind("ResidualBinding", wanted, residual.operand)
	tileRows, tileColumns := roundUp(rows, t.size)/t.size, roundUp(n, t.size)/t.size
	words := []uint32{uint32(rows), uint32(pixels), uint32(w.k), uint32(w.stride), 0, uint32(n), uint32(w.stride+tileDepth-1) / tileDepth}
	words = append(append(append(words, v.x.words()...), y.words()...), residual.words()...)
	words = append(words, biasAt, math.Float32bits(epilogue.Alpha()))
	back := []uint32{
		uint32(tileRows), uint32(tileColumns), uint32(v.shape.In), uint32(op.Stride),
		uint32(op.Height), uint32(op.Width), uint32(v.width), uint32(op.Out.From),
	}
	return c.tiles(op.Name(), k, words, tileRows*tileColumns, back, share(v.cost, n, v.shape.Out))
}
