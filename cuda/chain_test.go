package cuda

import (
	"fmt"
	"math/rand/v2"
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
	within   float64 // of results in a recording for each op; 0: the same bits
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

// prove requires the same bits and the launches.
func (h chain) prove(t *testing.T, dev pass.Device, x []float32) {
	t.Helper()
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer ses.Close()
	got, dump := h.together(t, ses, x)
	if want := h.apart(t, ses, x); h.within > 0 {
		require.LessOrEqual(t, distance(got, want), h.within, dump)
	} else {
		require.Equal(t, appendBits(nil, want), appendBits(nil, got), dump)
	}
	for prefix, n := range h.launches {
		require.Equal(t, n, launched(dump, prefix), "%s in\n%s", prefix, dump)
	}
}

// Whatever ops do with rows, and with parts of them, results are those of ops one by one:
// chains of ops at random.
func TestRandomChains(t *testing.T) {
	library(t, 90)
	const rows, width, chains, length = 10, 16, 60, 9
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	norm, err := dev.Load(t.Context(), pass.NormWeights{Gain: cases.Recipe("gain", 1, width, 0.5, 1), Bias: cases.Recipe("bias", 1, width, 1, 0)})
	require.NoError(t, err)
	var weights []pass.Param
	for i := range 2 {
		w, err := dev.Load(t.Context(), pass.LinearWeights{
			Parts: []pass.Tensor{cases.Encode("w", pass.F32, cases.Recipe("w", uint64(i), width*width, 0.4, 0), width, width)}})
		require.NoError(t, err)
		weights = append(weights, w)
	}
	names := []string{"x", "a", "b", "out"}
	kept := 0
	for seed := range uint64(chains) {
		kind := []pass.Math{pass.Fast, pass.Exact}[seed%2]
		h := chain{name: fmt.Sprint(seed), math: kind, ops: func(v func(string, int) pass.View) []pass.Op {
			r := rand.New(rand.NewPCG(seed, 1))
			var ops []pass.Op
			for _, name := range names[1:] { // nothing is read that was not written
				ops = append(ops, pass.Copy{From: v("x", 0), To: v(name, rows*width), Rows: rows, Cols: width})
			}
			for range length {
				from, to := r.IntN(len(names)), r.IntN(len(names)-1)
				if to >= from {
					to++
				}
				x, y := v(names[from], rows*width), v(names[to], rows*width)
				batch, each := 1, rows
				if r.IntN(4) == 0 {
					batch, each = 2, rows/2
				}
				switch r.IntN(9) {
				case 0, 1:
					ops = append(ops, pass.LayerNorm{X: x, W: norm, Y: y, Batch: batch, Rows: each, Cols: width})
				case 2:
					ops = append(ops, pass.LayerNorm{X: x, W: norm, Y: x, Rows: rows, Cols: width})
				case 3, 4, 5:
					e := []pass.Epilogue{pass.None, pass.GELU, pass.Tanh, pass.Leaky(0.5), pass.Residual(0.5)}[r.IntN(5)]
					ops = append(ops, pass.Gemm{A: x, W: weights[r.IntN(2)], C: y, Batch: batch, Rows: each, Epilogue: e, Exact: r.IntN(6) == 0})
				case 6:
					ops = append(ops, pass.Gemm{A: x, W: weights[0], C: y.Rows(width), Rows: rows, Columns: pass.Span{To: width / 2}})
				case 7:
					ops = append(ops, pass.Fill{To: y.At(r.IntN(rows) * width), Rows: 1, Cols: width, Value: 1})
				case 8:
					row := r.IntN(rows)
					ops = append(ops, pass.Scale{X: x.At(row * width), Y: y.At((rows - 1 - row) * width), Rows: 1, Cols: width, Factor: 0.5})
				}
			}
			return ops
		}, n: rows * width}
		ses, err := dev.NewSession(pass.SessionConfig{})
		require.NoError(t, err)
		x := values("x", "normal", rows, width).Float32s()
		got, dump := h.together(t, ses, x)
		want := h.apart(t, ses, x)
		require.NoError(t, ses.Close())
		if kind == pass.Exact {
			require.Equal(t, appendBits(nil, want), appendBits(nil, got), "chain %d: %s", seed, dump)
		} else {
			require.LessOrEqual(t, distance(got, want), 1e-6, "chain %d: %s", seed, dump)
		}
		kept += strings.Count(dump, "left them") + strings.Count(dump, "halves alone")
	}
	require.Greater(t, kept, chains, "chains in which something is kept")
}
