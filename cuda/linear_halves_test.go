package cuda

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// Rows that several products read are prepared once, as long as nobody writes them, and
// give the same bits.
func TestPreparedRowsAreShared(t *testing.T) {
	library(t, 90)
	const rows, k, n = 20, 40, 24
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	load := func(seed uint64, n, k int) pass.Param {
		w, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{
			cases.Encode("w", pass.F32, cases.Recipe("w", seed, n*k, 0.2, 0), n, k)}})
		require.NoError(t, err)
		return w
	}
	a, b, narrow := load(0, n, k), load(1, n, k), load(2, n, k/2)
	for _, math := range []pass.Math{pass.Exact, pass.Fast} {
		for _, h := range []chain{
			{name: "the same rows", math: math, ops: func(v func(string, int) pass.View) []pass.Op {
				x, out := v("x", 0), v("out", 2*rows*n)
				return []pass.Op{
					pass.Gemm{A: x, W: a, C: out.Rows(2 * n), Rows: rows},
					pass.Gemm{A: x, W: b, C: out.At(n).Rows(2 * n), Rows: rows},
				}
			}, n: 2 * rows * n, launches: map[string]int{"tile_prepare": 1}},
			{name: "in items and without", math: math, ops: func(v func(string, int) pass.View) []pass.Op {
				x, out := v("x", 0), v("out", 2*rows*n)
				return []pass.Op{
					pass.Gemm{A: x, W: a, C: out, Rows: rows},
					pass.Gemm{A: x, W: b, C: out.At(rows * n), Batch: 2, Rows: rows / 2},
				}
			}, n: 2 * rows * n, launches: map[string]int{"tile_prepare": 1}},
			{name: "written in between", math: math, ops: func(v func(string, int) pass.View) []pass.Op {
				x, out := v("x", 0), v("out", 2*rows*n)
				return []pass.Op{
					pass.Gemm{A: x, W: a, C: out, Rows: rows},
					pass.Fill{To: x.At(rows*k - 1), Rows: 1, Cols: 1, Value: 3},
					pass.Gemm{A: x, W: b, C: out.At(rows * n), Rows: rows},
				}
			}, n: 2 * rows * n, launches: map[string]int{"tile_prepare": 2}},
			{name: "other columns", math: math, ops: func(v func(string, int) pass.View) []pass.Op {
				x, out := v("x", 0), v("out", 2*rows*n)
				return []pass.Op{
					pass.Gemm{A: x.Rows(k), W: narrow, C: out, Rows: rows},
					pass.Gemm{A: x.At(k / 2).Rows(k), W: narrow, C: out.At(rows * n), Rows: rows},
				}
			}, n: 2 * rows * n, launches: map[string]int{"tile_prepare": 2}},
			{name: "Exact among others", math: math, ops: func(v func(string, int) pass.View) []pass.Op {
				x, out := v("x", 0), v("out", 3*rows*n)
				return []pass.Op{
					pass.Gemm{A: x, W: a, C: out, Rows: rows},
					pass.Gemm{A: x, W: a, C: out.At(rows * n), Rows: rows, Exact: true},
					pass.Gemm{A: x, W: b, C: out.At(2 * rows * n), Rows: rows},
				}
			}, n: 3 * rows * n, launches: map[string]int{"tile_prepare": map[pass.Math]int{pass.Exact: 1, pass.Fast: 2}[math]}},
		} {
			t.Run(fmt.Sprintf("%v/%s", math, h.name), func(t *testing.T) { h.prove(t, dev, values("x", "normal", rows, k).Float32s()) })
		}
	}
}

