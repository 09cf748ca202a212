package gpu

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// logMel compiles a LogMel: frame by frame up to the logarithm, and then what
// normalisation makes of all frames of an item.
func (c *compiler) logMel(op pass.LogMel, cost pass.Cost) error {
	p := c.plan.Param(op.W).(*param)
	s := p.shape.(pass.MelShape)
	m := melFrames{c: c, op: op, shape: s, frames: s.Frames(op.Samples), tables: operand{memory: p.buffers[0], end: p.buffers[0].words}}
	if op.Batch == 0 || m.frames == 0 {
		return nil
	}
	m.lengths = c.numbers(op.Lengths, op.Batch, func(int) int { return op.Samples })
	if s.Normalise == pass.MelWhisper {
		m.largest = c.scratch(op.Batch * m.frames)
	}
	if err := m.logarithms(cost); err != nil {
		return err
	}
	return m.normalise()
}

// melFrames is a LogMel with its operands.
type melFrames struct {
	c       *compiler
	op      pass.LogMel
	shape   pass.MelShape
	frames  int
	tables  operand
	largest operand // logarithm of each frame, if that is wanted
	lengths numbers
}

// reflects reports whether padding reads samples.
func (m *melFrames) reflects() bool {
	return m.shape.Padding == pass.PadReflect && max(m.shape.PadLeft, m.shape.PadRight) > 0
}

// numbers binds what says how long items are.
func (m *melFrames) numbers(k *numbered) {
	k.values["Reflect"], k.values["Lengths"] = m.reflects(), m.lengths.kind
	k.bind("LengthsBinding", m.lengths.kind != "none", m.lengths.o)
	k.status(m.c, m.lengths)
}

// dropped returns how many frames are left out.
func (m *melFrames) dropped() uint32 {
	if m.shape.DropLast {
		return 1
	}
	return 0
}

// read returns the samples that some frames read.
func (m *melFrames) read(frames pass.Span) pass.Span {
	w := m.shape
	s := pass.Span{From: frames.From*w.Hop - w.PadLeft, To: (frames.To-1)*w.Hop - w.PadLeft + w.Frame}
	if m.reflects() {
		s = mirrored(s, w.PadRight, m.op.Batch, m.op.Samples, m.op.Lengths)
	}
	s.From-- // for pre-emphasis
	return within(s, m.op.Samples)
}

// samples binds those that some frames read, or if that is possible all.
func (m *melFrames) samples(frames pass.Span) (x lines, ok bool) {
	all := pass.Span{To: 1}
	if m.c.holds(m.op.X, m.op.Batch, all, m.op.Samples) {
		return m.c.lines(m.op.X, m.op.Batch, 1, m.op.Samples, false), true
	}
	v, s := m.op.X.Rows(1), m.read(frames)
	if m.op.Batch > 1 || !m.c.holds(v, 1, s, 1) {
		return lines{}, false
	}
	return m.c.window(v, 1, s, 1, false), true
}

// some cuts units of work, each of which has so many numbers or frames, into runs whose
// frames fit a binding.
func (m *melFrames) some(units int, frames func(pass.Span) pass.Span, fit func(frames pass.Span) bool) ([]pass.Span, error) {
	list, ok := runs(pass.Span{To: units}, func(s pass.Span) bool {
		return m.c.holds(m.op.Y, m.op.Batch, frames(s), m.shape.Mels) && fit(frames(s))
	})
	if !ok {
		return nil, m.c.tooMuch("what a workgroup takes")
	}
	return list, nil
}

// logarithms emits a workgroup for each frame.
func (m *melFrames) logarithms(cost pass.Cost) error {
	windows, err := m.some(m.frames, func(s pass.Span) pass.Span { return s }, func(s pass.Span) bool {
		_, ok := m.samples(s)
		return ok
	})
	if err != nil {
		return err
	}
	for _, s := range windows {
		if err := m.someLogarithms(s, share(cost, s.Len(), m.frames)); err != nil {
			return err
		}
	}
	return nil
}

// someLogarithms emits those of some frames.
func (m *melFrames) someLogarithms(frames pass.Span, cost pass.Cost) error {
	s, half := m.shape, m.shape.FFT/2
	wanted := s.Normalise == pass.MelWhisper
	threads := 64
	for threads*8 < half && 2*threads <= int(min(m.c.limits.MaxInvocations, m.c.limits.MaxWorkgroupSizeX, 256)) {
		threads *= 2
	}
	x, _ := m.samples(frames)
	y := m.c.window(m.op.Y, m.op.Batch, frames, s.Mels, true)
	k := numbered{kernel{shader: "mel", entry: "mel", values: shaders.Values{
		"Half": half, "Threads": threads, "Each": roundUp(half, threads) / threads, "Pool": max(half, threads),
		"PerFrame": s.PerFrame, "Log": []string{"power", "ln", "log10"}[s.Log], "Largest": wanted,
	}}, []operand{m.tables, x.operand, y.operand}}
	tiles := pass.Span{From: frames.From, To: (m.op.Batch-1)*m.frames + frames.To} // several items have all of theirs
	var largest operand
	var shift uint32
	if wanted {
		largest, shift = m.c.part(m.largest, tiles.From, tiles.To, true)
	}
	k.bind("LargestBinding", wanted, largest)
	m.numbers(&k)
	words := make([]uint32, mostRadices, blockWords)
	radices := radicesOf(half)
	for i, r := range radices {
		words[i] = uint32(r)
	}
	words = append(words, uint32(len(radices)), uint32(s.Frame), uint32(s.Hop), uint32(s.Mels), uint32(s.PadLeft), uint32(s.PadRight),
		m.dropped(), uint32(m.op.Samples), uint32(m.frames))
	for _, v := range []float32{s.Gain, s.PreEmphasis, s.Min, s.Max, s.Add, float32(math.Inf(1))} {
		words = append(words, math.Float32bits(v))
	}
	layout := melTables{s}
	words = append(words, uint32(layout.window()), uint32(layout.bank()), uint32(x.shift), uint32(x.item))
	words = append(append(words, y.words()...), m.lengths.shift, shift-uint32(tiles.From))
	return m.c.someTiles(m.op.Name(), k, words, tiles, nil, cost)
}
