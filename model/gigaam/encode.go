package gigaam

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/model/conformer"
	"github.com/tandem-gpu/tandem/pass"
)

// Frames implements asr.Encoder.
func (m *Model) Frames(samples int) int {
	shape, _ := m.mel.Shape().(pass.MelShape)
	return shape.Frames(samples)
}

// subsampling is convolution i over some steps, without its views.
func (m *Model) subsampling(i, steps int) pass.Conv1D {
	pad := (m.cfg.Kernel - 1) / 2
	return pass.Conv1D{W: m.conv[i], In: steps, Stride: 2, PadLeft: pad, PadRight: pad, Epilogue: pass.ReLU}
}

// Stages implements asr.Encoder: mel frames, after one convolution, after both.
func (m *Model) Stages(frames int) []int {
	half := m.subsampling(0, frames).Steps(frames)
	return []int{frames, half, m.subsampling(1, half).Steps(half)}
}

// State implements asr.Encoder: none is kept, but windows have a limit.
func (m *Model) State(_ context.Context, _ pass.Session, frames int) (pass.Buffer, error) {
	if t := m.Stages(frames)[2]; t > m.cfg.Positions {
		return pass.Buffer{}, fmt.Errorf("gigaam: windows: want at most the %d frames that there are positions for, given %d: %w", m.cfg.Positions, t, pass.ErrInvalid)
	}
	return pass.Buffer{}, nil
}

// Encode implements asr.Encoder: it records the encoder on mel features x,
// [Items][Frames][64], and returns its frames, [Items][Stages(Frames)[2]][Width]. It
// traces "subsampled", "layers.N" and "encoder".
func (m *Model) Encode(p pass.Pass, in *conformer.Batch, x pass.View) pass.View {
	d, stages := m.cfg.Blocks.Width, m.Stages(in.Frames)
	half, t := stages[1], stages[2]
	first, second := m.subsampling(0, in.Frames), m.subsampling(1, half)
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
	for i, b := range m.blocks {
		b.Do(p, in, y, t, pass.View{}, m.rotary)
		in.Note(p, fmt.Sprintf("layers.%d", i), y, t, d)
	}
	in.Note(p, "encoder", y, t, d)
	return y
}
