package gpu

import (
	"math"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// channelRows are weights with a value for each channel: rows of channels, each filled up
// with zeros to a multiple of four.
type channelRows struct{ rows, channels int }

func (r channelRows) stride() int { return roundUp(r.channels, 4) }

// pack returns the buffer of rows whose values are known. A row that is nil is zeros.
func (r channelRows) pack(rows [][]float32) []packedBuffer {
	fill := func(dst []uint32, from int) error {
		for i := range dst {
			row, channel := rows[(from+i)/r.stride()], (from+i)%r.stride()
			dst[i] = 0
			if row != nil && channel < r.channels {
				dst[i] = math.Float32bits(row[channel])
			}
		}
		return nil
	}
	return []packedBuffer{{words: r.rows * r.stride(), fill: fill}}
}

// turned returns a tensor [channels][taps] tap by tap.
func turned(t pass.Tensor, channels, taps int) ([][]float32, error) {
	all := make([]float32, channels*taps)
	if err := t.Decode(all, 0); err != nil {
		return nil, err
	}
	rows := make([][]float32, taps)
	for tap := range rows {
		rows[tap] = make([]float32, channels)
		for c := range channels {
			rows[tap][c] = all[c*taps+tap]
		}
	}
	return rows, nil
}

func layConvGLU(s pass.ConvGLUShape) channelRows { return channelRows{s.Kernel + 3, s.Channels} }

// packConvGLU lays out taps, bias, gain and shift.
func packConvGLU(w pass.ConvGLUWeights, s pass.ConvGLUShape) ([]packedBuffer, error) {
	rows, err := turned(w.Weight, s.Channels, s.Kernel)
	if err != nil {
		return nil, err
	}
	return layConvGLU(s).pack(append(rows, w.Bias, w.Gain, w.Shift)), nil
}

func layDepthwise(s pass.DepthwiseShape) channelRows {
	if s.First {
		return channelRows{20, s.Channels}
	}
	return channelRows{10, s.Channels}
}

// packDepthwise lays out nine taps and a bias, then those of the convolution before.
func packDepthwise(w pass.DepthwiseWeights, s pass.DepthwiseShape) ([]packedBuffer, error) {
	rows, err := turned(w.Weight, s.Channels, 9)
	if err != nil {
		return nil, err
	}
	rows = append(rows, w.Bias)
	if s.First {
		first, err := turned(w.First, s.Channels, 9)
		if err != nil {
			return nil, err
		}
		rows = append(append(rows, first...), w.FirstBias)
	}
	return layDepthwise(s).pack(rows), nil
}

// A gluTile is the geometry of the kernel of ConvGLU; see convglu.wgsl.
type gluTile struct {
	threads int
	held    int // quads of channels in registers; 0: none
	rows    int // output rows of a workgroup
	taps    int // in the text of the kernel; 0: in words
}

// mostGLURows is how many output rows a workgroup takes at most.
const mostGLURows = 8

// workgroupBytes returns the workgroup memory that the kernel needs.
func (t gluTile) workgroupBytes() int {
	return 4 * t.rows * (t.threads + t.threads/8 + t.threads/64)
}

// chooseGLU chooses the geometry. What decides about bits, threads and held, follows from
// the weights and the device alone.
func chooseGLU(s pass.ConvGLUShape, rows int, limits driver.Limits) gluTile {
	const mostValues = mostGLURows // of four channels, in registers
	const many = 1024              // rows that keep a large device busy
	const mostTaps = 15
	quads := roundUp(s.Channels, 4) / 4
	t := gluTile{threads: 64, held: 1, rows: mostValues}
	if s.Normalised {
		most := int(min(limits.MaxInvocations, limits.MaxWorkgroupSizeX, 256))
		for t.threads < quads && 2*t.threads <= most {
			t.threads *= 2
		}
		t.held = roundUp(quads, t.threads) / t.threads
	}
	if t.held > mostValues {
		return gluTile{threads: t.threads, rows: 1}
	}
	t.rows = 1
	for 2*t.rows*t.held <= mostValues && (t.rows < 4 || rows >= many) {
		more := t
		more.rows *= 2
		if s.Normalised && more.workgroupBytes() > int(limits.MaxWorkgroupStorage) {
			break
		}
		t = more
	}
	if s.Kernel <= mostTaps {
		t.taps = s.Kernel
	}
	return t
}

// convGLU compiles a ConvGLU.
func (c *compiler) convGLU(op pass.ConvGLU, cost pass.Cost) error {
	s := c.plan.Param(op.W).(*param).shape.(pass.ConvGLUShape)
	if op.Batch == 0 || op.Out.Len() == 0 {
		return nil
	}
	if c.holds(op.X, op.Batch, pass.Span{To: op.Rows}, 2*s.Channels) && c.holds(op.Y, op.Batch, pass.Span{To: op.Out.Len()}, s.Channels) {
		return c.gluRows(op, c.lines(op.X, op.Batch, op.Rows, 2*s.Channels, false), cost)
	}
	read := func(out pass.Span) pass.Span {
		return within(pass.Span{From: out.From - s.Kernel/2, To: out.To + s.Kernel/2 + mostGLURows - 1}, op.Rows)
	}
	to := func(out pass.Span) pass.View { return op.Y.At((out.From - op.Out.From) * op.Y.RowStride) }
	windows, ok := runs(op.Out, func(out pass.Span) bool {
		return c.holds(op.X, op.Batch, read(out), 2*s.Channels) && c.holds(to(out), op.Batch, pass.Span{To: out.Len()}, s.Channels)
	})
	if !ok {
		return c.tooMuch("what a row reads")
	}
	for _, out := range windows {
		part := op
		part.Out, part.Y = out, to(out)
		if err := c.gluRows(part, c.window(op.X, op.Batch, read(out), 2*s.Channels, false), share(cost, out.Len(), op.Out.Len())); err != nil {
			return err
		}
	}
	return nil
}

// gluRows emits the kernel of a ConvGLU.
func (c *compiler) gluRows(op pass.ConvGLU, x lines, cost pass.Cost) error {
	p := c.plan.Param(op.W).(*param)
	s := p.shape.(pass.ConvGLUShape)
	rows := op.Out.Len()
	y := c.lines(op.Y, op.Batch, rows, s.Channels, true)
	lengths := c.numbers(op.Lengths, op.Batch, func(int) int { return op.Rows })
	t := chooseGLU(s, op.Batch*rows, c.limits)
	k := numbered{kernel{shader: "convglu", entry: "convglu", values: shaders.Values{
		"Vectors": s.Channels%4 == 0 && x.inFours() && y.inFours(), "Normalised": s.Normalised, "Lengths": lengths.kind, "Epilogue": "silu",
		"Threads": t.threads, "Held": t.held, "RowsEach": t.rows, "Taps": t.taps,
	}}, []operand{{memory: p.buffers[0], end: p.buffers[0].words}, x.operand, y.operand}}
	k.bind("LengthsBinding", lengths.kind != "none", lengths.o)
	k.status(c, lengths)
	rowTiles, columnTiles := roundUp(rows, t.rows)/t.rows, 1
	if !s.Normalised {
		columnTiles = roundUp(s.Channels, 4*t.threads*t.held) / (4 * t.threads * t.held)
	}
	words := []uint32{uint32(rows), uint32(s.Channels), uint32(s.Kernel), uint32(op.Rows), uint32(op.Out.From)}
	words = append(append(words, x.words()...), y.words()...)
	words = append(words, lengths.shift, uint32(layConvGLU(s).stride()/4), math.Float32bits(s.Eps), uint32(rowTiles), uint32(columnTiles))
	return c.tiles(op.Name(), k, words, op.Batch*rowTiles*columnTiles, nil, cost)
}

// depthwise compiles a DepthwiseConv2D.
func (c *compiler) depthwise(op pass.DepthwiseConv2D, cost pass.Cost) error {
	p := c.plan.Param(op.W).(*param)
	s := p.shape.(pass.DepthwiseShape)
	_, width := op.Size()
	f := field{op.Batch, op.Out.Len(), width * s.Channels}
	if f.empty() {
		return nil
	}
	in := s.Channels
	if s.First {
		in = 1
	}
	x, y := c.lines(op.X, op.Batch, op.Held.Len(), op.Frequency*in, false), c.lines(op.Y, op.Batch, f.rows, f.cols, true)
	lengths := c.numbers(op.Lengths, op.Batch, func(int) int { return op.Time })
	k := numbered{kernel{shader: "depthwise", entry: "depthwise", values: shaders.Values{
		"First": s.First, "Epilogue": "relu", "Lengths": lengths.kind,
	}}, []operand{{memory: p.buffers[0], end: p.buffers[0].words}, x.operand, y.operand}}
	k.bind("LengthsBinding", lengths.kind != "none", lengths.o)
	k.status(c, lengths)
	words := append(x.words(), y.words()...)
	words = append(words, uint32(s.Channels), uint32(op.Time), uint32(op.Frequency), uint32(op.Held.From), uint32(op.Out.From),
		uint32(layDepthwise(s).stride()), lengths.shift)
	vectors := s.Channels%4 == 0 && y.inFours() && (s.First || x.inFours())
	return c.visit(op.Name(), k, f, vectors, words, cost)
}
