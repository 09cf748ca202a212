package cuda

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// A yardstick is the relative L2 errors against float64 of cuBLAS, cuDNN and, where those
// have nothing, PyTorch's own kernels, as testdata/yardstick.py measured them on an H200: of
// FP32, and of operands rounded to TF32 and to FP16.
type yardstick struct{ FP32, TF32, FP16 float64 }

// of returns what Exact, and Fast, is held to.
func (y yardstick) of(m pass.Math) float64 {
	if m == pass.Fast {
		return max(y.TF32, y.FP16)
	}
	return y.FP32
}

// yardsticks reads those that were measured, by the name of the case.
func yardsticks(t testing.TB) map[string]yardstick {
	t.Helper()
	text, err := os.ReadFile("testdata/yardstick.json")
	require.NoError(t, err)
	var all map[string]yardstick
	require.NoError(t, json.Unmarshal(text, &all))
	return all
}

// measured are cases of every op that rounds, with data of the kind that the yardsticks have.
func measured() []cases.Case {
	var all []cases.Case
	add := func(name string, op pass.Op, w pass.Weights, inputs ...cases.Tensor) {
		c := cases.Case{Name: name, Op: op, Inputs: inputs, Outputs: cases.DefaultOutputs(op)}
		if w != nil {
			c.Params = []cases.Param{{Field: "W", Weights: w}}
		}
		all = append(all, c)
	}
	for _, s := range [][3]int{{256, 384, 256}, {256, 1280, 256}, {256, 4096, 256}, {1, 1280, 1024}} {
		for _, kind := range []string{"normal", "relu"} {
			add(fmt.Sprintf("gemm %dx%dx%d %s", s[0], s[1], s[2], kind), pass.Gemm{Rows: s[0]},
				pass.LinearWeights{Parts: []pass.Tensor{weights(s[2], s[1])}}, values("A", kind, 1, s[0], s[1]))
		}
	}
	for _, kind := range []string{"normal", "relu"} {
		add("conv1d 300x128 k3 "+kind, pass.Conv1D{In: 300, PadLeft: 1, PadRight: 1}, pass.ConvWeights{Weight: weights(64, 128, 3)}, values("X", kind, 1, 300, 128))
		add("conv2d 20x50x64 k3 "+kind, pass.Conv2D{Height: 20, Width: 50}, pass.Conv2DWeights{Weight: weights(64, 64, 3, 3)}, values("X", kind, 1, 20*50, 64))
	}
	normal := func(name string, shape ...int) cases.Tensor { return values(name, "normal", shape...) }
	add("conv1d 600x80 k3 s2", pass.Conv1D{In: 600, Stride: 2, PadLeft: 1, PadRight: 1}, pass.ConvWeights{Weight: weights(64, 80, 3)}, normal("X", 1, 600, 80))
	add("conv1d 16000x1 k251 s10", pass.Conv1D{In: 16000, Stride: 10}, pass.ConvWeights{Weight: weights(80, 1, 251)}, normal("X", 1, 16000, 1))
	add("conv2d 20x50x64 k3 s2", pass.Conv2D{Height: 20, Width: 50, Stride: 2}, pass.Conv2DWeights{Weight: weights(128, 64, 3, 3)}, normal("X", 1, 20*50, 64))
	add("conv2d 20x50x64 k1 s2", pass.Conv2D{Height: 20, Width: 50, Stride: 2}, pass.Conv2DWeights{Weight: weights(128, 64, 1, 1)}, normal("X", 1, 20*50, 64))
	add("depthwiseconv2d 51x40x64", pass.DepthwiseConv2D{Time: 51, Frequency: 40}, pass.DepthwiseWeights{Weight: weights(64, 3, 3)}, normal("X", 1, 51, 40*64))
	vector := func(name string, n int) []float32 { return normal(name, n).Float32s() }
	add("convglu 300x256 k9", pass.ConvGLU{Rows: 300},
		pass.ConvGLUWeights{Weight: weights(256, 9), Bias: vector("bias", 256), Gain: vector("gain", 256), Shift: vector("shifts", 256)}, normal("X", 1, 300, 512))

	attention := func(name string, n, heads, dim int, mask pass.Mask, more ...cases.Tensor) {
		width := heads * dim
		inputs := append([]cases.Tensor{normal("Q", 1, n, width), normal("K", 1, n, width), normal("V", 1, n, width)}, more...)
		for i, r := range []string{"q", "ke", "val"} { // of their own, not three times the same
			inputs[i].Words = values(r, "normal", 1, n, width).Words
		}
		add(name, pass.Attention{Queries: n, Keys: n, Heads: heads, HeadDim: dim, Mask: mask}, nil, inputs...)
	}
	attention("attention 300x4x64", 300, 4, 64, pass.Mask{})
	attention("attention 300x4x64 causal", 300, 4, 64, pass.Causal)
	attention("attention 200x2x128 relative", 200, 2, 128, pass.Mask{}, normal("Q2", 1, 200, 256), normal("Positions", 1, 399, 256))
	add("lstm 4x100 60x128", pass.LSTM{Batch: 4, Time: 100}, layers(), normal("X", 4, 100, 60))

	norm := func(n int) pass.NormWeights {
		return pass.NormWeights{Gain: vector("gain", n), Bias: vector("bias", n)}
	}
	add("layernorm 300x1280", pass.LayerNorm{Rows: 300, Cols: 1280}, norm(1280), normal("X", 1, 300, 1280))
	add("groupnorm 400x288", pass.GroupNorm{Rows: 400, Cols: 288}, norm(288), normal("X", 1, 400, 288))
	add("poolnorm 3000x80", pass.PoolNorm{Rows: 3000, Cols: 80}, norm(80), normal("X", 1, 3000, 80))
	add("l2norm 200x256", pass.L2Norm{Rows: 200, Cols: 256}, nil, normal("X", 1, 200, 256))
	add("softmax 200x1500", pass.Softmax{Rows: 200, Cols: 1500}, nil, normal("X", 1, 200, 1500))
	add("logsoftmax 200x1500", pass.LogSoftmax{Rows: 200, Cols: 1500}, nil, normal("X", 1, 200, 1500))
	add("gelu 300x1280", pass.Map{Rows: 300, Cols: 1280, Epilogue: pass.GELU}, nil, normal("X", 1, 300, 1280))
	add("silu 300x1280", pass.Map{Rows: 300, Cols: 1280, Epilogue: pass.SiLU}, nil, normal("X", 1, 300, 1280))
	add("glu 300x1280", pass.GLU{Rows: 300, Cols: 1280}, nil, normal("X", 1, 300, 2560))
	mask := make([]float32, 100)
	r := rand.New(rand.NewPCG(1, 100))
	for i := range mask {
		mask[i] = r.Float32()
	}
	add("statspool 10x100x64", pass.StatsPool{Height: 10, Width: 100, Channels: 64, Count: 1, Frames: 100}, nil, normal("X", 1, 10*100, 64), cases.F32("Masks", mask, 1, 1, 100))
	return all
}

