package gpu

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// Cutting into dispatches changes no bit of any op of the blocks of encoders.
func TestBlocksInParts(t *testing.T) {
	t.Parallel()
	plain := newBench(t, driver.DeviceConfig{}, nil)
	lesser := map[string]*bench{
		"workgroups": newBench(t, driver.DeviceConfig{Limits: driver.Limits{MaxWorkgroups: 1}}, nil),
		"rate":       newBench(t, driver.DeviceConfig{}, func(d *device) { d.rate.FLOP = 1e4 }),
	}
	const every = 5 // cases of one op
	seen, more := map[string]int{}, map[string]int{}
	for _, e := range cases.All() {
		switch e.Op {
		case "conv2d", "convglu", "depthwiseconv2d", "logmel":
		default:
			continue
		}
		if seen[e.Op]++; e.Full || seen[e.Op]%every != 0 {
			continue
		}
		c := e.Case()
		whole := plain.run(t, c, cases.Awkward)
		count := len(plain.dispatches)
		for name, b := range lesser {
			require.Equal(t, whole, b.run(t, c, cases.Awkward), "%s: %s", name, c.Name)
			if len(b.dispatches) > count {
				more[name+" "+e.Op]++
			}
		}
	}
	for _, op := range []string{"conv2d", "convglu", "logmel"} {
		require.Positive(t, more["rate "+op], op)
		require.Positive(t, more["workgroups "+op], op)
	}
}

// Every geometry fits the device, and what decides about bits does not depend on how
// many rows there are.
func TestChooseGLU(t *testing.T) {
	t.Parallel()
	for _, limits := range []driver.Limits{kernelLimits(1024, 48<<10), kernelLimits(256, 16<<10), kernelLimits(64, 16<<10)} {
		for _, channels := range []int{1, 64, 255, 1024, 1536, 5000, 20000} {
			for _, normalised := range []bool{false, true} {
				s := pass.ConvGLUShape{Channels: channels, Kernel: 9, Normalised: normalised}
				few, many := chooseGLU(s, 10, limits), chooseGLU(s, 10000, limits)
				require.Equal(t, few.threads, many.threads)
				require.Equal(t, few.held, many.held)
				require.LessOrEqual(t, few.rows, many.rows)
				require.LessOrEqual(t, many.threads, int(limits.MaxInvocations))
				if normalised {
					require.LessOrEqual(t, many.workgroupBytes(), int(limits.MaxWorkgroupStorage))
				}
				if normalised && many.held > 0 {
					require.GreaterOrEqual(t, 4*many.threads*many.held, channels)
				}
			}
		}
	}
	require.Equal(t, gluTile{threads: 256, held: 1, rows: 8, taps: 9}, chooseGLU(pass.ConvGLUShape{Channels: 1024, Kernel: 9, Normalised: true}, 1500, kernelLimits(1024, 48<<10)))
	require.Zero(t, chooseGLU(pass.ConvGLUShape{Channels: 20000, Kernel: 9, Normalised: true}, 1500, kernelLimits(1024, 48<<10)).held)
}

// More channels than registers hold.
func TestGLUOfManyChannels(t *testing.T) {
	t.Parallel()
	const channels, rows = 2051, 5
	w := pass.ConvGLUWeights{Weight: randomTensor("w", 1, channels, 3), Gain: cases.Recipe("gain", 1, channels, 1, 1), Shift: cases.Recipe("shift", 1, channels, 1, 0), Normalised: true}
	c := cases.Case{Name: "convglu", Op: pass.ConvGLU{Batch: 2, Rows: rows, Lengths: pass.Fixed(rows, 3)}, Outputs: []string{"Y"},
		Inputs: []cases.Tensor{randomInput("X", 2, rows, 2*channels)}, Params: []cases.Param{{Field: "W", Weights: w}}}
	b := newBench(t, driver.DeviceConfig{Limits: driver.Limits{MaxInvocations: 64}}, nil)
	b.run(t, c, cases.Awkward)
	require.Equal(t, 0, b.dispatches[0].kernel.kernel.values["Held"])
}

