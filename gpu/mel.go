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
	m.x, m.y = c.lines(op.X, op.Batch, 1, op.Samples, false), c.lines(op.Y, op.Batch, m.frames, s.Mels, true)
	m.lengths = c.numbers(op.Lengths, op.Batch, func(int) int { return op.Samples })
	if s.Normalise == pass.MelWhisper {
		m.largest = c.scratch(op.Batch * m.frames)
		m.largest.write = true
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
	x, y    lines
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

// logarithms emits a workgroup for each frame.
func (m *melFrames) logarithms(cost pass.Cost) error {
	s, half := m.shape, m.shape.FFT/2
	wanted := s.Normalise == pass.MelWhisper
	threads := 64
	for threads*8 < half && 2*threads <= int(min(m.c.limits.MaxInvocations, m.c.limits.MaxWorkgroupSizeX, 256)) {
		threads *= 2
	}
	k := numbered{kernel{shader: "mel", entry: "mel", values: shaders.Values{
		"Half": half, "Threads": threads, "Each": roundUp(half, threads) / threads, "Pool": max(half, threads),
		"PerFrame": s.PerFrame, "Log": []string{"power", "ln", "log10"}[s.Log], "Largest": wanted,
	}}, []operand{m.tables, m.x.operand, m.y.operand}}
	k.bind("LargestBinding", wanted, m.largest)
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
	words = append(words, uint32(layout.window()), uint32(layout.bank()), uint32(m.x.shift), uint32(m.x.item))
	words = append(append(words, m.y.words()...), m.lengths.shift)
	return m.c.tiles(m.op.Name(), k, words, m.op.Batch*m.frames, nil, cost)
}

// normalise emits what comes after the logarithm.
func (m *melFrames) normalise() error {
	const values, bins = 1024, 8 // of a workgroup; see mel_normal.wgsl
	s := m.shape
	k := numbered{kernel{shader: "mel_normal", values: shaders.Values{"PerBin": s.Normalise == pass.MelPerBin}}, []operand{m.y.operand}}
	groups := roundUp(s.Mels, bins) / bins
	switch s.Normalise {
	case pass.MelAsIs:
		return nil
	case pass.MelWhisper:
		m.largest.write = false
		k.entry, k.operands = "scale", append(k.operands, m.largest)
		groups = roundUp(m.frames*s.Mels, values) / values
	default:
		k.entry = "bins"
	}
	k.values["Entry"] = k.entry
	k.values["Threads"] = 64
	if most := int(min(m.c.limits.MaxInvocations, m.c.limits.MaxWorkgroupSizeX)); most >= 256 {
		k.values["Threads"] = 256
	}
	m.numbers(&k)
	words := []uint32{uint32(s.Frame), uint32(s.Hop), uint32(s.Mels), uint32(s.PadLeft), uint32(s.PadRight), m.dropped(), uint32(m.op.Samples),
		uint32(m.frames), math.Float32bits(s.NormaliseEps), uint32(groups)}
	words = append(append(words, m.y.words()...), m.lengths.shift)
	cost := pass.Cost{FLOP: 6 * float64(m.op.Batch*m.frames*s.Mels), Bytes: 12 * float64(m.op.Batch*m.frames*s.Mels)}
	return m.c.tiles(m.op.Name(), k, words, m.op.Batch*groups, nil, cost)
}
