package cuda

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// Results of wide tiles, whole and cut off, with each epilogue that is written from registers:
// where all numbers are near 1, and where rows and columns have scales that are not, which
// must not be multiplied in any order.
func TestWideResults(t *testing.T) {
	library(t, 90)
	const rows, k, n = 140, 72, 300
	epilogues := []struct {
		name string
		is   pass.Epilogue
		of   func(v, was float64) float64
	}{
		{"none", pass.None, func(v, _ float64) float64 { return v }},
		{"relu", pass.ReLU, func(v, _ float64) float64 { return max(v, 0) }},
		{"leaky", pass.Leaky(0.1), func(v, _ float64) float64 { return max(v, 0) + float64(float32(0.1))*min(v, 0) }},
		{"silu", pass.SiLU, func(v, _ float64) float64 { return v / (1 + math.Exp(-v)) }},
		{"gelu", pass.GELU, func(v, _ float64) float64 { return v / 2 * math.Erfc(-v/math.Sqrt2) }},
		{"residual", pass.Residual(0.5), func(v, was float64) float64 { return was + v/2 }},
	}
	for _, far := range []bool{false, true} {
		a := cases.Recipe("a", 1, rows*k, 1, 0)
		w, err := cases.Encode("w", pass.F16, cases.Recipe("w", 1, n*k, 0.2, 0), n, k).Float32s()
		require.NoError(t, err)
		was, bias := cases.Recipe("was", 1, rows*n, 1, 0), cases.Recipe("bias", 1, n, 1, 0)
		if far {
			for i := range a { // by quarters of a tile
				a[i] *= float32(math.Ldexp(1, []int{0, 112, -100, 0}[i/k/32%4]))
			}
			for i := range w {
				w[i] *= float32(math.Ldexp(1, []int{0, -20, -70, 8}[i/k%4]))
			}
		}
		sums, size := make([]float64, rows*n), make([]float64, rows*n)
		for r := range rows {
			for c := range n {
				x, y := 0.0, 0.0
				for i := range k {
					p, q := float64(a[r*k+i]), float64(w[c*k+i])
					sums[r*n+c] += p * q
					x, y = x+p*p, y+q*q
				}
				sums[r*n+c] += float64(bias[c])
				size[r*n+c] = math.Sqrt(x)*math.Sqrt(y) + math.Abs(float64(bias[c])) + math.Abs(float64(was[r*n+c]))
			}
		}
		for _, s := range kernels.WideShapes {
			way, kind, weight, bound := tileChoice{wide: s}.String(), pass.Exact, pass.F32, 2e-6
			switch {
			case s.Products == 1:
				kind, bound = pass.Fast, 1e-3
			case s.Products == 2:
				weight = pass.F16
				if far { // beyond what halves hold
					continue
				}
			}
			dev := emulated(t, drivertest.Hopper(), Config{Ways: map[string]string{"": way}})
			param, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{cases.Encode("w", weight, w, n, k)}, Bias: bias})
			require.NoError(t, err)
			ses, err := dev.NewSession(pass.SessionConfig{})
			require.NoError(t, err)
			for _, e := range epilogues {
				var in, before pass.Input
				var out pass.Output
				rec, err := ses.Record(t.Context(), pass.RecordOptions{Math: kind}, func(p pass.Pass) {
					in, before = p.Input(pass.F32, rows*k), p.Input(pass.F32, rows*n)
					c := p.Temp(pass.F32, rows*n)
					p.Do(
						pass.Copy{From: before.View(), To: c.View(), Rows: rows, Cols: n},
						pass.Gemm{A: in.View(), W: param, C: c.View(), Rows: rows, Epilogue: e.is})
					out = p.Output(c.View(), rows*n)
				})
				require.NoError(t, err)
				run, err := rec.Run(t.Context(), in.F32(a), before.F32(was))
				require.NoError(t, err)
				got := make([]float32, rows*n)
				require.NoError(t, run.ReadF32(out, got))
				run.Close()
				worst := 0.0
				for i, v := range got {
					worst = max(worst, math.Abs(float64(v)-e.of(sums[i], float64(was[i])))/size[i])
				}
				require.LessOrEqual(t, worst, bound, "%s, %s, far %v", way, e.name, far)
				require.NoError(t, rec.Close())
			}
			require.Equal(t, way, dev.(Tunable).Boundaries()[0].Choice)
			require.NoError(t, dev.Close())
		}
	}
}
