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

// A chain is ops that hand rows on to each other. Buffers have names; "x" holds the data,
// "out" what comes out.
type chain struct {
	name string
	math pass.Math
	ops  func(b func(name string, n int) pass.View) []pass.Op
	n    int // elements of out
	// How often kernels whose names begin so are launched, in a recording of all ops.
	launches map[string]int
}

// together computes a chain in one recording, in which buffers are temporaries, and returns
// the recording's description.
func (h chain) together(t *testing.T, ses pass.Session, x []float32) ([]float32, string) {
	t.Helper()
	var in pass.Input
	var out pass.Output
	rec, err := ses.Record(t.Context(), pass.RecordOptions{Math: h.math}, func(p pass.Pass) {
		in = p.Input(pass.F32, len(x))
		made := map[string]pass.View{"x": p.Temp(pass.F32, len(x)).View()}
		p.Do(pass.Copy{From: in.View(), To: made["x"], Rows: 1, Cols: len(x)})
		p.Do(h.ops(func(name string, n int) pass.View {
			if _, ok := made[name]; !ok {
				made[name] = p.Temp(pass.F32, n).View()
			}
			return made[name]
		})...)
		out = p.Output(made["out"], h.n)
	})
	require.NoError(t, err)
	defer rec.Close()
	got := make([]float32, h.n)
	for range 2 {
		run, err := rec.Run(t.Context(), in.F32(x))
		require.NoError(t, err)
		require.NoError(t, run.ReadF32(out, got))
		run.Close()
	}
	var b strings.Builder
	require.NoError(t, rec.Dump(&b))
	return got, b.String()
}

// apart computes a chain in a recording for each op, in which buffers are state.
func (h chain) apart(t *testing.T, ses pass.Session, x []float32) []float32 {
	t.Helper()
	made := map[string]pass.View{}
	buffer := func(name string, n int) pass.View {
		if _, ok := made[name]; !ok {
			b, err := ses.Alloc(pass.F32, n)
			require.NoError(t, err)
			made[name] = b.View()
		}
		return made[name]
	}
	require.NoError(t, ses.Write(t.Context(), buffer("x", len(x)), x))
	for _, op := range h.ops(buffer) {
		rec, err := ses.Record(t.Context(), pass.RecordOptions{Math: h.math}, func(p pass.Pass) { p.Do(op) })
		require.NoError(t, err)
		_, err = rec.Run(t.Context())
		require.NoError(t, err)
		require.NoError(t, rec.Close())
	}
	got := make([]float32, h.n)
	require.NoError(t, ses.Read(t.Context(), made["out"], got))
	return got
}

