package cuda

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
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
	// Of windows that do not overlap each tap has inputs of its own.
	w, x := normal("w", 64*64*4), normal("ax", 1200*64)
	for i := range w {
		w[i] = float32(math.Ldexp(float64(w[i]), 15*(i%4)-25))
	}
	for i := range x {
		x[i] = float32(math.Ldexp(float64(x[i]), 25-15*(i/64%4)))
	}
	add("conv1d of stride 4", pass.Conv1D{In: 1200, Stride: 4}, pass.ConvWeights{Weight: pass.Float32s("w", w, 64, 64, 4)}, x, 1, 1200, 64)
	w, x = normal("w", 64*64*3), normal("ax", 2400*64)
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
					most := 1e-6
					if math == pass.Fast && (c.Name == "gemm F16" || c.Name == "gemm Q8_0") {
						most = 5e-4 // one half has its bits down to 2^22 below the largest
					}
					require.LessOrEqual(t, e, most, "%s, %v", c.Name, math)
				}
			}
		})
	}
}

// Tensors that are loaded as one are judged each for itself: one whose features are alike
// does not hide that another's are not.
func TestWideRangeBesideOther(t *testing.T) {
	t.Parallel()
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	const rows, depth, columns = 40, 64, 32
	wide, x := values("w", "normal", columns*depth).Float32s(), values("ax", "normal", rows*depth).Float32s()
	for i := range wide {
		wide[i] = float32(math.Ldexp(float64(wide[i]), -30*(i%2)))
	}
	for i := range x {
		x[i] = float32(math.Ldexp(float64(x[i]), 30*(i%2)))
	}
	plain := values("plain", "normal", columns*depth).Float32s()
	for _, parts := range [][][]float32{{wide, plain}, {plain, wide}} {
		c := cases.Case{Name: "gemm", Op: pass.Gemm{Rows: rows}, Inputs: []cases.Tensor{cases.F32("A", x, 1, rows, depth)}, Outputs: []string{"C"}}
		w := pass.LinearWeights{}
		for _, p := range parts {
			w.Parts = append(w.Parts, pass.Float32s("w", p, columns, depth))
		}
		c.Params = []cases.Param{{Field: "W", Weights: w}}
		truth, err := c.Truth()
		require.NoError(t, err)
		got, err := compute(t.Context(), dev, c, pass.Exact)
		require.NoError(t, err)
		for p := range parts {
			of := func(all []float32) (columnsOf []float32) {
				for r := range rows {
					columnsOf = append(columnsOf, all[(2*r+p)*columns:][:columns]...)
				}
				return columnsOf
			}
			require.LessOrEqual(t, distance(of(got), of(truth[0].Float32s())), 1e-6, "tensor %d", p)
		}
	}
}

// What has no weight, or has decayed, does not count.
func TestApart(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, 1<<16, apart([]float32{0x1p-16, 1, 0}))
	require.EqualValues(t, 1<<40, apart([]float32{0x1p-20, 0x1p20, 1, 0x1p-45}))
	require.EqualValues(t, 0x1p30, apart([]float32{0x1p100, 0x1p70, 0x1p-149}))
	require.EqualValues(t, 1, apart([]float32{0, 0}))
	require.EqualValues(t, 1, apart([]float32{0, 3}))
	nan := float32(math.NaN())
	require.EqualValues(t, 1, apart([]float32{nan, nan}))
	require.EqualValues(t, 4, apart([]float32{nan, 8, nan, 2}))
}

// Weights are measured once, whatever comes of it: by the first product of more than a few
// rows, for all recordings.
func TestMeasuredOnce(t *testing.T) {
	t.Parallel()
	var measured atomic.Int32
	dev, err := hosted(t, drivertest.New(drivertest.Config{Kernel: func(name string, _ driver.Launch) error {
		if strings.HasPrefix(name, "linear_features_") {
			measured.Add(1) // and leaves memory as it was, which is NaN
		}
		return nil
	}}), Config{})
	require.NoError(t, err)
	defer dev.Close()
	const n = 64
	w, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("w", make([]float32, n*n), n, n)}})
	require.NoError(t, err)
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer ses.Close()
	for i, rows := range []int{fewRows, fewRows + 1, 100} {
		rec, err := ses.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
			x := p.Input(pass.F32, rows*n).View()
			for range 3 {
				y := p.Temp(pass.F32, rows*n).View()
				p.Do(pass.Gemm{A: x, W: w, C: y, Rows: rows})
				x = y
			}
			p.Output(x, 1)
		})
		require.NoError(t, err)
		require.NoError(t, rec.Close())
		require.EqualValues(t, min(i, 1), measured.Load(), "%d rows", rows)
	}
}

