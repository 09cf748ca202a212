package parakeet

import (
	"context"
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/model/conformer"
	"github.com/tandem-gpu/tandem/pass"
)

// half is how many of n are left after a convolution of 3 with stride 2 and padding.
func half(n int) int {
	if n <= 0 {
		return 0
	}
	return (n-1)/2 + 1
}

// bins returns the frequencies at the stages of the subsampling.
func (c Config) bins() (mels, quarter, eighth int) {
	quarter = half(half(c.Mels))
	return c.Mels, quarter, half(quarter)
}

// encoder is a model as package asr takes it.
type encoder struct{ *Model }

// Frames implements asr.Encoder. The last frame of the front end, which has no samples of
// its own hop, is zero and does not count.
func (e encoder) Frames(samples int) int { return samples / 160 }

// Stages implements asr.Encoder: mel frames, after two convolutions, after three.
func (e encoder) Stages(frames int) []int {
	quarter := half(half(frames))
	return []int{frames, quarter, half(quarter)}
}

// State implements asr.Encoder: the table of relative positions.
func (e encoder) State(ctx context.Context, ses pass.Session, frames int) (pass.Buffer, error) {
	stages := e.Stages(frames)
	table := conformer.Table(stages[2], e.cfg.Blocks.Width)
	b, err := ses.Alloc(pass.F32, len(table))
	if err == nil && len(table) > 0 {
		err = ses.Write(ctx, b.View(), table)
	}
	if err != nil {
		return b, fmt.Errorf("parakeet: positions: %w", err)
	}
	return b, nil
}

// Encode implements asr.Encoder.
func (e encoder) Encode(p pass.Pass, in *conformer.Batch, x pass.View) pass.View {
	d := e.cfg.Blocks.Width
	t := e.Stages(in.Frames)[2]
	y := p.Temp(pass.F32, in.Items*t*d).View()
	if t == 0 {
		return y
	}
	e.subsample(p, in, x, y, t)
	if e.cfg.Scale {
		p.Do(pass.Scale{X: y, Y: y, Rows: in.Items * t, Cols: d, Factor: float32(math.Sqrt(float64(d)))})
	}
	in.Note(p, "subsampled", y, t, d)
	// The table may be for more frames: its middle serves these.
	most := (in.State.Buffer.Len()/d + 1) / 2
	table := in.State.At((most - t) * d)
	for i, b := range e.blocks {
		b.Do(p, in, y, t, table, pass.Param{})
		in.Note(p, fmt.Sprintf("layers.%d", i), y, t, d)
	}
	in.Note(p, "encoder", y, t, d)
	return y
}

// sliceRows is how many frames of all items the subsampling makes at a time: its images
// are eighty times as large as a frame.
const sliceRows = 512

// subsample records the subsampling of x to y, [Items][t][Width], in slices of time.
func (e encoder) subsample(p pass.Pass, in *conformer.Batch, x, y pass.View, t int) {
	c, d := e.cfg.Channels, e.cfg.Blocks.Width
	mels, quarter, eighth := e.cfg.bins()
	middle := e.Stages(in.Frames)[1]
	temp := func(rows int) pass.View { return p.Temp(pass.F32, in.Items*rows*c).View() }
	step := max(sliceRows/in.Items, 16)
	for from := 0; from < t; from += step {
		to := min(from+step, t)
		// A frame is made of three rows of the image before, two of them its own.
		held := pass.Span{From: max(2*from-1, 0), To: min(2*to, middle)}
		rows := held.Len()
		a, b := temp(rows*quarter), temp(rows*quarter)
		g, f, flat := temp((to-from)*eighth), temp((to-from)*eighth), temp((to-from)*eighth)
		p.Do(
			pass.DepthwiseConv2D{
				X: x, W: e.first, Y: a, Batch: in.Items, Time: in.Frames, Frequency: mels,
				Out: held, Lengths: in.Lengths[0],
			},
			pass.Gemm{A: a, W: e.between, C: b, Rows: in.Items * rows * quarter, Epilogue: pass.ReLU},
			pass.DepthwiseConv2D{
				X: b, W: e.second, Y: g, Batch: in.Items, Time: middle, Frequency: quarter,
				Held: held, Out: pass.Span{From: from, To: to}, Lengths: in.Lengths[1],
			},
			pass.Gemm{A: g, W: e.after, C: f, Rows: in.Items * (to - from) * eighth, Epilogue: pass.ReLU},
			pass.Permute{X: f, Y: flat, Dims: [4]int{1, in.Items * (to - from), eighth, c}, Order: [4]int{0, 1, 3, 2}},
			pass.Gemm{A: flat, W: e.linear, C: y.At(from * d).Batch(t * d), Batch: in.Items, Rows: to - from},
		)
	}
}
