package kernel

import (
	"cmp"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// Gemm is a product of rows by weights n × k of a type, with a bias.
func Gemm(rows, k, n int, t pass.DType) Kernel {
	return Kernel{Op: pass.Gemm{Rows: rows}, Args: []string{"A", "C"}, Load: func() (pass.Weights, error) {
		w := cases.Encode("w", t, Random(101, n*k, Scale(k)), n, k)
		return pass.LinearWeights{Name: "bench", Parts: []pass.Tensor{w}, Bias: Random(102, n, 1)}, nil
	}}
}

// Attention is attention of so many queries to keys, without a mask.
func Attention(batch, queries, keys, heads, dim int) Kernel {
	return Kernel{
		Op:   pass.Attention{Batch: batch, Queries: queries, Keys: keys, Heads: heads, HeadDim: dim},
		Args: []string{"Q", "K", "V", "O"},
	}
}

// RelativeAttention is self-attention with relative positions.
func RelativeAttention(frames, heads, dim int) Kernel {
	k := Attention(1, frames, frames, heads, dim)
	k.Args = append(k.Args, "Q2", "Positions")
	return k
}

// Conv1D is a convolution with a bias. The type of weights may be left out: F32.
func Conv1D(op pass.Conv1D, w pass.ConvShape) Kernel {
	typ := cmp.Or(w.Type, pass.F32)
	return Kernel{Op: op, Args: []string{"X", "Y"}, Load: func() (pass.Weights, error) {
		sums := w.In * w.Kernel
		t := cases.Encode("w", typ, Random(103, w.Out*sums, Scale(sums)), w.Out, w.In, w.Kernel)
		return pass.ConvWeights{Name: "bench", Weight: t, Bias: Random(104, w.Out, 1)}, nil
	}}
}

// Conv2D is a convolution of images, with a residual unless its stride differs from 1.
func Conv2D(op pass.Conv2D, out, in, size int) Kernel {
	k := Kernel{Op: op, Args: []string{"X", "Residual", "Y"}, Load: func() (pass.Weights, error) {
		sums := in * size * size
		t := cases.Encode("w", pass.F32, Random(121, out*sums, Scale(sums)), out, in, size, size)
		return pass.Conv2DWeights{Name: "bench", Weight: t, Bias: Random(122, out, 1)}, nil
	}}
	if op.Stride > 1 {
		k.Args = []string{"X", "Y"}
	}
	return k
}

// ConvGLU is what lies between the point-wise convolutions of a conformer's block.
func ConvGLU(rows, channels, taps int) Kernel {
	return Kernel{Op: pass.ConvGLU{Rows: rows}, Args: []string{"X", "Y"}, Load: func() (pass.Weights, error) {
		return pass.ConvGLUWeights{
			Name: "bench", Weight: cases.Encode("w", pass.F32, Random(131, channels*taps, Scale(taps)), channels, taps),
			Bias: Random(132, channels, 1), Gain: Random(133, channels, 1), Shift: Random(134, channels, 1),
		}, nil
	}}
}

// FirstDepthwise is the first subsampling step of a FastConformer, of an image time ×
// frequency.
func FirstDepthwise(time, frequency, channels int) Kernel {
	return Kernel{Op: pass.DepthwiseConv2D{Time: time, Frequency: frequency}, Args: []string{"X", "Y"}, Load: func() (pass.Weights, error) {
		taps := func(seed uint64) pass.Tensor {
			return cases.Encode("w", pass.F32, Random(seed, 9*channels, Scale(9)), channels, 3, 3)
		}
		return pass.DepthwiseWeights{
			Name: "bench", Weight: taps(141), Bias: Random(142, channels, 1), First: taps(143), FirstBias: Random(144, channels, 1),
		}, nil
	}}
}

// LSTM is a stack of LSTM layers over time, from a state of zeros.
func LSTM(batch, steps int, s pass.LSTMShape) Kernel {
	return Kernel{
		Op: pass.LSTM{Batch: batch, Time: steps}, Args: []string{"X", "Y"},
		Load: func() (pass.Weights, error) { return lstmWeights(s), nil },
	}
}

// lstmWeights makes weights of the size that networks are initialised with: up to
// 1/√hidden.
func lstmWeights(s pass.LSTMShape) pass.LSTMWeights {
	w := pass.LSTMWeights{Name: "bench"}
	in, seed := s.In, uint64(200)
	matrix := func(name string, cols int) pass.Tensor {
		seed++
		return cases.Encode(name, pass.F32, Random(seed, 4*s.Hidden*cols, Scale(3*s.Hidden)), 4*s.Hidden, cols)
	}
	for range s.Layers {
		var layer []pass.LSTMCell
		for range s.Directions {
			layer = append(layer, pass.LSTMCell{Input: matrix("input", in), Hidden: matrix("hidden", s.Hidden), Bias: Random(seed+1000, 4*s.Hidden, Scale(3*s.Hidden))})
		}
		w.Layers = append(w.Layers, layer)
		in = s.Directions * s.Hidden
	}
	return w
}