// A norm leaves rows as products want them, with the bits that preparing them gives; and as
// F32 only if something else reads them.
func TestNormsLeaveHalves(t *testing.T) {
	library(t, 90)
	const rows, n = 20, 24
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	for _, cols := range []int{37, 40, 500, 1000, 1279, 1500, 4100} {
		gain, bias := cases.Recipe("gain", 1, cols, 1, 0), cases.Recipe("bias", 1, cols, 1, 0)
		norm, err := dev.Load(t.Context(), pass.NormWeights{Gain: gain, Bias: bias})
		require.NoError(t, err)
		w, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{cases.Encode("w", pass.F32, cases.Recipe("w", 1, n*cols, 0.2, 0), n, cols)}})
		require.NoError(t, err)
		layer := func(x, y pass.View) pass.LayerNorm {
			return pass.LayerNorm{X: x, W: norm, Y: y, Rows: rows, Cols: cols}
		}
		product := func(a, c pass.View) pass.Gemm { return pass.Gemm{A: a, W: w, C: c, Rows: rows} }
		x := values("x", "normal", rows, cols).Float32s()
		copy(x[cols:2*cols], make([]float32, cols))
		x[2*cols+3], x[3*cols] = 1e30, 1e-30
		x[4*cols+1], x[5*cols+2] = float32(math.NaN()), float32(math.Inf(1))
		prepares := 0
		if cols > 4096 {
			prepares = 1
		}
		for _, kind := range []pass.Math{pass.Exact, pass.Fast} {
			for _, h := range []chain{
				{name: "only products", math: kind, ops: func(v func(string, int) pass.View) []pass.Op {
					y, out := v("y", rows*cols), v("out", 2*rows*n)
					return []pass.Op{layer(v("x", 0), y), product(y, out), product(y, out.At(rows*n))}
				}, n: 2 * rows * n, launches: map[string]int{"tile_prepare": prepares}},
				{name: "in place, and used for something else", math: kind, ops: func(v func(string, int) pass.View) []pass.Op {
					x, out := v("x", 0), v("out", 2*rows*n)
					return []pass.Op{
						layer(x, x), product(x, out), pass.Fill{To: x, Rows: 1, Cols: rows * cols, Value: 2},
						product(x, out.At(rows*n)),
					}
				}, n: 2 * rows * n, launches: map[string]int{"tile_prepare": 1 + prepares}},
				{name: "another reader", math: kind, ops: func(v func(string, int) pass.View) []pass.Op {
					y, out := v("y", rows*cols), v("out", rows*n+rows*cols)
					return []pass.Op{
						layer(v("x", 0), y), product(y, out),
						pass.Scale{X: y, Y: out.At(rows * n), Rows: rows, Cols: cols, Factor: 2},
					}
				}, n: rows*n + rows*cols, launches: map[string]int{"tile_prepare": prepares}},
				{name: "an output", math: kind, ops: func(v func(string, int) pass.View) []pass.Op {
					y, out := v("y", rows*n), v("out", rows*cols)
					return []pass.Op{layer(v("x", 0), out), product(out, y)}
				}, n: rows * cols, launches: map[string]int{"tile_prepare": prepares}},
			} {
				t.Run(fmt.Sprintf("%d/%v/%s", cols, kind, h.name), func(t *testing.T) { h.prove(t, dev, x) })
			}
		}
	}
}

// So does a ConvGLU whose blocks have whole rows.
func TestConvGLULeavesHalves(t *testing.T) {
	library(t, 90)
	const items, rows, n = 2, 14, 24
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	for _, g := range []struct {
		channels, kernel int
		normalised       bool
		ways             string
		prepares         int
	}{
		{20, 5, true, "128", 0}, {255, 3, false, "128", 0}, {300, 9, true, "512_k9", 0}, {301, 9, true, "512_k9_few", 0},
		{300, 5, true, "512_k5", 0}, {300, 7, true, "512", 0}, {1100, 5, true, "wide", 1}, {600, 3, false, "512", 0}, {1200, 3, false, "512", 1},
	} {
		dev := dev
		if g.ways != "" {
			dev = emulated(t, drivertest.Hopper(), Config{Ways: map[string]string{"": g.ways}})
			defer dev.Close()
		}
		ones := cases.Recipe("gain", 1, g.channels, 1, 0)
		conv, err := dev.Load(t.Context(), pass.ConvGLUWeights{
			Weight: cases.Encode("w", pass.F32, cases.Recipe("w", 1, g.channels*g.kernel, 1, 0), g.channels, g.kernel),
			Bias:   ones, Gain: ones, Shift: ones, Normalised: g.normalised,
		})
		require.NoError(t, err)
		w, err := dev.Load(t.Context(), pass.LinearWeights{
			Parts: []pass.Tensor{cases.Encode("w", pass.F32, cases.Recipe("w", 1, n*g.channels, 0.2, 0), n, g.channels)}})
		require.NoError(t, err)
		x := values("x", "normal", items*rows, 2*g.channels).Float32s()
		x[3*g.channels], x[40] = 1e30, float32(math.NaN())
		for _, kind := range []pass.Math{pass.Exact, pass.Fast} {
			chain{math: kind, ops: func(v func(string, int) pass.View) []pass.Op {
				y := v("y", items*rows*g.channels)
				return []pass.Op{
					pass.ConvGLU{X: v("x", 0), W: conv, Y: y, Batch: items, Rows: rows, Lengths: pass.Fixed(rows, rows-3)},
					pass.Gemm{A: y, W: w, C: v("out", items*rows*n), Rows: items * rows},
				}
			}, n: items * rows * n, launches: map[string]int{"tile_prepare": g.prepares, "conformer_convglu_" + g.ways: 1}}.prove(t, dev, x)
		}
	}
}