func TestPackDepthwise(t *testing.T) {
	t.Parallel()
	w := pass.DepthwiseWeights{Weight: numbered32(1, 1, 5, 3, 3), First: numbered32(100, 1, 5, 1, 3, 3), FirstBias: []float32{1, 2, 3, 4, 5}}
	for _, block := range []int{1, 7, 1000} {
		all := filledWords(t, w, bindingLimits(1<<20), block)
		require.Len(t, all, 1)
		require.Len(t, all[0], 20*8)
		for channel := range 5 {
			for tap := range 9 {
				require.Equal(t, float32(1+9*channel+tap), floatOf(all[0][tap*8+channel]))
				require.Equal(t, float32(100+9*channel+tap), floatOf(all[0][(10+tap)*8+channel]))
			}
			require.Zero(t, all[0][9*8+channel], "no bias")
			require.Equal(t, float32(1+channel), floatOf(all[0][19*8+channel]))
		}
		require.Zero(t, all[0][5])
	}
}

func TestPackConv2D(t *testing.T) {
	t.Parallel()
	all := filledWords(t, pass.Conv2DWeights{Weight: numbered32(1, 1, 2, 3, 3, 3), Bias: []float32{8, 9}}, bindingLimits(1<<20), 5)
	require.Len(t, all, 2)
	for o := range 2 {
		for i := range 3 {
			for tap := range 9 {
				require.Equal(t, float32(1+(o*3+i)*9+tap), floatOf(all[0][o*32+tap*3+i]))
			}
		}
		require.Zero(t, all[0][o*32+27])
	}
}

func TestPackMel(t *testing.T) {
	t.Parallel()
	w := pass.MelWeights{Window: []float32{5, 6, 7}, FFT: 4, Hop: 1, Mels: 3, Bank: []float32{0, 2, 3, 0, 0, 0, 4, 0, 0}}
	all := filledWords(t, w, bindingLimits(1<<20), 3)
	require.Len(t, all, 1)
	turn := []float32{1, 0, 0, 1, -1, 0, 0, -1}
	for i, want := range turn {
		require.InDelta(t, want, floatOf(all[0][i]), 1e-15)
	}
	require.Equal(t, []uint32{math.Float32bits(5), math.Float32bits(6), math.Float32bits(7), 1, 2, 20, 3, 0, 22, 0, 1, 22}, all[0][8:20])
	require.Equal(t, []uint32{math.Float32bits(2), math.Float32bits(3), math.Float32bits(4)}, all[0][20:])
	_, err := pack(w, bindingLimits(64))
	require.ErrorIs(t, err, pass.ErrUnsupported)
}

// A length is the product of the radices of its passes, of which there are few enough.
func TestRadices(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 2048; n++ {
		product := 1
		radices := radicesOf(n)
		for _, r := range radices {
			product *= r
		}
		require.Equal(t, n, product)
		require.LessOrEqual(t, len(radices), mostRadices)
	}
	require.Equal(t, []int{4, 2, 5, 5}, radicesOf(200))
	require.Equal(t, []int{2039}, radicesOf(2039))
}

// The longest transforms fit the least workgroup memory, and prime ones are right.
func TestLongTransforms(t *testing.T) {
	t.Parallel()
	b := newBench(t, driver.DeviceConfig{Limits: driver.Limits{MaxInvocations: 256, MaxWorkgroupStorage: 16 << 10}}, nil)
	for _, fft := range []int{4096, 2 * 2039, 2 * 1021} {
		w := pass.MelWeights{Window: cases.Recipe("window", 1, fft-3, 1, 0), FFT: fft, Hop: 1000, Mels: 3, Bank: cases.Recipe("bank", 1, 3*(fft/2+1), 0.5, 1)}
		c := cases.Case{Name: "logmel", Op: pass.LogMel{Samples: 2*fft + 1}, Outputs: []string{"Y"}, Tolerance: cases.Tolerance{L2: 5e-6, Max: 1e-6},
			Inputs: []cases.Tensor{randomInput("X", 1, 1, 2*fft+1)}, Params: []cases.Param{{Field: "W", Weights: w}}}
		b.run(t, c, cases.Dense)
	}
}
