package cuda

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// rangeDevices are those whose kernels differ: with TF32, and without.
var rangeDevices = []struct {
	name       string
	capability int
	gpu        drivertest.Profile
}{{"TF32", 90, drivertest.Hopper()}, {"F32", 75, drivertest.Turing()}}

// The cases of Gemm and LSTM, by weights as they were loaded.
func TestWeightsAsLoaded(t *testing.T) {
	for _, d := range rangeDevices {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			library(t, d.capability)
			passtest.Config{Ops: []string{"gemm", "lstm"}, BySize: true}.Run(t, func(t testing.TB) pass.Device {
				return emulated(t, d.gpu, Config{Ways: map[string]string{"": asLoaded}})
			})
		})
	}
}

// ofWideRange are cases whose weights have features that differ by far, and activations that
// make up for it: each counts as much as any other, though halves of a row have nothing left
// of most.
func ofWideRange() (all []cases.Case) {
	const rows, columns, group = 70, 66, 32 // features that follow each other are alike
	// unequal multiplies features by powers of two, up to 2^span and down to 2^−span, of
	// values of which so many taps follow each other, and divides those of x.
	unequal := func(features, taps, span int, weights, x []float32) {
		steps := features/group - 1
		scale := func(feature int) int { return feature/group*2*span/steps - span }
		for i := range weights {
			weights[i] = float32(math.Ldexp(float64(weights[i]), scale(i/taps%features)))
		}
		for i := range x {
			x[i] = float32(math.Ldexp(float64(x[i]), -scale(i%features)))
		}
	}
	add := func(name string, op pass.Op, w pass.Weights, x []float32, shape ...int) {
		argument := "X"
		if _, ok := op.(pass.Gemm); ok {
			argument = "A"
		}
		all = append(all, cases.Case{
			Name: name, Op: op, Inputs: []cases.Tensor{cases.F32(argument, x, shape...)}, Outputs: cases.DefaultOutputs(op),
			Params: []cases.Param{{Field: "W", Weights: w}},
		})
	}
	normal := func(name string, n int) []float32 { return values(name, "normal", n).Float32s() }
	for _, typ := range []struct {
		pass.DType
		span int // what F16 has room for, if that is what there are weights or scales of
	}{{pass.F32, 30}, {pass.BF16, 30}, {pass.F16, 11}, {pass.Q8_0, 11}} {
		w, x := normal("w", columns*96), normal("ax", rows*96)
		unequal(96, 1, typ.span, w, x)
		add(fmt.Sprintf("gemm %v", typ.DType), pass.Gemm{Rows: rows, Epilogue: pass.SiLU},
			pass.LinearWeights{Parts: []pass.Tensor{cases.Encode("w", typ.DType, w, columns, 96)}, Bias: normal("bias", columns)}, x, 1, rows, 96)
	}
	w, x := normal("w", 64*64*3), normal("ax", 2400*64)
	unequal(64, 3, 25, w, x)
	add("conv1d", pass.Conv1D{In: 2400, PadLeft: 1, PadRight: 1}, pass.ConvWeights{Weight: pass.Float32s("w", w, 64, 64, 3)}, x, 1, 2400, 64)
	w, x = normal("w", 64*64*9), normal("ax", 20*20*64)
	unequal(64, 9, 25, w, x)
	add("conv2d", pass.Conv2D{Height: 20, Width: 20}, pass.Conv2DWeights{Weight: pass.Float32s("w", w, 64, 64, 3, 3)}, x, 1, 20*20, 64)
	w, x = normal("w", 4*32*64), normal("ax", rows*64)
	unequal(64, 1, 25, w, x)
	cell := pass.LSTMCell{Input: pass.Float32s("w", w, 4*32, 64), Hidden: pass.Float32s("h", normal("hidden", 4*32*32), 4*32, 32)}
	add("lstm", pass.LSTM{Batch: 1, Time: rows}, pass.LSTMWeights{Layers: [][]pass.LSTMCell{{cell}}}, x, 1, rows, 64)
	return all
}

func TestWeightsOfWideRange(t *testing.T) {
	for _, d := range rangeDevices {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			library(t, d.capability)
			dev := emulated(t, d.gpu, Config{Ways: map[string]string{"": "tiles"}}) // even if there is little to do
			defer dev.Close()
			for _, c := range ofWideRange() {
				want, err := c.Truth()
				require.NoError(t, err)
				for _, math := range []pass.Math{pass.Exact, pass.Fast} {
					got, err := compute(t.Context(), dev, c, math)
					require.NoError(t, err, c.Name)
					e := distance(got, want[0].Float32s())
					t.Logf("%s, %v: %.1e", c.Name, math, e)
					require.LessOrEqual(t, e, 1e-6, "%s, %v", c.Name, math)
				}
			}
		})
	}
}

// Features differ too much from 2^16 on; those without weight do not count.
func TestRanging(t *testing.T) {
	t.Parallel()
	require.False(t, ranging([]float32{0x1p-16, 1, 0}))
	require.True(t, ranging([]float32{0x1p-17, 1, 0}))
	require.True(t, ranging([]float32{math.MaxFloat32, 1}))
	require.False(t, ranging([]float32{0, 0}))
	require.False(t, ranging(nil))
}

// What a product by weights of a wide range reads is there as F32, when others take it as
// halves, before it and behind.
func TestWideRangeAmongProducts(t *testing.T) {
	t.Parallel()
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	const rows, width = 40, 64
	narrow := values("narrow", "normal", width, width).Float32s()
	wide := values("wide", "normal", width, width).Float32s()
	for i := range wide {
		wide[i] = float32(math.Ldexp(float64(wide[i]), -20*(i%2)))
	}
	load := func(w pass.Weights) pass.Param {
		p, err := dev.Load(t.Context(), w)
		require.NoError(t, err)
		return p
	}
	norm := load(pass.NormWeights{Gain: values("gain", "normal", width).Float32s()})
	param := func(v []float32) pass.Param {
		return load(pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("w", v, width, width)}})
	}
	params := []pass.Param{param(narrow), param(wide), param(narrow)}
	x := values("x", "normal", rows*width).Float32s()

	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer ses.Close()
	outputs := func(only int) (got [][]float32) {
		var in pass.Input
		var outs []pass.Output
		rec, err := ses.Record(t.Context(), pass.RecordOptions{Math: pass.Fast}, func(p pass.Pass) {
			in = p.Input(pass.F32, rows*width)
			normed := p.Temp(pass.F32, rows*width)
			p.Do(pass.LayerNorm{X: in.View(), Y: normed.View(), W: norm, Rows: rows, Cols: width})
			for i, w := range params {
				if only >= 0 && i != only {
					continue
				}
				first, second := p.Temp(pass.F32, rows*width), p.Temp(pass.F32, rows*width)
				p.Do(pass.Gemm{A: normed.View(), C: first.View(), W: w, Rows: rows, Epilogue: pass.GELU})
				p.Do(pass.Gemm{A: first.View(), C: second.View(), W: params[1-i%2], Rows: rows})
				outs = append(outs, p.Output(second.View(), rows*width))
			}
		})
		require.NoError(t, err)
		defer rec.Close()
		run, err := rec.Run(t.Context(), in.F32(x))
		require.NoError(t, err)
		for _, o := range outs {
			y := make([]float32, rows*width)
			require.NoError(t, run.ReadF32(o, y))
			got = append(got, y)
		}
		return got
	}
	together := outputs(-1)
	for i := range params {
		require.Equal(t, outputs(i)[0], together[i], "%d alone, and among others", i)
		require.NotZero(t, together[i][0])
	}
}
