package cuda

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// A convTiming is a convolution at a size that networks have. Sums depend on the data only
// through the card's power, but that counts: they are random.
type convTiming struct {
	name  string
	times int // in one recording, one after the other
	make  func(m *rowMaker) pass.Op
	ways  []string // beside the chosen one
}

// random returns values that are not zeros; a million of them, again and again.
func (m *rowMaker) random(n int) pass.View {
	x, some := m.floats(n), cases.Recipe("x", 1, min(n, 1<<20), 1, 0)
	all := make([]float32, n)
	for i := 0; i < n; i += len(some) {
		copy(all[i:], some)
	}
	require.NoError(m.b, m.s.Write(context.Background(), x, all))
	return x
}

func (m *rowMaker) tensor(shape ...int) pass.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return pass.Float32s("w", cases.Recipe("w", 1, n, 0.1, 0), shape...)
}

func (m *rowMaker) conv2d(batch, height, width, in, out, size, stride int, residual bool) pass.Op {
	w := m.load(pass.Conv2DWeights{Weight: m.tensor(out, in, size, size), Bias: cases.Recipe("b", 1, out, 1, 0)})
	op := pass.Conv2D{X: m.random(batch * height * width * in), W: w, Batch: batch, Height: height, Width: width, Stride: stride, ReLU: true}
	h, wide := op.Size()
	op.Y = m.floats(batch * h * wide * out)
	if residual {
		op.Residual = m.random(batch * h * wide * out)
	}
	return op
}

func (m *rowMaker) conv1d(op pass.Conv1D, in, out, kernel int) pass.Op {
	op.W = m.load(pass.ConvWeights{Weight: m.tensor(out, in, kernel)})
	op.X = m.random(max(op.Batch, 1) * op.In * in)
	op.Y = m.floats(max(op.Batch, 1) * op.Steps(op.In) * out)
	return op
}

func (m *rowMaker) convGLU(rows, channels, kernel int, normalised bool) pass.Op {
	w := m.load(pass.ConvGLUWeights{Weight: m.tensor(channels, kernel), Gain: cases.Recipe("g", 1, channels, 1, 0), Shift: make([]float32, channels), Normalised: normalised})
	return pass.ConvGLU{X: m.random(rows * 2 * channels), Y: m.floats(rows * channels), W: w, Rows: rows}
}

// BenchmarkConv times convolutions on the GPU, many in one graph, each of which waits for
// the one before it.
func BenchmarkConv(b *testing.B) {
	if !onDevice() {
		b.Skip("measures a GPU: TANDEM_DEVICES=cuda")
	}
	for _, r := range convTimings() {
		for _, way := range append([]string{""}, r.ways...) {
			name := r.name
			if way != "" {
				name += "/" + way
			}
			for _, math := range []pass.Math{pass.Exact, pass.Fast} {
				b.Run(fmt.Sprintf("%s/%v", name, math), func(b *testing.B) { r.run(b, way, math) })
			}
		}
	}
}

// run times a convolution in a way, and says how long its kernels take, if it is asked to.
func (r convTiming) run(b *testing.B, way string, math pass.Math) {
	ctx := context.Background()
	var last Trace
	cfg := Config{Ways: map[string]string{"": way}}
	if os.Getenv("TANDEM_CUDA_SPANS") != "" {
		cfg.Trace = func(s Trace) { last = s }
		r.times = 1
	}
	dev, err := Open(ctx, cfg)
	require.NoError(b, err)
	defer dev.Close()
	s, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(b, err)
	defer s.Close()
	timeOp(b, s, r.make(&rowMaker{b, dev, s}), math, r.times)
	for _, s := range last.Spans {
		fmt.Printf("    %-40s %8.1f us\n", s.Kernel, s.Seconds*1e6)
	}
}