// Two halves hold less of what is far below the largest than one is asked for.
func TestRangeByMath(t *testing.T) {
	t.Parallel()
	d := &device{}
	for _, c := range []struct {
		apart       float32
		exact, fast bool
	}{{1 << 16, false, false}, {1 << 17, true, false}, {1 << 26, true, false}, {1 << 27, true, true}} {
		require.Equal(t, c.exact, d.ranging(c.apart, false), "%g", c.apart)
		require.Equal(t, c.fast, d.ranging(c.apart, true), "%g", c.apart)
	}
}

// Weights that are not finite say nothing about the range of the others.
func TestRangeOfNaN(t *testing.T) {
	t.Parallel()
	dev := emulated(t, drivertest.Hopper(), Config{Ways: map[string]string{"": "tiles"}})
	defer dev.Close()
	w := values("w", "normal", 8*8*3).Float32s()
	w[5], w[50] = float32(math.NaN()), float32(math.Inf(1))
	p, err := dev.Load(t.Context(), pass.ConvWeights{Weight: pass.Float32s("w", w, 8, 8, 3)})
	require.NoError(t, err)
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer ses.Close()
	rec, err := ses.Record(t.Context(), pass.RecordOptions{}, func(r pass.Pass) {
		x, y := r.Temp(pass.F32, 100*8), r.Temp(pass.F32, 98*8)
		r.Do(pass.Fill{To: x.View(), Rows: 1, Cols: 100 * 8}, pass.Conv1D{X: x.View(), Y: y.View(), W: p, In: 100})
		r.Output(y.View(), 1)
	})
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, rec.Dump(&b))
	require.NotContains(t, b.String(), rangeNote)
	require.Contains(t, b.String(), "tile_")
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
		wide[i] = float32(math.Ldexp(float64(wide[i]), -30*(i%2)))
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

// A feature's only weight counts wherever it is: in each of the parts in which rows are gone
// over, the last row, and the last column.
func TestFeaturesOfAllRows(t *testing.T) {
	library(t, 90)
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	const n, k = 200, 70
	for _, at := range []struct{ row, column int }{{0, 0}, {63, 31}, {66, 32}, {100, 5}, {n - 1, 0}, {n - 1, k - 1}} {
		w := make([]float32, n*k)
		for i := range w {
			if i%k != at.column {
				w[i] = 1
			}
		}
		w[at.row*k+at.column] = 0x1p17
		p, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("w", w, n, k)}})
		require.NoError(t, err)
		ses, err := dev.NewSession(pass.SessionConfig{})
		require.NoError(t, err)
		rec, err := ses.Record(t.Context(), pass.RecordOptions{}, func(r pass.Pass) {
			x, y := r.Temp(pass.F32, 9*k), r.Temp(pass.F32, 9*n)
			r.Do(pass.Fill{To: x.View(), Rows: 1, Cols: 9 * k}, pass.Gemm{A: x.View(), C: y.View(), W: p, Rows: 9})
			r.Output(y.View(), 1)
		})
		require.NoError(t, err)
		var b strings.Builder
		require.NoError(t, rec.Dump(&b))
		require.Equal(t, 1, launched(b.String(), "linear_range_f32"), "%v", at)
		require.NoError(t, ses.Close())
	}
}

// A NaN of which only the lowest bits are set reaches what it feeds, and nothing else.
func TestWideRangeNaN(t *testing.T) {
	for _, d := range rangeDevices {
		t.Run(d.name, func(t *testing.T) {
			library(t, d.capability)
			dev := emulated(t, d.gpu, Config{Ways: map[string]string{"": asLoaded}})
			defer dev.Close()
			const rows, k, n = 9, 40, 10
			for _, bits := range []uint32{0x7f800001, 0xff800001} {
				x, w := make([]float32, rows*k), make([]float32, n*k)
				for i := range x { // what TF32 does not hold: infinity times the rest would be none
					x[i] = 0x1.0004p0
				}
				for i := range w {
					w[i] = 0x1.0004p0
				}
				x[2*k+33] = math.Float32frombits(bits)
				w[5*k+3] = math.Float32frombits(bits)
				op := pass.Gemm{Rows: rows}
				y, err := compute(t.Context(), dev, cases.Case{
					Name: "nan", Op: op, Inputs: []cases.Tensor{cases.F32("A", x, 1, rows, k)}, Outputs: cases.DefaultOutputs(op),
					Params: []cases.Param{{Field: "W", Weights: pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("w", w, n, k)}}}},
				}, pass.Exact)
				require.NoError(t, err)
				for i, v := range y {
					require.Equal(t, i/n == 2 || i%n == 5, v != v, "%d", i)
				}
			}
		})
	}
}
