package cuda

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// halvesOf returns the results of a product of x that become halves, computed in a way: from
// another product, which gives back its n columns.
func halvesOf(t *testing.T, way string, w pass.LinearWeights, e pass.Epilogue, x []float32, rows int) []float32 {
	t.Helper()
	n, k := w.Parts[0].Shape[0], w.Parts[0].Shape[1]
	one := make([]float32, n*n)
	for i := range n {
		one[i*n+i] = 1
	}
	dev := emulated(t, drivertest.Hopper(), Config{Ways: map[string]string{"": way}})
	defer dev.Close()
	first, err := dev.Load(t.Context(), w)
	require.NoError(t, err)
	second, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{cases.Encode("w", pass.F16, one, n, n)}})
	require.NoError(t, err)
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer ses.Close()
	var in pass.Input
	var out pass.Output
	rec, err := ses.Record(t.Context(), pass.RecordOptions{Math: pass.Fast}, func(p pass.Pass) {
		in = p.Input(pass.F32, rows*k)
		h, y := p.Temp(pass.F32, rows*n), p.Temp(pass.F32, rows*n)
		p.Do(pass.Gemm{A: in.View(), W: first, C: h.View(), Rows: rows, Epilogue: e}, pass.Gemm{A: h.View(), W: second, C: y.View(), Rows: rows})
		out = p.Output(y.View(), rows*n)
	})
	require.NoError(t, err)
	var dump strings.Builder
	require.NoError(t, rec.Dump(&dump))
	require.Contains(t, dump.String(), "halves alone")
	run, err := rec.Run(t.Context(), in.F32(x))
	require.NoError(t, err)
	defer run.Close()
	got := make([]float32, rows*n)
	require.NoError(t, run.ReadF32(out, got))
	return got
}

// GELU of results that become halves is off by no more than halves are, near 0 and far out; NaN goes
// through, and −∞ is 0.
func TestGELUOfHalves(t *testing.T) {
	library(t, 90)
	const rows, n = 24, 64
	one, bias := make([]float32, n*n), make([]float32, n)
	for i := range n {
		one[i*n+i] = 1
	}
	bias[n-2], bias[n-1] = -1000, float32(math.Inf(-1))
	x := make([]float32, rows*n)
	for i := range x { // that halves hold
		x[i] = float32(i-len(x)/2) / 64
	}
	x[0], x[n], x[2*n] = float32(math.Inf(1)), float32(math.NaN()), 1000
	w := pass.LinearWeights{Parts: []pass.Tensor{cases.Encode("w", pass.F16, one, n, n)}, Bias: bias}
	for i, v := range halvesOf(t, "wide 128x64", w, pass.GELU, x, rows) {
		if i < 2*n { // rows of which one is not a number
			require.True(t, math.IsNaN(float64(v)), "row %d, column %d: %g", i/n, i%n, v)
			continue
		}
		want := float64(x[i]) / 2 * math.Erfc(-float64(x[i])/math.Sqrt2)
		if bias[i%n] != 0 {
			want = 0
		}
		require.InDelta(t, want, v, 1e-8+math.Ldexp(math.Abs(want), -11), "gelu(%g)", x[i])
	}
}

// Halves are the same whatever tiles they come from: also where a column's weights are so small that
// tiles which have it write the long way, and more columns do so the wider a tile is.
func TestHalvesOfAllWidths(t *testing.T) {
	library(t, 90)
	const rows, k, n = 130, 64, 256
	w := cases.Recipe("w", 1, n*k, 1, 0)
	for i := range k {
		w[200*k+i] *= 1e-25
	}
	x := cases.Recipe("x", 2, rows*k, 1, 0)
	for name, e := range map[string]pass.Epilogue{"none": pass.None, "relu": pass.ReLU, "silu": pass.SiLU, "gelu": pass.GELU} {
		var alike []float32
		for _, way := range []string{"wide 128x64", "wide 128x128", "wide 128x256", "128x128"} {
			got := halvesOf(t, way, pass.LinearWeights{Parts: []pass.Tensor{cases.Encode("w", pass.F32, w, n, k)}}, e, x, rows)
			if alike == nil {
				alike = got
			}
			require.Equal(t, alike, got, "%s, %s", name, way)
		}
	}
}