func convTimings() []convTiming {
	all := []convTiming{
		{"convglu/1500x1024-k9", 500, func(m *rowMaker) pass.Op { return m.convGLU(1500, 1024, 9, true) }, nil},
		{"convglu/1500x1024-k9-affine", 500, func(m *rowMaker) pass.Op { return m.convGLU(1500, 1024, 9, false) }, nil},
		{"convglu/60x1024-k9", 500, func(m *rowMaker) pass.Op { return m.convGLU(60, 1024, 9, true) }, nil},
		{"convglu/1500x768-k5", 500, func(m *rowMaker) pass.Op { return m.convGLU(1500, 768, 5, true) }, nil},
		{"depthwise/1500x40x256", 200, func(m *rowMaker) pass.Op {
			return pass.DepthwiseConv2D{X: m.random(1500 * 40 * 256), Y: m.floats(750 * 20 * 256), W: m.load(pass.DepthwiseWeights{Weight: m.tensor(256, 3, 3)}), Time: 1500, Frequency: 40}
		}, nil},
		{"depthwise/first-3000x80to256", 200, func(m *rowMaker) pass.Op {
			w := m.load(pass.DepthwiseWeights{Weight: m.tensor(256, 3, 3), First: m.tensor(256, 3, 3)})
			return pass.DepthwiseConv2D{X: m.random(3000 * 80), Y: m.floats(750 * 20 * 256), W: w, Time: 3000, Frequency: 80}
		}, nil},
		{"conv1d/whisper-3000x384", 100, func(m *rowMaker) pass.Op {
			return m.conv1d(pass.Conv1D{In: 3000, Stride: 2, PadLeft: 1, PadRight: 1, Epilogue: pass.GELU}, 384, 384, 3)
		}, nil},
		{"conv1d/whisper-3000x80to1280", 50, func(m *rowMaker) pass.Op {
			return m.conv1d(pass.Conv1D{In: 3000, PadLeft: 1, PadRight: 1, Epilogue: pass.GELU}, 80, 1280, 3)
		}, []string{"stretches, 96 channels"}},
		{"conv1d/silero-spectrum-1024x576", 100, func(m *rowMaker) pass.Op {
			return m.conv1d(pass.Conv1D{Batch: 1024, In: 576, Stride: 128, PadRight: 64, Padding: pass.PadReflect}, 1, 258, 256)
		}, []string{"direct"}},
		{"conv1d/moonshine-160000", 100, func(m *rowMaker) pass.Op {
			return m.conv1d(pass.Conv1D{In: 160_000, Stride: 64, Epilogue: pass.Tanh}, 1, 288, 127)
		}, []string{"stretches, 96 channels"}},
		{"conv1d/silero-256x4-129to128", 200, func(m *rowMaker) pass.Op {
			return m.conv1d(pass.Conv1D{Batch: 256, In: 4, PadLeft: 1, PadRight: 1, Epilogue: pass.ReLU}, 129, 128, 3)
		}, nil},
		{"conv1d/silero-1x4-129to128", 500, func(m *rowMaker) pass.Op {
			return m.conv1d(pass.Conv1D{In: 4, PadLeft: 1, PadRight: 1, Epilogue: pass.ReLU}, 129, 128, 3)
		}, nil},
	}
	images := []string{"image of 64 channels", "image of 64 channels, 8 warps", "image of 32 channels", "image of 32 channels, 8 warps"}
	for _, batch := range []int{1, 32} {
		name := func(s string) string { return fmt.Sprintf("%s-b%d", s, batch) }
		times := 200 / (1 + batch/2)
		image := func(height, width, in, out, size, stride int, residual bool) func(m *rowMaker) pass.Op {
			return func(m *rowMaker) pass.Op { return m.conv2d(batch, height, width, in, out, size, stride, residual) }
		}
		all = append(all,
			convTiming{name("conv1d/sinc"), times, func(m *rowMaker) pass.Op {
				return m.conv1d(pass.Conv1D{Batch: batch, In: 160_000, Stride: 10, Abs: true, Pool: 3}, 1, 80, 251)
			}, []string{"tiles"}},
			convTiming{name("conv1d/segmentation-80to60"), times, func(m *rowMaker) pass.Op {
				return m.conv1d(pass.Conv1D{Batch: batch, In: 5325, Pool: 3}, 80, 60, 5)
			}, []string{"stretches, 64 channels"}},
			convTiming{name("conv1d/segmentation-60to60"), times, func(m *rowMaker) pass.Op {
				return m.conv1d(pass.Conv1D{Batch: batch, In: 1773, Pool: 3}, 60, 60, 5)
			}, []string{"stretches, 64 channels"}},
			convTiming{name("conv2d/stem"), times, image(80, 998, 1, 32, 3, 1, false), nil},
			convTiming{name("conv2d/c32"), times, image(80, 998, 32, 32, 3, 1, true), images},
			convTiming{name("conv2d/c32s2"), times, image(80, 998, 32, 64, 3, 2, false), nil},
			convTiming{name("conv2d/shortcut32"), times, image(80, 998, 32, 64, 1, 2, false), nil},
			convTiming{name("conv2d/c64"), times, image(40, 499, 64, 64, 3, 1, true), images},
			convTiming{name("conv2d/c64s2"), times, image(40, 499, 64, 128, 3, 2, false), nil},
			convTiming{name("conv2d/c128"), times, image(20, 250, 128, 128, 3, 1, true), images},
			convTiming{name("conv2d/c128s2"), times, image(20, 250, 128, 256, 3, 2, false), nil},
			convTiming{name("conv2d/c256"), times, image(10, 125, 256, 256, 3, 1, true), images},
		)
	}
	return all
}
