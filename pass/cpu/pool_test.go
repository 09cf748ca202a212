package cpu_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// statsPool is the definition of a StatsPool.
func statsPool(s pass.StatsPool, x, masks []float32) []float64 {
	var want []float64
	for b := range s.Batch {
		for m := range s.Count {
			row := make([]float64, 2*s.Channels*s.Height)
			for h := range s.Height {
				for c := range s.Channels {
					value := func(i int) float64 { return float64(x[((b*s.Height+h)*s.Width+i)*s.Channels+c]) }
					weight := func(i int) float64 { return float64(masks[(b*s.Count+m)*s.Frames+i*s.Frames/s.Width]) }
					w, w2, mean, variance := 0.0, 0.0, 0.0, 0.0
					for i := range s.Width {
						w += weight(i)
						w2 += weight(i) * weight(i)
						mean += weight(i) * value(i)
					}
					if w > 0 {
						mean /= w
						for i := range s.Width {
							variance += weight(i) * (value(i) - mean) * (value(i) - mean)
						}
						if divisor := w - w2/w; divisor > 0 {
							variance /= divisor
						} else {
							variance = 0
						}
					}
					row[c*s.Height+h] = mean
					row[(s.Channels+c)*s.Height+h] = math.Sqrt(max(variance, 1e-10))
				}
			}
			want = append(want, row...)
		}
	}
	return want
}

func TestStatsPool(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, s := range []pass.StatsPool{
		{Batch: 1, Height: 1, Width: 1, Channels: 1, Count: 1, Frames: 1},
		{Batch: 2, Height: 3, Width: 7, Channels: 5, Count: 6, Frames: 7},
		{Batch: 1, Height: 2, Width: 21, Channels: 130, Count: 6, Frames: 50},
		{Batch: 2, Height: 10, Width: 40, Channels: 64, Count: 6, Frames: 9},
		{Batch: 1, Height: 2, Width: 3, Channels: 0, Count: 2, Frames: 3},
		{Batch: 1, Height: 2, Width: 3, Channels: 4, Count: 0, Frames: 3},
	} {
		x := random(r.rng, s.Batch*s.Height*s.Width*s.Channels)
		for i := range x {
			x[i] += 100
		}
		masks := make([]float32, s.Batch*s.Count*s.Frames)
		for i := range masks {
			switch frame := i % s.Frames; i / s.Frames % 6 {
			case 0: // zeros
			case 1: // one frame
				if frame == s.Frames/2 {
					masks[i] = 0.3
				}
			case 2:
				masks[i] = 1
			case 3:
				masks[i] = float32(frame & 1)
			case 4:
				masks[i] = r.rng.Float32()
			case 5: // tiny
				masks[i] = 1e-20 * r.rng.Float32()
			}
		}
		out := r.output(s.Batch, s.Count, 2*s.Channels*s.Height)
		op := s
		op.X = r.floats(s.Batch, s.Height*s.Width, s.Channels, x).View
		op.Masks = r.floats(s.Batch, s.Count, s.Frames, masks).View
		op.Y = out.View
		r.do(op)
		want, got := statsPool(s, x, masks), out.values()
		half := s.Channels * s.Height
		for i := 0; i < len(got); i += max(half, 1) { // means are much larger than deviations
			r.close(want[i:i+half], got[i:i+half], s)
		}
	}
}

func TestStatsPoolOfFewColumns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	x := r.floats(1, 3, 1, []float32{5, nan, 7})
	y := r.output(1, 3, 2)
	masks := r.floats(1, 3, 3, []float32{0, 0, 0, 1, 1, 0, 1, nan, 1})
	r.do(pass.StatsPool{X: x.View, Masks: masks.View, Y: y.View, Height: 1, Width: 3, Channels: 1, Count: 3, Frames: 3})
	none := math.NaN()
	r.close([]float64{0, 1e-5, none, none, none, none}, y.values())

	one := r.floats(1, 2, 1, []float32{5, 6})
	y = r.output(1, 1, 2)
	r.do(pass.StatsPool{X: one.View, Masks: r.floats(1, 1, 2, []float32{0, 0.7}).View, Y: y.View, Height: 1, Width: 2, Channels: 1, Count: 1, Frames: 2})
	require.Equal(t, []float32{6, 1e-5}, y.values())
	// The second weight is within the rounding of the first.
	r.do(pass.StatsPool{X: one.View, Masks: r.floats(1, 1, 2, []float32{1, 1e-14}).View, Y: y.View, Height: 1, Width: 2, Channels: 1, Count: 1, Frames: 2})
	require.Equal(t, []float32{5, 1e-5}, y.values())
}