// A product leaves halves to products that read nothing else of it, scaled by what its
// results can be at most; results are as if it had left F32.
func TestProductsLeaveHalves(t *testing.T) {
	library(t, 90)
	const rows, k, n, m = 140, 72, 136, 20
	for _, way := range []string{"", "128x128", "64x64", "64x64, sums in 2 parts", "wide 128x64", "wide 128x256, clusters of 2"} {
		cfg := Config{}
		if way != "" {
			cfg.Ways = map[string]string{"": way}
		}
		dev := emulated(t, drivertest.Hopper(), cfg)
		defer dev.Close()
		load := func(n, k int, kind pass.DType, bias, dual []float32) pass.Param {
			w, err := dev.Load(t.Context(), pass.LinearWeights{
				Parts: []pass.Tensor{cases.Encode("w", kind, cases.Recipe("w", uint64(n), n*k, 0.2, 0), n, k)}, Bias: bias, Dual: dual})
			require.NoError(t, err)
			return w
		}
		norm, err := dev.Load(t.Context(), pass.NormWeights{Gain: cases.Recipe("gain", 1, k, 1, 0), Bias: cases.Recipe("bias", 1, k, 1, 0)})
		require.NoError(t, err)
		first, second := load(n, k, pass.F16, cases.Recipe("b", 1, n, 1, 0), nil), load(m, n, pass.F32, nil, nil)
		square, dual := load(n, n, pass.F32, nil, nil), load(n, k, pass.F32, nil, cases.Recipe("d", 1, 8, 1, 0))
		x := values("x", "normal", rows, k).Float32s()
		layer := func(x, y pass.View) pass.Op { return pass.LayerNorm{X: x, W: norm, Y: y, Rows: rows, Cols: k} }
		type ops = func(v func(string, int) pass.View) []pass.Op
		prove := func(name string, prepares int, o ops) {
			for _, kind := range []pass.Math{pass.Fast, pass.Exact} {
				h := chain{name: name, math: kind, ops: o, n: rows * m}
				if kind == pass.Fast {
					if name == "silu" { // is computed by other steps
						h.within = 2e-5
					}
					h.launches = map[string]int{"tile_prepare": prepares}
				}
				t.Run(fmt.Sprintf("%s/%s/%v", way, name, kind), func(t *testing.T) { h.prove(t, dev, x) })
			}
		}
		for name, e := range map[string]pass.Epilogue{
			"none": pass.None, "silu": pass.SiLU, "relu": pass.ReLU, "gelu": pass.GELU, "tanh": pass.Tanh, "sigmoid": pass.Sigmoid,
			"leaky": pass.Leaky(0.1), "steep": pass.Leaky(-7),
		} {
			prove(name, 0, func(v func(string, int) pass.View) []pass.Op {
				y, h := v("y", rows*k), v("h", rows*n)
				return []pass.Op{
					layer(v("x", 0), y), pass.Gemm{A: y, W: first, C: h, Rows: rows, Epilogue: e},
					pass.Gemm{A: h, W: second, C: v("out", rows*m), Batch: 2, Rows: rows / 2},
				}
			})
		}
		if way != "" {
			continue
		}
		prove("of rows that are prepared, and no bounds of bounds", 2, func(v func(string, int) pass.View) []pass.Op {
			h, g := v("h", rows*n), v("g", rows*n)
			return []pass.Op{
				pass.Gemm{A: v("x", 0), W: first, C: h, Rows: rows},
				pass.Gemm{A: h, W: square, C: g, Rows: rows}, pass.Gemm{A: g, W: second, C: v("out", rows*m), Rows: rows},
			}
		})
		prove("in place", 2, func(v func(string, int) pass.View) []pass.Op {
			h := v("h", rows*n)
			return []pass.Op{
				pass.Fill{To: h, Rows: 1, Cols: rows * n, Value: 1}, pass.Gemm{A: v("x", 0), W: first, C: h, Rows: rows, Epilogue: pass.Residual(1)},
				pass.Gemm{A: h, W: second, C: v("out", rows*m), Rows: rows},
			}
		})
		prove("some columns again", 2, func(v func(string, int) pass.View) []pass.Op {
			h := v("h", rows*n)
			return []pass.Op{
				pass.Gemm{A: v("x", 0), W: dual, C: h, Rows: rows, Columns: pass.Span{From: 8, To: n + 8}},
				pass.Gemm{A: h, W: second, C: v("out", rows*m), Rows: rows},
			}
		})
		prove("another reader", 2, func(v func(string, int) pass.View) []pass.Op {
			h := v("h", rows*n)
			return []pass.Op{
				pass.Gemm{A: v("x", 0), W: first, C: h, Rows: rows}, pass.Gemm{A: h, W: second, C: v("out", rows*m), Rows: rows},
				pass.Scale{X: h, Y: v("x", 0), Rows: 1, Cols: rows * k, Factor: 2},
			}
		})
		prove("a reader that does not round", 2, func(v func(string, int) pass.View) []pass.Op {
			h := v("h", rows*n)
			return []pass.Op{
				pass.Gemm{A: v("x", 0), W: first, C: h, Rows: rows},
				pass.Gemm{A: h, W: second, C: v("out", rows*m), Rows: rows, Exact: true},
			}
		})
		prove("parts are read", 3, func(v func(string, int) pass.View) []pass.Op {
			h := v("h", rows*n)
			return []pass.Op{
				pass.Gemm{A: v("x", 0), W: first, C: h, Rows: rows},
				pass.Gemm{A: h, W: second, C: v("out", rows*m), Rows: rows / 2}, pass.Gemm{A: h.At(rows / 2 * n), W: second, C: v("out", 0).At(rows / 2 * m), Rows: rows / 2},
			}
		})
	}
}

