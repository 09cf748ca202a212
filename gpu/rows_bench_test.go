package gpu

import (
	"testing"

	"github.com/tandem-gpu/tandem/pass"
)

// rowTimings are the ops that hardly compute: what counts is how often they read.
func rowTimings() []timing {
	rope := func(b *testing.B, dev pass.Device) pass.Param {
		return load(b, dev, pass.RopeWeights{Positions: 1500, Rot: 64, Base: 10000})
	}
	norm := func(b *testing.B, dev pass.Device, n int) pass.Param {
		return load(b, dev, pass.NormWeights{Gain: make([]float32, n), Bias: make([]float32, n)})
	}
	type create = func(b *testing.B, dev pass.Device, s pass.Session) pass.Op
	rows := func(op func(b *testing.B, dev pass.Device, x, y pass.View) pass.Op, n int) create {
		return func(b *testing.B, dev pass.Device, s pass.Session) pass.Op {
			return op(b, dev, alloc(b, s, n), alloc(b, s, n))
		}
	}
	layerNorm := func(rows, cols int) func(b *testing.B, dev pass.Device, x, y pass.View) pass.Op {
		return func(b *testing.B, dev pass.Device, x, y pass.View) pass.Op {
			return pass.LayerNorm{X: x, Y: y, W: norm(b, dev, cols), Rows: rows, Cols: cols}
		}
	}
	return []timing{
		{"layernorm/1500x1280", false, 200, rows(layerNorm(1500, 1280), 1500*1280)},
		{"layernorm/1x1280", false, 200, rows(layerNorm(1, 1280), 1280)},
		{"groupnorm/288x2499", false, 200, rows(func(b *testing.B, dev pass.Device, x, y pass.View) pass.Op {
			return pass.GroupNorm{X: x, Y: y, W: norm(b, dev, 288), Rows: 2499, Cols: 288}
		}, 288*2499)},
		{"poolnorm/15975x80", false, 100, rows(func(b *testing.B, dev pass.Device, x, y pass.View) pass.Op {
			return pass.PoolNorm{X: x, Y: y, W: norm(b, dev, 80), Rows: 15975, Cols: 80, Abs: true, Pool: 3, Epilogue: pass.Leaky(0.01)}
		}, 15975*80)},
		{"softmax/12000x1500", true, 50, rows(func(b *testing.B, dev pass.Device, x, y pass.View) pass.Op {
			return pass.Softmax{X: x, Y: y, Rows: 12000, Cols: 1500}
		}, 12000*1500)},
		{"softmax/1x51865", false, 200, rows(func(b *testing.B, dev pass.Device, x, y pass.View) pass.Op {
			return pass.Softmax{X: x, Y: y, Rows: 1, Cols: 51865}
		}, 51865)},
		{"argmax/1x51865", false, 200, func(b *testing.B, dev pass.Device, s pass.Session) pass.Op {
			ids, err := s.Alloc(pass.U32, 1)
			if err != nil {
				b.Fatal(err)
			}
			return pass.Argmax{X: alloc(b, s, 51865), IDs: ids.View(), Rows: 1, Cols: 51865}
		}},
		{"rope/1500x20x64", false, 200, rows(func(b *testing.B, dev pass.Device, x, y pass.View) pass.Op {
			return pass.Rope{X: x, Table: rope(b, dev), Rows: 1500, Heads: 20, HeadDim: 64}
		}, 1500*1280)},
		{"swiglu/1500x2560", false, 200, rows(func(b *testing.B, dev pass.Device, x, y pass.View) pass.Op {
			return pass.SwiGLU{X: x, Y: y, Rows: 1500, Cols: 2560}
		}, 1500*5120)},
		{"add/1500x1280", false, 200, rows(func(b *testing.B, dev pass.Device, x, y pass.View) pass.Op {
			return pass.Add{A: x, B: x, Y: y, Rows: 1500, Cols: 1280}
		}, 1500*1280)},
		{"permute/20x1500x64", false, 200, rows(func(b *testing.B, dev pass.Device, x, y pass.View) pass.Op {
			return pass.Permute{X: x, Y: y, Dims: [4]int{1, 1500, 20, 64}, Order: [4]int{0, 2, 1, 3}}
		}, 1500*1280)},
		{"permute/1500x1280-transposed", false, 200, rows(func(b *testing.B, dev pass.Device, x, y pass.View) pass.Op {
			return pass.Permute{X: x, Y: y, Dims: [4]int{1, 1, 1500, 1280}, Order: [4]int{0, 1, 3, 2}}
		}, 1500*1280)},
	}
}
