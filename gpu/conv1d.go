package gpu

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// conv1d compiles a Conv1D as a product whose rows are the output steps of all items.
func (c *compiler) conv1d(op pass.Conv1D, cost pass.Cost) error {
	v := c.convolution(op)
	layout, err := layConv(v.shape, c.limits)
	if err != nil {
		return err
	}
	if op.Out.Len() == 0 {
		return nil
	}
	v.weights = matrix{layout, c.plan.Param(op.W).(*param).buffers}
	v.lengths = c.numbers(op.Lengths, op.Batch, func(int) int { return op.In })
	all := pass.Span{To: op.In}
	if c.holds(op.X, op.Batch, all, v.shape.In) && c.holds(op.Y, op.Batch, pass.Span{To: op.Out.Len()}, v.shape.Out) {
		v.x, v.cost = c.lines(op.X, op.Batch, op.In, v.shape.In, false), cost
		return v.emit(c)
	}
	from := func(s pass.Span) pass.View { return op.Y.At((s.From - op.Out.From) * op.Y.RowStride) }
	windows, ok := runs(op.Out, func(s pass.Span) bool {
		return c.holds(op.X, op.Batch, v.read(s), v.shape.In) && c.holds(from(s), op.Batch, pass.Span{To: s.Len()}, v.shape.Out)
	})
	if !ok {
		return c.tooMuch("what a step reads")
	}
	for _, s := range windows {
		v.x, v.cost = c.window(op.X, op.Batch, v.read(s), v.shape.In, false), share(cost, s.Len(), op.Out.Len())
		v.op.Out, v.op.Y = s, from(s)
		if err := v.emit(c); err != nil {
			return err
		}
	}
	return nil
}

// A convolution is a Conv1D with its operands.
type convolution struct {
	op      pass.Conv1D
	shape   pass.ConvShape
	weights matrix
	x, y    lines
	lengths numbers
	cost    pass.Cost
}

// convolution begins a Conv1D.
func (c *compiler) convolution(op pass.Conv1D) convolution {
	return convolution{op: op, shape: c.plan.Param(op.W).(*param).shape.(pass.ConvShape)}
}

// read returns the input steps that some output steps may read.
func (v *convolution) read(out pass.Span) pass.Span {
	op := v.op
	s := pass.Span{From: out.From*op.Pool*op.Stride - op.PadLeft, To: (out.To*op.Pool-1)*op.Stride - op.PadLeft + v.shape.Kernel}
	if op.Padding == pass.PadReflect {
		s = mirrored(s, op.PadRight, op.Batch, op.In, op.Lengths)
	}
	return within(s, op.In)
}

// reach returns how many input steps an output step reads at most.
func (v *convolution) reach() int {
	n := v.op.Pool*v.op.Stride + v.shape.Kernel
	if v.op.Padding == pass.PadReflect {
		n += v.op.PadLeft + 2*v.op.PadRight
	}
	return n
}

// emit emits the dispatches for the output steps.
func (v *convolution) emit(c *compiler) error {
	v.y = c.lines(v.op.Y, v.op.Batch, v.op.Out.Len(), v.shape.Out, true)
	for i := range v.weights.pieces() {
		if err := v.piece(c, i); err != nil {
			return err
		}
	}
	return nil
}

// dense reports whether the values that an output step reads follow each other.
func (v *convolution) dense() bool { return v.x.single || v.x.row == v.shape.In }

// quads reports whether they come in aligned groups of four.
func (v *convolution) quads() bool {
	channels := v.shape.In
	if !v.x.inFours() || v.weights.k%4 != 0 {
		return false
	}
	if v.dense() {
		return v.op.Stride*channels%4 == 0 && v.op.PadLeft*channels%4 == 0
	}
	return channels%4 == 0
}

// piece emits the dispatches for the output channels of a piece of the weights.
func (v *convolution) piece(c *compiler, piece int) error {
	op, w, channels := v.op, v.weights, v.weights.piece(piece)
	n, rows := channels.Len(), op.Batch*op.Out.Len()
	y := v.y.from(channels.From)
	pooled := op.Abs || op.Pool > 1
	t := chooseTile(rows, n, w.k, c.limits)
	if pooled {
		t = t.halved()
	}
	k := numbered{kernel: kernel{shader: "conv1d", entry: "tile", values: shaders.Values{
		"Type": "F32", "ScaleBinding": 0, "Quads": v.quads(), "Dense": v.dense(), "Vectors": y.inFours() && n%4 == 0,
		"Reflect": op.Padding == pass.PadReflect && max(op.PadLeft, op.PadRight) > 0, "Lengths": v.lengths.kind, "Ragged": v.lengths.kind != "none",
		"Bias": v.shape.Bias, "Epilogue": epilogueName(op.Epilogue), "InPlace": op.Epilogue.InPlace(),
		"Tile": t.size, "Rows": t.rows, "Columns": t.columns, "Long": t.long, "Fine": false,
		"Pooled": pooled, "Several": op.Pool > 1, "Abs": op.Abs,
	}}, operands: []operand{w.values(piece), v.x.operand}}
	k.bind("OutBinding", true, v.y.operand)
	var bias operand
	var biasAt uint32
	if v.shape.Bias {
		bias, biasAt = c.part(w.bias(), channels.From, channels.To, false)
	}
	k.bind("BiasBinding", v.shape.Bias, bias)
	k.bind("LengthsBinding", v.lengths.kind != "none", v.lengths.o)
	k.status(c, v.lengths)
	tileRows, tileColumns := roundUp(rows, t.size)/t.size, roundUp(n, t.size)/t.size
	words := []uint32{
		uint32(rows), uint32(op.Out.Len()), uint32(w.k), uint32(w.stride), 0, uint32(n), uint32(w.stride+tileDepth-1) / tileDepth,
		uint32(v.x.shift), uint32(v.x.row), uint32(v.x.item), uint32(y.shift), uint32(y.row), uint32(y.item),
		biasAt, math.Float32bits(op.Epilogue.Alpha()),
	}
	back := []uint32{
		uint32(tileRows), uint32(tileColumns), uint32(v.shape.In), uint32(v.shape.Kernel), uint32(op.Stride),
		uint32(op.PadLeft), uint32(op.PadRight), uint32(op.In), uint32(op.Out.From), v.lengths.shift,
		uint32(op.Pool), math.Float32bits(float32(math.Inf(-1))),
	}
	return c.tiles(op.Name(), k, words, tileRows*tileColumns, back, share(v.cost, n, v.shape.Out))
}