// proveHalves computes norms and products that leave halves.
func proveHalves(t *testing.T, dev pass.Device) {
	t.Helper()
	const rows = 12
	for _, k := range []int{16, 400, 800, 1400} {
		w, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{cases.Encode("w", pass.F16, cases.Recipe("w", 1, 16*k, 0.2, 0), 16, k)}})
		require.NoError(t, err)
		defer dev.Unload(w)
		second, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{cases.Encode("w", pass.F16, cases.Recipe("w", 1, 16*16, 0.2, 0), 16, 16)}})
		require.NoError(t, err)
		defer dev.Unload(second)
		norm, err := dev.Load(t.Context(), pass.NormWeights{Gain: cases.Recipe("gain", 1, k, 1, 0)})
		require.NoError(t, err)
		defer dev.Unload(norm)
		chain{math: pass.Fast, ops: func(v func(string, int) pass.View) []pass.Op {
			y, h := v("y", rows*k), v("h", rows*16)
			return []pass.Op{
				pass.LayerNorm{X: v("x", 0), W: norm, Y: y, Rows: rows, Cols: k}, pass.Gemm{A: y, W: w, C: h, Rows: rows},
				pass.Gemm{A: h, W: second, C: v("out", rows*16), Rows: rows},
			}
		}, n: rows * 16, launches: map[string]int{"tile_prepare": 0}}.prove(t, dev, values("x", "normal", rows, k).Float32s())
	}
}

// proveConvGLU computes those that leave halves.
func proveConvGLU(t *testing.T, dev pass.Device) {
	t.Helper()
	for _, g := range []struct{ rows, channels, kernel int }{{12, 20, 3}, {12, 300, 9}, {404, 300, 9}, {12, 300, 5}, {404, 300, 5}, {12, 300, 7}} {
		ones := cases.Recipe("gain", 1, g.channels, 1, 0)
		conv, err := dev.Load(t.Context(), pass.ConvGLUWeights{
			Weight: cases.Encode("w", pass.F32, cases.Recipe("w", 1, g.channels*g.kernel, 1, 0), g.channels, g.kernel), Gain: ones, Shift: ones, Normalised: true})
		require.NoError(t, err)
		defer dev.Unload(conv)
		w, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{cases.Encode("w", pass.F32, cases.Recipe("w", 1, 8*g.channels, 0.2, 0), 8, g.channels)}})
		require.NoError(t, err)
		defer dev.Unload(w)
		chain{math: pass.Fast, ops: func(v func(string, int) pass.View) []pass.Op {
			y := v("y", g.rows*g.channels)
			return []pass.Op{pass.ConvGLU{X: v("x", 0), W: conv, Y: y, Rows: g.rows}, pass.Gemm{A: y, W: w, C: v("out", g.rows*8), Rows: g.rows}}
		}, n: g.rows * 8, launches: map[string]int{"tile_prepare": 0}}.prove(t, dev, values("x", "normal", g.rows, 2*g.channels).Float32s())
	}
}

