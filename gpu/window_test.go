package gpu

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// Single items larger than a binding: right, and with the same bits as on a device whose
// bindings hold them.
func TestItemsLargerThanABinding(t *testing.T) {
	t.Parallel()
	plain := newBench(t, driver.DeviceConfig{}, nil)
	small := newBench(t, driver.DeviceConfig{Limits: driver.Limits{MaxStorageBindingSize: 64 << 10}}, nil)
	more := map[string]int{}
	for _, c := range []cases.Case{
		groupNormCase(1, 1501, 36, 100),
		inPlace(groupNormCase(2, 901, 52, 100)),
		groupNormCase(1, 30000, 1, 10),
		groupNormCase(30, 1100, 1, 10), // interleaved, a chunk of rows exceeds a binding
		convCase(1, 3001, 6, 7),
		convCase(2, 30001, 1, 3),
		mirroredCase(3001, 9, 2400, 1500, false),
		mirroredCase(3001, 6, 2400, 900, true),
		pooledCase(1, 9001, 4, 5),
		convCase(40, 600, 4, 3), // interleaved
		poolNormCase(pass.PoolNorm{}, 1, 5000, 7),
		poolNormCase(pass.PoolNorm{Pool: 3, Abs: true, Epilogue: pass.Leaky(0.1)}, 2, 3001, 37),
		poolNormCase(pass.PoolNorm{}, 1, 131, 301), // a chunk exceeds a binding
		poolNormCase(pass.PoolNorm{Pool: 2, Lengths: pass.Fixed(repeat(900, 90)...)}, 90, 1301, 2),
		with32(poolNormCase(pass.PoolNorm{Pool: 5}, 1, 9001, 2), "Lengths", 1501),
		melCase(pass.MelWhisper, 1, 40000, 9),
		with32(melCase(pass.MelWhisper, 2, 34567, 9), "Lengths", 30001, 34000),
		melCase(pass.MelPerBin, 2, 40000, 9),
		with32(melCase(pass.MelPerBin, 1, 50000, 9), "Lengths", 40003),
		melCase(pass.MelMean, 1, 34000, 9),
		melCase(pass.MelMean, 50, 34000, 1), // interleaved
		melCase(pass.MelAsIs, 1, 70000, 9),
		statsCase(1, 9, 500, 9, 2, 513),
		statsCase(1, 2, 5001, 5, 3, 20001),
		statsCase(2, 2, 4500, 4, 2, 1500),
		statsCase(1, 1, 6001, 3, 1, 6001, late(6001)...),
		statsCase(40, 2, 500, 2, 1, 400), // interleaved
		imageCase(1, 61, 43, 9, 1),
		imageCase(2, 40, 43, 12, 2),
		imageCase(30, 12, 31, 4, 1), // interleaved
		gluCase(1, 700, 25, true),
		gluCase(2, 400, 28, false),
		longLSTM(1, 901, 21, 12, 2, 2),
		longLSTM(2, 500, 40, 9, 1, 1),
		with32(longLSTM(1, 700, 30, 13, 1, 2), "Lengths", 555),
		permuteCase([4]int{1, 1, 301, 170}, [4]int{0, 1, 3, 2}),
		permuteCase([4]int{1, 13, 40, 36}, [4]int{0, 2, 1, 3}),
		permuteCase([4]int{5, 33, 4, 70}, [4]int{1, 3, 2, 0}),
		permuteCase([4]int{3, 2, 21000, 3}, [4]int{3, 1, 2, 0}),
		permuteCase([4]int{1, 1, 1, 40000}, [4]int{0, 3, 1, 2}),
	} {
		layouts := []cases.Layout{cases.Dense, cases.Awkward}
		checked, err := c.Resolve()
		require.NoError(t, err)
		if checked.Args[0].Batch > 1 {
			layouts[1] = cases.Interleaved
		}
		for _, l := range layouts {
			whole := plain.run(t, c, l)
			count := len(plain.dispatches)
			require.Equal(t, whole, small.run(t, c, l), "%s: %v", c.Name, l)
			more[c.Op.Name()] += len(small.dispatches) - count
		}
	}
	for op, n := range more {
		require.Positive(t, n, op)
	}
}

// Attention of which a binding holds some queries and some keys: what is found in runs of
// keys is joined, unless the mask lets queries see one run only.
func TestAttentionInWindows(t *testing.T) {
	t.Parallel()
	plain := newBench(t, driver.DeviceConfig{}, nil)
	small := newBench(t, driver.DeviceConfig{Limits: driver.Limits{MaxStorageBindingSize: 16 << 10}}, nil)
	for _, c := range []struct {
		c      cases.Case
		l      cases.Layout
		joined bool
	}{
		{attentionCase(1, 70, 500, 2, 8, pass.Mask{}, false), cases.Awkward, true},
		{attentionCase(2, 200, 400, 1, 12, pass.Causal, false), cases.Dense, true},
		{attentionCase(1, 250, 250, 2, 8, pass.Mask{}, true), cases.Dense, true},
		{attentionCase(1, 220, 220, 1, 16, pass.Causal, true), cases.Awkward, true},
		{attentionCase(1, 150, 500, 2, 8, pass.Band(300, 150), false), cases.Dense, true},
		{with32(with32(attentionCase(2, 270, 270, 2, 8, pass.Mask{}, true), "Lengths", 270, 130), "KeyLengths", 0, 233), cases.Dense, true},
		{attentionCase(1, 5, 900, 2, 8, pass.Mask{}, false), cases.Dense, false}, // which always joins stretches
		{attentionCase(1, 8, 700, 4, 8, pass.Band(500, 3), false), cases.Interleaved, false},
		{attentionCase(1, 500, 500, 2, 8, pass.Band(20, 17), false), cases.Awkward, false},
		{attentionCase(1, 400, 400, 2, 8, pass.Band(20, 10), true), cases.Awkward, false},
		{with32(attentionCase(1, 400, 500, 2, 8, pass.Band(30, 0), false), "KeyLengths", 441), cases.Dense, false},
	} {
		whole := plain.run(t, c.c, c.l)
		count := len(plain.dispatches)
		parts := small.run(t, c.c, c.l)
		require.Greater(t, len(small.dispatches), count, c.c.Name)
		joins := 0
		for _, d := range small.dispatches {
			if d.kernel.kernel.shader == "attention_join" {
				joins++
			}
		}
		if c.joined {
			require.Positive(t, joins, c.c.Name)
		} else {
			require.Equal(t, whole, parts, c.c.Name)
		}
	}
}

