package gpu

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// What workgroups take of the logarithms; see mel_normal.wgsl and mel_top.wgsl.
const (
	melValues  = 1024 // that are scaled, or of which the largest is found
	melBins    = 8
	melChunk   = 256  // frames
	longFrames = 2048 // an item of more frames is cut into chunks
)

// normalise emits what comes after the logarithm.
func (m *melFrames) normalise() error {
	switch m.shape.Normalise {
	case pass.MelAsIs:
		return nil
	case pass.MelWhisper:
		return m.scale()
	}
	all := pass.Span{To: m.frames}
	if m.frames <= longFrames && m.c.holds(m.op.Y, m.op.Batch, all, m.shape.Mels) {
		return m.bins("bins", pass.Span{To: 1}, all, 1, operand{})
	}
	return m.chunks()
}

// scale emits what bounds values by the largest of their item.
func (m *melFrames) scale() error {
	top, tops := m.largest, m.frames
	for tops > melValues {
		var err error
		if top, tops, err = m.top(top, tops); err != nil {
			return err
		}
	}
	mels := m.shape.Mels
	groups := roundUp(m.frames*mels, melValues) / melValues
	frames := func(s pass.Span) pass.Span {
		return pass.Span{From: s.From * melValues / mels, To: min((s.To*melValues+mels-1)/mels, m.frames)}
	}
	windows, err := m.some(groups, frames, func(pass.Span) bool { return true })
	if err != nil {
		return err
	}
	top.write = false
	for _, s := range windows {
		y := m.c.window(m.op.Y, m.op.Batch, frames(s), mels, true)
		k := numbered{kernel{shader: "mel_normal", entry: "scale", values: shaders.Values{}}, []operand{y.operand, top}}
		tiles := pass.Span{From: s.From, To: (m.op.Batch-1)*groups + s.To} // several items have all of theirs
		if err := m.normal(k, y, groups, tops, 1, tiles, share(m.cost(), s.Len(), groups)); err != nil {
			return err
		}
	}
	return nil
}

// top emits what finds the largest of stretches of numbers of each item, and returns them.
func (m *melFrames) top(numbers operand, count int) (operand, int, error) {
	stretches := (count + melValues - 1) / melValues
	tops := m.c.scratch(m.op.Batch * stretches)
	tops.write = true
	window := func(s pass.Span) pass.Span {
		return pass.Span{From: s.From * melValues, To: (m.op.Batch-1)*count + min(s.To*melValues, count)}
	}
	list, ok := runs(pass.Span{To: stretches}, func(s pass.Span) bool { return m.op.Batch > 1 || m.c.fitsScratch(window(s).Len()) })
	if !ok {
		return tops, 0, m.c.tooMuch(fmt.Sprintf("%d numbers", melValues))
	}
	for _, s := range list {
		w := window(s)
		some, shift := m.c.part(numbers, w.From, w.To, false)
		k := numbered{kernel{shader: "mel_top", entry: "top", values: shaders.Values{}}, []operand{tops, some}}
		tiles := pass.Span{From: s.From, To: (m.op.Batch-1)*stretches + s.To}
		words := []uint32{uint32(count), uint32(stretches), shift - uint32(w.From)}
		if err := m.c.someTiles(m.op.Name(), k, words, tiles, nil, pass.Cost{Bytes: 4 * float64(w.Len())}); err != nil {
			return tops, 0, err
		}
	}
	return tops, stretches, nil
}

// chunks emits what normalises the bins of long items.
func (m *melFrames) chunks() error {
	chunks := (m.frames + melChunk - 1) / melChunk
	frames := func(s pass.Span) pass.Span {
		return pass.Span{From: s.From * melChunk, To: min(s.To*melChunk, m.frames)}
	}
	windows, err := m.some(chunks, frames, func(pass.Span) bool { return true })
	if err != nil {
		return err
	}
	parts := m.c.scratch(momentWords * m.op.Batch * chunks * m.shape.Mels)
	parts.write = true
	for _, entry := range []string{"moments", "apply"} {
		for _, s := range windows {
			if err := m.bins(entry, s, frames(s), chunks, parts); err != nil {
				return err
			}
		}
		parts.write = false
	}
	return nil
}

// bins emits a kernel that takes bins over some chunks of time.
func (m *melFrames) bins(entry string, chunks, frames pass.Span, all int, parts operand) error {
	y := m.c.window(m.op.Y, m.op.Batch, frames, m.shape.Mels, true)
	k := numbered{kernel{shader: "mel_normal", entry: entry, values: shaders.Values{}}, []operand{y.operand}}
	if entry != "bins" {
		k.operands = append(k.operands, parts)
	}
	groups := roundUp(m.shape.Mels, melBins) / melBins
	tiles := pass.Span{From: chunks.From * groups, To: ((m.op.Batch-1)*all + chunks.To) * groups} // several items have all of theirs
	return m.normal(k, y, groups, 0, all, tiles, share(m.cost(), chunks.Len(), 2*all))
}

// cost returns what normalising costs.
func (m *melFrames) cost() pass.Cost {
	n := float64(m.op.Batch * m.frames * m.shape.Mels)
	return pass.Cost{FLOP: 6 * n, Bytes: 12 * n}
}

// normal emits some workgroups of a kernel of normalisation.
func (m *melFrames) normal(k numbered, y lines, groups, tops, chunks int, tiles pass.Span, cost pass.Cost) error {
	s := m.shape
	k.values["Entry"], k.values["PerBin"], k.values["Threads"] = k.entry, s.Normalise == pass.MelPerBin, 64
	if most := int(min(m.c.limits.MaxInvocations, m.c.limits.MaxWorkgroupSizeX)); most >= 256 {
		k.values["Threads"] = 256
	}
	m.numbers(&k)
	words := []uint32{uint32(s.Frame), uint32(s.Hop), uint32(s.Mels), uint32(s.PadLeft), uint32(s.PadRight), m.dropped(), uint32(m.op.Samples),
		uint32(m.frames), math.Float32bits(s.NormaliseEps), uint32(groups)}
	words = append(append(words, y.words()...), m.lengths.shift, uint32(tops), uint32(chunks))
	return m.c.someTiles(m.op.Name(), k, words, tiles, nil, cost)
}