// What is not finite reaches what it feeds, and what is finite stays so: rows of zeros, of
// the largest and the smallest numbers, and of NaN and infinities.
func TestHalvesOfSpecialValues(t *testing.T) {
	library(t, 90)
	const rows, k, n, m = 12, 16, 24, 8
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	for i, size := range []float32{1, 1e-30, 1e30, 1} {
		first := cases.Recipe("w", 1, n*k, size, 0)
		bias := cases.Recipe("b", 1, n, size, 0)
		if i == 3 {
			bias[3] = float32(math.Inf(1))
		}
		a, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{cases.Encode("w", pass.F32, first, n, k)}, Bias: bias})
		require.NoError(t, err)
		second := cases.Recipe("v", 1, m*n, 0.2, 0)
		for i := range n {
			if i != 3 {
				second[i] = 0.5 // no NaN or infinity hides in zeros
			}
		}
		b, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{cases.Encode("w", pass.F32, second, m, n)}})
		require.NoError(t, err)
		x := cases.Recipe("x", 1, rows*k, 1, 0)
		for i := range k {
			x[i], x[k+i], x[2*k+i] = 0, x[k+i]*3e38, x[2*k+i]*1e-42
			x[6*k+i] = first[i] / size // the bound is reached
		}
		x[3*k+1], x[4*k+1], x[5*k+1] = float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))
		for _, e := range []pass.Epilogue{pass.None, pass.ReLU, pass.GELU, pass.Tanh, pass.Sigmoid, pass.Leaky(3)} {
			h := chain{math: pass.Fast, ops: func(v func(string, int) pass.View) []pass.Op {
				h := v("h", rows*n)
				return []pass.Op{
					pass.Gemm{A: v("x", 0), W: a, C: h, Rows: rows, Epilogue: e}, pass.Gemm{A: h, W: b, C: v("out", rows*m), Rows: rows},
				}
			}, n: rows * m, launches: map[string]int{"tile_prepare": 1}}
			ses, err := dev.NewSession(pass.SessionConfig{})
			require.NoError(t, err)
			got, dump := h.together(t, ses, x)
			want := h.apart(t, ses, x)
			require.NoError(t, ses.Close())
			require.Equal(t, 1, launched(dump, "tile_prepare"), dump)
			for i := range got {
				g, w := float64(got[i]), float64(want[i])
				if math.IsNaN(w) || math.IsInf(w, 0) {
					require.Equal(t, fmt.Sprint(w), fmt.Sprint(g), "weights of %g, %v, row %d", size, e, i/m)
				} else {
					require.InDelta(t, w, g, 1e-6*math.Abs(w)+1e-37, "weights of %g, %v, row %d", size, e, i/m)
				}
			}
		}
	}
}

// What is kept as halves alone takes no memory as F32.
func TestHalvesTakeTheirPlace(t *testing.T) {
	library(t, 90)
	const rows, k, n = 16, 1024, 8
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	norm, err := dev.Load(t.Context(), pass.NormWeights{Gain: cases.Recipe("gain", 1, k, 1, 0)})
	require.NoError(t, err)
	w, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{cases.Encode("w", pass.F32, cases.Recipe("w", 1, n*k, 0.2, 0), n, k)}})
	require.NoError(t, err)
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer ses.Close()
	workspace := func(output bool) (bytes int) {
		rec, err := ses.Record(t.Context(), pass.RecordOptions{Math: pass.Fast}, func(p pass.Pass) {
			x, y, z := p.Input(pass.F32, rows*k).View(), p.Temp(pass.F32, rows*k).View(), p.Temp(pass.F32, rows*n).View()
			p.Do(pass.LayerNorm{X: x, W: norm, Y: y, Rows: rows, Cols: k}, pass.Gemm{A: y, W: w, C: z, Rows: rows})
			p.Output(z, rows*n)
			if output {
				p.Output(y, 1)
			}
		})
		require.NoError(t, err)
		defer rec.Close()
		var b strings.Builder
		require.NoError(t, rec.Dump(&b))
		_, err = fmt.Sscanf(b.String()[strings.Index(b.String(), "workspace:"):], "workspace: %d bytes", &bytes)
		require.NoError(t, err)
		return bytes
	}
	require.Equal(t, 4*rows*k, workspace(true)-workspace(false))
}
