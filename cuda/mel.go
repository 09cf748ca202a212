package cuda

import (
	"fmt"
	"math/bits"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// Geometry of the kernels of a LogMel.
const (
	melWarps       = 4    // of a block, unless the transform is long
	melLongest     = 1024 // transform for which that many pools fit
	melScaleValues = 1024 // of a block
	melBinsAcross  = 8    // of a block

	// Transforms after pre-emphasis are twofold up to melTwofoldLongest, whose pools fit
	// into a block of any GPU. Lanes hold those of at most melWithinLongest.
	melTwofoldLongest = 2048
	melWithinLongest  = 512
)

// logMel compiles a LogMel: frame by frame up to the logarithm, and then what
// normalisation makes of all frames of an item.
func (c *compiler) logMel(op pass.LogMel, cost pass.Cost) error {
	p := c.plan.Param(op.W).(*melParam)
	s := p.shape
	frames := s.Frames(op.Samples)
	count := op.Batch * frames
	if count == 0 {
		return nil
	}
	name, warps, room := "mel_frames", melWarps, s.FFT // complex numbers of a warp
	switch {
	case p.floats > 1 && s.FFT <= melWithinLongest && bits.OnesCount(uint(s.FFT)) == 1:
		name, room = "mel_frames_twofold", s.FFT/2+s.FFT/8+1
	case p.floats > 1:
		name, warps = "mel_frames_twofold", 1
	case s.FFT > melLongest:
		warps = 1
	}
	each := min(max(count/8192, 1), 8) // frames share a copy of the table, if there are many
	k := c.call(fmt.Sprintf("%s_%d", name, warps)).because("transforms of %d numbers, radices %v", s.FFT/2, p.radices)
	args := kernels.Mel{
		X: k.read(op.X, op.Batch, 1, op.Samples), Y: k.write(op.Y, op.Batch, frames, s.Mels),
		Tables: kernels.U32(p.at), Lengths: k.items(op.Lengths, op.Batch, op.Samples),
		Count: k.count(count), Each: uint32(each),
		Samples: k.count(op.Samples), Frames: k.count(frames), Frame: uint32(s.Frame), Hop: uint32(s.Hop), Mels: k.count(s.Mels),
		Left: uint32(s.PadLeft), Right: uint32(s.PadRight), Drop: flag(s.DropLast), Reflect: flag(reflects(s)),
		PerFrame: flag(s.PerFrame), Log: uint32(s.Log),
		Half: uint32(s.FFT / 2), Passes: uint32(len(p.radices)), Window: uint32(p.window()), Bank: uint32(p.bank()),
		Gain: s.Gain, Emphasis: s.PreEmphasis, Lowest: s.Min, Highest: s.Max, Added: s.Add,
	}
	for i, r := range p.radices {
		args.Radices[i] = uint32(r)
	}
	var largest region
	if s.Normalise == pass.MelWhisper {
		largest = c.temporary(4 * count)
		args.Largest = kernels.F32(k.to(largest))
	}
	shared := 8 * p.floats * (s.FFT + warps*room)
	if err := run(k, args, grid{ceilDiv(count, warps*each), 1, 1}, shared, cost); err != nil {
		return err
	}
	return c.melNormal(op, s, frames, largest)
}

// melNormal compiles what comes after the logarithm.
func (c *compiler) melNormal(op pass.LogMel, s pass.MelShape, frames int, largest region) error {
	if s.Normalise == pass.MelAsIs {
		return nil
	}
	name, groups := "mel_bins", ceilDiv(s.Mels, melBinsAcross)
	if s.Normalise == pass.MelWhisper {
		name, groups = "mel_scale", ceilDiv(frames*s.Mels, melScaleValues)
	}
	k := c.call(name)
	args := kernels.MelNormal{
		Y:       k.write(op.Y, op.Batch, frames, s.Mels),
		Lengths: k.items(op.Lengths, op.Batch, op.Samples),
		Samples: k.count(op.Samples), Frames: k.count(frames), Frame: uint32(s.Frame), Hop: uint32(s.Hop), Mels: k.count(s.Mels),
		Left: uint32(s.PadLeft), Right: uint32(s.PadRight), Drop: flag(s.DropLast), Reflect: flag(reflects(s)),
		PerBin: flag(s.Normalise == pass.MelPerBin), Groups: k.count(groups), Epsilon: s.NormaliseEps,
	}
	if s.Normalise == pass.MelWhisper {
		args.Largest = kernels.F32(k.from(largest))
	}
	values := float64(op.Batch * frames * s.Mels)
	return run(k, args, grid{op.Batch * groups, 1, 1}, 0, pass.Cost{FLOP: 6 * values, Bytes: 12 * values})
}

// reflects reports whether padding reads samples.
func reflects(s pass.MelShape) bool {
	return s.Padding == pass.PadReflect && max(s.PadLeft, s.PadRight) > 0
}
