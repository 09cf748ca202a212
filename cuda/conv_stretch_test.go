package cuda

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// Most cases of the suite are too small for the rule to take stretches.
func TestConvolutionsInStretches(t *testing.T) {
	t.Parallel()
	library(t, 90)
	passtest.Config{Ops: []string{"conv1d"}}.Run(t, func(t testing.TB) pass.Device {
		return emulated(t, drivertest.Hopper(), Config{Ways: map[string]string{"": "stretches, 64 channels"}})
	})
}

// A stretchCase is a convolution that goes through more than one tile, or has several items
// in one.
type stretchCase struct {
	name          string
	in, out, taps int
	op            pass.Conv1D
	channels      int // of the kernel
}

func stretchCases() []stretchCase {
	return []stretchCase{
		{"sinc", 1, 84, 251, pass.Conv1D{Batch: 2, In: 2600, Stride: 10, Abs: true, Pool: 3}, 96},
		{"spectrum", 1, 34, 256, pass.Conv1D{Batch: 270, In: 576, Stride: 128, PadRight: 64, Padding: pass.PadReflect}, 64},
		{"moonshine", 1, 72, 127, pass.Conv1D{In: 13_000, Stride: 64, Epilogue: pass.Tanh}, 80},
		{"odd", 3, 10, 7, pass.Conv1D{Batch: 3, In: 700, Stride: 3, PadLeft: 5, PadRight: 2, Epilogue: pass.ReLU, Lengths: pass.Fixed(700, 0, 331)}, 64},
		{"step", 5, 66, 4, pass.Conv1D{Batch: 2, In: 201, Stride: 1}, 80},
		{"pooled", 80, 60, 5, pass.Conv1D{Batch: 2, In: 250, Pool: 3, Lengths: pass.Fixed(250, 100)}, 64},
		{"sixteens", 4, 16, 9, pass.Conv1D{Batch: 2, In: 900, Stride: 4, PadLeft: 4}, 64},
	}
}

func TestStretches(t *testing.T) {
	t.Parallel()
	library(t, 90)
	for _, c := range stretchCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := pass.ConvWeights{Weight: pass.Float32s("w", cases.Recipe("w", 1, c.out*c.in*c.taps, 0.2, 0), c.out, c.in, c.taps), Bias: cases.Recipe("b", 1, c.out, 1, 0)}
			batch := max(c.op.Batch, 1)
			x := cases.Recipe("x", 1, batch*c.op.In*c.in, 1, 0)
			way := fmt.Sprintf("stretches, %d channels", c.channels)
			compute := func(dev pass.Device, from, to int) []float32 {
				checked := c.op
				var steps int
				op := func(x, y pass.View, p pass.Param) pass.Op {
					checked.X, checked.W, checked.Y = x, p, y
					checked.Out = pass.Span{From: from, To: to}
					return checked
				}
				steps = to - from
				return computed(t, dev, w, x, batch*steps*c.out, op)
			}
			all := (c.op.In+c.op.PadLeft+c.op.PadRight-c.taps)/max(c.op.Stride, 1) + 1
			all /= max(c.op.Pool, 1)
			device := func() pass.Device {
				if onDevice() {
					dev, err := Open(t.Context(), Config{Ways: map[string]string{"": way}})
					require.NoError(t, err)
					return dev
				}
				return emulated(t, drivertest.Hopper(), Config{Ways: map[string]string{"": way}})
			}
			dev := device()
			y, want := compute(dev, 0, all), compute(host(t), 0, all)
			used := slices.ContainsFunc(dev.Info().Variants, func(v pass.Variant) bool { return v.Used && v.Reason == "forced" })
			require.True(t, used, "%v", dev.Info().Variants)
			require.InDeltaSlice(t, want, y, 3e-5)

			// In parts, an op has the same bits.
			cut := all / 2
			first, second := compute(device(), 0, cut), compute(device(), cut, all)
			var joined []float32
			for b := range batch {
				joined = append(joined, first[b*cut*c.out:(b+1)*cut*c.out]...)
				joined = append(joined, second[b*(all-cut)*c.out:(b+1)*(all-cut)*c.out]...)
			}
			require.Equal(t, y, joined)

			// What is not finite reaches the windows that it is in, and no others.
			x[len(x)/2], x[3] = float32(math.NaN()), float32(math.NaN())
			y, want = compute(device(), 0, all), compute(host(t), 0, all)
			for i := range want {
				nan := want[i] != want[i]
				require.Equal(t, nan, y[i] != y[i], "element %d: want %v, got %v", i, want[i], y[i])
				require.True(t, nan || math.Abs(float64(y[i]-want[i])) < 3e-5, "element %d: want %v, got %v", i, want[i], y[i])
			}
		})
	}
}

func TestStretchWays(t *testing.T) {
	t.Parallel()
	plans := []stretchPlan{{ConvStretchShape: kernels.ConvStretchShape{Columns: 80}}}
	others := []string{"tiles", "direct"}
	for _, c := range []struct {
		name          string
		in, out, taps int
		op            pass.Conv1D
		steps         int
		first         bool
	}{
		{"sinc", 1, 80, 251, pass.Conv1D{Pool: 3}, 15975, true},
		{"spectrum", 1, 240, 256, pass.Conv1D{Pool: 1}, 192, true}, // a tile has items enough
		{"moonshine", 1, 240, 127, pass.Conv1D{Pool: 1}, 2498, false},
		{"little", 1, 12, 251, pass.Conv1D{Pool: 3}, 45, false},
		{"pooled", 80, 60, 5, pass.Conv1D{Pool: 3}, 5319, true},
		{"channels", 80, 60, 5, pass.Conv1D{Pool: 1}, 15319, false},
	} {
		p := &convParam{in: c.in, out: c.out, taps: c.taps}
		c.op.W, c.op.In, c.op.Stride = pass.MakeParam(pass.Ref{}, pass.ConvShape{Out: c.out, In: c.in, Kernel: c.taps}), c.steps+c.taps-1, 1
		got := stretchWays(others, plans, c.op, p)
		require.Len(t, got, 3)
		require.Equal(t, c.first, got[0] == plans[0].String(), "%s: %v", c.name, got)
	}
	require.Equal(t, others, stretchWays(others, nil, pass.Conv1D{}, nil))
}