// mirroredCase is a convolution with so much padding that windows lie in it.
func mirroredCase(in, channels, left, right int, onDevice bool) cases.Case {
	c := convCase(1, in, channels, 3)
	op := c.Op.(pass.Conv1D)
	op.PadLeft, op.PadRight = left, right
	if c.Op = op; onDevice {
		c = with32(c, "Lengths", uint32(in-300))
	}
	return c
}

func pooledCase(batch, in, channels, out int) cases.Case {
	w := pass.ConvWeights{Weight: randomTensor("w", 0.2, out, channels, 7)}
	return cases.Case{Name: "conv-pooled", Op: pass.Conv1D{Batch: batch, In: in, Stride: 3, PadLeft: 4, PadRight: 9, Abs: true, Pool: 3},
		Inputs: []cases.Tensor{randomInput("X", batch, in, channels)}, Params: []cases.Param{{Field: "W", Weights: w}}, Outputs: []string{"Y"}}
}

// longLSTM is an LSTM whose items are as long as they may be.
func longLSTM(batch, time, in, hidden, layers, directions int) cases.Case {
	c := lstmCase(batch, time, in, hidden, layers, directions)
	op := c.Op.(pass.LSTM)
	op.Lengths = pass.Items{}
	c.Op = op
	return c
}

// imageCase is a convolution of images with a residual.
func imageCase(batch, height, width, channels, stride int) cases.Case {
	op := pass.Conv2D{Batch: batch, Height: height, Width: width, Stride: stride, ReLU: true}
	w := pass.Conv2DWeights{Weight: randomTensor("w", 0.2, channels, channels, 3, 3), Bias: cases.Recipe("bias", 1, channels, 1, 0)}
	lines, columns := op.Size()
	return cases.Case{Name: fmt.Sprintf("conv2d-%dx%dx%dx%d-%d", batch, height, width, channels, stride), Op: op, Outputs: []string{"Y"},
		Inputs: []cases.Tensor{randomInput("X", batch, height*width, channels), randomInput("Residual", batch, lines*columns, channels)},
		Params: []cases.Param{{Field: "W", Weights: w}}}
}

func gluCase(batch, rows, channels int, normalised bool) cases.Case {
	w := pass.ConvGLUWeights{Weight: randomTensor("w", 1, channels, 9), Gain: cases.Recipe("gain", 1, channels, 1, 1), Shift: cases.Recipe("shift", 1, channels, 1, 0), Normalised: normalised}
	return cases.Case{Name: fmt.Sprintf("convglu-%dx%dx%d", batch, rows, channels), Op: pass.ConvGLU{Batch: batch, Rows: rows}, Outputs: []string{"Y"},
		Inputs: []cases.Tensor{randomInput("X", batch, rows, 2*channels)}, Params: []cases.Param{{Field: "W", Weights: w}}}
}

// late returns weights that begin with zeros.
func late(n int) []float32 {
	w := cases.Recipe("late", 1, n, 0.5, 0.5)
	clear(w[:n/3])
	return w
}

// melCase is a front end with mirrored padding and pre-emphasis.
func melCase(n pass.MelNormal, batch, samples, mels int) cases.Case {
	w := pass.MelWeights{Window: cases.Recipe("window", 1, 40, 0.5, 1), FFT: 64, Hop: 16, Mels: mels, Bank: cases.Recipe("bank", 1, mels*33, 0.5, 1),
		PadLeft: 20, PadRight: 20, Padding: pass.PadReflect, PreEmphasis: 0.97, Log: pass.MelLn, Add: 1e-3, Normalise: n, NormaliseEps: 1e-5, DropLast: true}
	x := cases.Recipe("audio", 1, batch*samples, 1, 0)
	if n == pass.MelWhisper { // silence but for its end, so that the largest decides everywhere
		w.Log, w.Add = pass.MelLog10, 1e-10
		for i := range batch {
			clear(x[i*samples : (i+1)*samples-5000])
		}
	}
	return cases.Case{Name: fmt.Sprintf("logmel-%d-%dx%d-%d", n, batch, samples, mels), Op: pass.LogMel{Batch: batch, Samples: samples}, Outputs: []string{"Y"},
		Inputs: []cases.Tensor{cases.F32("X", x, batch, 1, samples)}, Params: []cases.Param{{Field: "W", Weights: w}}}
}
