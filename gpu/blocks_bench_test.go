package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// blockTimings are the ops that make up the blocks of encoders and decoders.
func blockTimings() []timing {
	return []timing{
		{"attention/1500-20x64", true, 10, timedAttention(1500, 1500, 20, 64, false, pass.Mask{})},
		{"attention/1500-20x64-causal", true, 10, timedAttention(1500, 1500, 20, 64, false, pass.Causal)},
		{"attention/1500-8x128", true, 10, timedAttention(1500, 1500, 8, 128, false, pass.Mask{})},
		{"attention/relative-1500-8x128", true, 10, timedAttention(1500, 1500, 8, 128, true, pass.Mask{})},
		{"attention/relative-1500-8x128-band", true, 10, timedAttention(1500, 1500, 8, 128, true, pass.Band(128, 128))},
		{"attention/1x1500-20x64", false, 100, timedAttention(1, 1500, 20, 64, false, pass.Mask{})},
		{"attention/250-4x48", false, 100, timedAttention(250, 250, 4, 48, false, pass.Mask{})},
		{"attend/1x448-20x64-F16", false, 100, timedAttend(1, 448, 20, 64, pass.F16)},
		{"attend/1x8192-20x64-F32", false, 100, timedAttend(1, 8192, 20, 64, pass.F32)},
		{"attend/448x448-20x64-F16", true, 20, timedAttend(448, 448, 20, 64, pass.F16)},
		{"append/1-20x64-F16", false, 100, func(b *testing.B, dev pass.Device, s pass.Session) pass.Op {
			return pass.Append{K: alloc(b, s, 1280), V: alloc(b, s, 1280), Cache: newCache(b, s, 448, 20, 64, pass.F16), Rows: 1}
		}},
		{"convglu/1500x1024-k9", false, 100, timedGLU(1500, 1024, 9, true)},
		{"convglu/1500x1024-k9-affine", false, 100, timedGLU(1500, 1024, 9, false)},
		{"depthwise/750x40x256", false, 50, func(b *testing.B, dev pass.Device, s pass.Session) pass.Op {
			w := load(b, dev, pass.DepthwiseWeights{Weight: randomTensor("w", 1, 256, 3, 3)})
			return pass.DepthwiseConv2D{X: alloc(b, s, 1500*40*256), W: w, Y: alloc(b, s, 750*20*256), Time: 1500, Frequency: 40}
		}},
		{"depthwise/first-3000x80to256", false, 20, func(b *testing.B, dev pass.Device, s pass.Session) pass.Op {
			w := load(b, dev, pass.DepthwiseWeights{Weight: randomTensor("w", 1, 256, 3, 3), First: randomTensor("v", 1, 256, 3, 3)})
			return pass.DepthwiseConv2D{X: alloc(b, s, 3000*80), W: w, Y: alloc(b, s, 750*20*256), Time: 3000, Frequency: 80}
		}},
		{"conv2d/80x1000-1to32", false, 20, timedConv2D(80, 1000, 1, 32, 1)},
		{"conv2d/80x1000-32to32", true, 20, timedConv2D(80, 1000, 32, 32, 1)},
		{"conv2d/40x500-64to64", true, 20, timedConv2D(40, 500, 64, 64, 1)},
		{"conv2d/10x125-256to256", true, 20, timedConv2D(10, 125, 256, 256, 1)},
		{"conv1d/sinc-160000", true, 20, func(b *testing.B, dev pass.Device, s pass.Session) pass.Op {
			w := load(b, dev, pass.ConvWeights{Weight: randomTensor("w", 1, 80, 1, 251)})
			op := pass.Conv1D{X: alloc(b, s, 160000), W: w, In: 160000, Stride: 10, Abs: true, Pool: 3}
			op.Y = alloc(b, s, 80*op.Steps(160000))
			return op
		}},
		{"logmel/whisper-30s", false, 20, timedMel("whisper", 480000)},
		{"logmel/parakeet-30s", false, 20, timedMel("parakeet", 480000)},
	}
}

func timedAttention(queries, keys, heads, dim int, relative bool, mask pass.Mask) func(*testing.B, pass.Device, pass.Session) pass.Op {
	return func(b *testing.B, dev pass.Device, s pass.Session) pass.Op {
		width := heads * dim
		op := pass.Attention{Q: alloc(b, s, queries*width), K: alloc(b, s, keys*width), V: alloc(b, s, keys*width), O: alloc(b, s, queries*width),
			Queries: queries, Keys: keys, Heads: heads, HeadDim: dim, Mask: mask}
		if relative {
			op.Q2, op.Positions = alloc(b, s, queries*width), alloc(b, s, (2*keys-1)*width)
		}
		return op
	}
}

func newCache(t testing.TB, s pass.Session, capacity, heads, dim int, typ pass.DType) pass.Cache {
	h, err := s.NewCache(pass.CacheConfig{Heads: heads, HeadDim: dim, Capacity: capacity, Type: typ})
	require.NoError(t, err)
	return h
}

func timedAttend(queries, keys, heads, dim int, typ pass.DType) func(*testing.B, pass.Device, pass.Session) pass.Op {
	return func(b *testing.B, dev pass.Device, s pass.Session) pass.Op {
		n := queries * heads * dim
		return pass.Attend{Q: alloc(b, s, n), O: alloc(b, s, n), Cache: newCache(b, s, keys, heads, dim, typ), Queries: queries, Keys: pass.Const(keys), Causal: true}
	}
}

func timedGLU(rows, channels, kernel int, normalised bool) func(*testing.B, pass.Device, pass.Session) pass.Op {
	return func(b *testing.B, dev pass.Device, s pass.Session) pass.Op {
		w := pass.ConvGLUWeights{Weight: randomTensor("w", 1, channels, kernel), Gain: make([]float32, channels), Shift: make([]float32, channels), Normalised: normalised}
		return pass.ConvGLU{X: alloc(b, s, rows*2*channels), W: load(b, dev, w), Y: alloc(b, s, rows*channels), Rows: rows}
	}
}

func timedConv2D(height, width, in, out, stride int) func(*testing.B, pass.Device, pass.Session) pass.Op {
	return func(b *testing.B, dev pass.Device, s pass.Session) pass.Op {
		w := load(b, dev, pass.Conv2DWeights{Weight: randomTensor("w", 1, out, in, 3, 3), Bias: make([]float32, out)})
		return pass.Conv2D{X: alloc(b, s, height*width*in), W: w, Y: alloc(b, s, height*width*out), Height: height, Width: width, Stride: stride, ReLU: true}
	}
}

func timedMel(user string, samples int) func(*testing.B, pass.Device, pass.Session) pass.Op {
	return func(b *testing.B, dev pass.Device, s pass.Session) pass.Op {
		w := cases.MelUsers()[user]
		p := load(b, dev, w)
		return pass.LogMel{X: alloc(b, s, samples), W: p, Y: alloc(b, s, p.Shape().(pass.MelShape).Frames(samples)*w.Mels), Samples: samples}
	}
}