// launched counts the kernels of a description whose names begin with prefix.
func launched(dump, prefix string) (n int) {
	for line := range strings.Lines(dump) {
		if strings.HasPrefix(strings.TrimSpace(line), prefix) && strings.Contains(line, ": grid") {
			n++
		}
	}
	return n
}

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
			{"the same rows", math, func(v func(string, int) pass.View) []pass.Op {
				x, out := v("x", 0), v("out", 2*rows*n)
				return []pass.Op{
					pass.Gemm{A: x, W: a, C: out.Rows(2 * n), Rows: rows},
					pass.Gemm{A: x, W: b, C: out.At(n).Rows(2 * n), Rows: rows},
				}
			}, 2 * rows * n, map[string]int{"tile_prepare": 1}},
			{"in items and without", math, func(v func(string, int) pass.View) []pass.Op {
				x, out := v("x", 0), v("out", 2*rows*n)
				return []pass.Op{
					pass.Gemm{A: x, W: a, C: out, Rows: rows},
					pass.Gemm{A: x, W: b, C: out.At(rows * n), Batch: 2, Rows: rows / 2},
				}
			}, 2 * rows * n, map[string]int{"tile_prepare": 1}},
			{"written in between", math, func(v func(string, int) pass.View) []pass.Op {
				x, out := v("x", 0), v("out", 2*rows*n)
				return []pass.Op{
					pass.Gemm{A: x, W: a, C: out, Rows: rows},
					pass.Fill{To: x.At(rows*k - 1), Rows: 1, Cols: 1, Value: 3},
					pass.Gemm{A: x, W: b, C: out.At(rows * n), Rows: rows},
				}
			}, 2 * rows * n, map[string]int{"tile_prepare": 2}},
			{"other columns", math, func(v func(string, int) pass.View) []pass.Op {
				x, out := v("x", 0), v("out", 2*rows*n)
				return []pass.Op{
					pass.Gemm{A: x.Rows(k), W: narrow, C: out, Rows: rows},
					pass.Gemm{A: x.At(k / 2).Rows(k), W: narrow, C: out.At(rows * n), Rows: rows},
				}
			}, 2 * rows * n, map[string]int{"tile_prepare": 2}},
			{"Exact among others", math, func(v func(string, int) pass.View) []pass.Op {
				x, out := v("x", 0), v("out", 3*rows*n)
				return []pass.Op{
					pass.Gemm{A: x, W: a, C: out, Rows: rows},
					pass.Gemm{A: x, W: a, C: out.At(rows * n), Rows: rows, Exact: true},
					pass.Gemm{A: x, W: b, C: out.At(2 * rows * n), Rows: rows},
				}
			}, 3 * rows * n, map[string]int{"tile_prepare": map[pass.Math]int{pass.Exact: 1, pass.Fast: 2}[math]}},
		} {
			t.Run(fmt.Sprintf("%v/%s", math, h.name), func(t *testing.T) { h.prove(t, dev, values("x", "normal", rows, k).Float32s()) })
		}
	}
}

// prove requires the same bits and the launches.
func (h chain) prove(t *testing.T, dev pass.Device, x []float32) {
	t.Helper()
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer ses.Close()
	got, dump := h.together(t, ses, x)
	require.Equal(t, appendBits(nil, h.apart(t, ses, x)), appendBits(nil, got), dump)
	for prefix, n := range h.launches {
		require.Equal(t, n, launched(dump, prefix), "%s in\n%s", prefix, dump)
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
				{"only products", kind, func(v func(string, int) pass.View) []pass.Op {
					y, out := v("y", rows*cols), v("out", 2*rows*n)
					return []pass.Op{layer(v("x", 0), y), product(y, out), product(y, out.At(rows*n))}
				}, 2 * rows * n, map[string]int{"tile_prepare": prepares}},
				{"in place, and used for something else", kind, func(v func(string, int) pass.View) []pass.Op {
					x, out := v("x", 0), v("out", 2*rows*n)
					return []pass.Op{
						layer(x, x), product(x, out), pass.Fill{To: x, Rows: 1, Cols: rows * cols, Value: 2},
						product(x, out.At(rows*n)),
					}
				}, 2 * rows * n, map[string]int{"tile_prepare": 1 + prepares}},
				{"another reader", kind, func(v func(string, int) pass.View) []pass.Op {
					y, out := v("y", rows*cols), v("out", rows*n+rows*cols)
					return []pass.Op{
						layer(v("x", 0), y), product(y, out),
						pass.Scale{X: y, Y: out.At(rows * n), Rows: rows, Cols: cols, Factor: 2},
					}
				}, rows*n + rows*cols, map[string]int{"tile_prepare": prepares}},
				{"an output", kind, func(v func(string, int) pass.View) []pass.Op {
					y, out := v("y", rows*n), v("out", rows*cols)
					return []pass.Op{layer(v("x", 0), out), product(out, y)}
				}, rows * cols, map[string]int{"tile_prepare": prepares}},
			} {
				t.Run(fmt.Sprintf("%d/%v/%s", cols, kind, h.name), func(t *testing.T) { h.prove(t, dev, x) })
			}
		}
	}
}
