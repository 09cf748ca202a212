package cuda

import (
	"fmt"
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