// layers are the weights of two layers of 128 units in two directions.
func layers() pass.LSTMWeights {
	var w pass.LSTMWeights
	matrix := func(name string, k int) pass.Tensor {
		v := values(name, "normal", 512, k).Float32s()
		for i := range v {
			v[i] *= 0.1
		}
		return pass.Float32s(name, v, 512, k)
	}
	name := ""
	for _, in := range []int{60, 256} {
		var layer []pass.LSTMCell
		for range 2 {
			name += "w" // values follow from the length of the name
			layer = append(layer, pass.LSTMCell{Input: matrix(name, in), Hidden: matrix(name, 128), Bias: values(name, "normal", 512).Float32s()})
		}
		w.Layers = append(w.Layers, layer)
	}
	return w
}

func values(name, kind string, shape ...int) cases.Tensor {
	n := 1
	for _, s := range shape {
		n *= s
	}
	r := rand.New(rand.NewPCG(uint64(len(name)), uint64(n)))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
		if kind == "relu" {
			v[i] = max(v[i], 0)
		}
	}
	return cases.F32(name, v, shape...)
}

func weights(shape ...int) pass.Tensor {
	t := values("w", "normal", shape...)
	return cases.Encode("w", pass.F32, t.Float32s(), shape...)
}

// distance is the relative L2 error.
func distance(got, want []float32) float64 {
	var sum, norm float64
	for i, w := range want {
		d := float64(got[i]) - float64(w)
		sum += d * d
		norm += float64(w) * float64(w)
	}
	return math.Sqrt(sum / norm)
}
