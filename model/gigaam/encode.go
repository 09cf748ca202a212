package gigaam

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/model/conformer"
	"github.com/tandem-gpu/tandem/pass"
)

// encoder is a model as package asr takes it.
type encoder struct{ *Model }

// Frames implements asr.Encoder.
func (e encoder) Frames(samples int) int {
	shape, _ := e.mel.Shape().(pass.MelShape)
	return shape.Frames(samples)
}

// subsampling is convolution i over some steps, without its views.
func (e encoder) subsampling(i, steps int) pass.Conv1D {
	pad := (e.cfg.Kernel - 1) / 2
	return pass.Conv1D{W: e.conv[i], In: steps, Stride: 2, PadLeft: pad, PadRight: pad, Epilogue: pass.ReLU}
}

// Stages implements asr.Encoder: mel frames, after one convolution, after both.
func (e encoder) Stages(frames int) []int {
	half := e.subsampling(0, frames).Steps(frames)
	return []int{frames, half, e.subsampling(1, half).Steps(half)}
}

// State implements asr.Encoder: none is kept, but windows have a limit.
func (e encoder) State(_ context.Context, _ pass.Session, frames int) (pass.Buffer, error) {
	if t := e.Stages(frames)[2]; t > e.cfg.Positions {
		return pass.Buffer{}, fmt.Errorf("gigaam: windows: want at most the %d frames that there are positions for, given %d: %w", e.cfg.Positions, t, pass.ErrInvalid)
	}
	return pass.Buffer{}, nil
}

// Encode implements asr.Encoder.
func (e encoder) Encode(p pass.Pass, in *conformer.Batch, x pass.View) pass.View {
	d, stages := e.cfg.Blocks.Width, e.Stages(in.Frames)
	half, t := stages[1], stages[2]
	first, second := e.subsampling(0, in.Frames), e.subsampling(1, half)
	first.X, first.Y = x, p.Temp(pass.F32, in.Items*half*d).View()
	second.X, second.Y = first.Y, p.Temp(pass.F32, in.Items*t*d).View()
	first.Batch, second.Batch = in.Items, in.Items
	first.Lengths, second.Lengths = in.Lengths[0], in.Lengths[1]
	y := second.Y
	if t == 0 {
		return y
	}
	p.Do(first, second)
	in.Note(p, "subsampled", y, t, d)
	for i, b := range e.blocks {
		b.Do(p, in, y, t, pass.View{}, e.rotary)
		in.Note(p, fmt.Sprintf("layers.%d", i), y, t, d)
	}
	in.Note(p, "encoder", y, t, d)
	return y
}
