package cuda

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// TestSpans prints how long each kernel of the building blocks takes on the GPU, for
// whoever makes them faster: TANDEM_CUDA_SPANS=1 go test -v -run TestSpans ./cuda.
func TestSpans(t *testing.T) {
	if !onDevice() || os.Getenv("TANDEM_CUDA_SPANS") == "" {
		t.Skip("asked for with TANDEM_CUDA_SPANS=1, on a GPU")
	}
	var last Trace
	dev, err := Open(t.Context(), Config{Trace: func(s Trace) { last = s }})
	require.NoError(t, err)
	defer dev.Close()
	gemm := func(rows, k, n int, kind pass.DType) cases.Case {
		w := cases.Encode("w", kind, values("w", "normal", n, k).Float32s(), n, k)
		return cases.Case{
			Name: fmt.Sprintf("gemm %dx%dx%d %v", rows, k, n, kind), Op: pass.Gemm{Rows: rows}, Inputs: []cases.Tensor{values("A", "normal", 1, rows, k)},
			Params: []cases.Param{{Field: "W", Weights: pass.LinearWeights{Parts: []pass.Tensor{w}}}}, Outputs: []string{"C"},
		}
	}
	attention := func(batch, frames, heads, dim int, relative bool) cases.Case {
		c := cases.Case{
			Name: fmt.Sprintf("attention %dx%d %dx%d", batch, frames, heads, dim), Outputs: []string{"O"},
			Op: pass.Attention{Batch: batch, Queries: frames, Keys: frames, Heads: heads, HeadDim: dim},
		}
		for _, name := range []string{"Q", "K", "V"} {
			c.Inputs = append(c.Inputs, values(name, "normal", batch, frames, heads*dim))
		}
		if relative {
			c.Name += " relative"
			c.Inputs = append(c.Inputs, values("Q2", "normal", batch, frames, heads*dim), values("Positions", "normal", 1, 2*frames-1, heads*dim))
		}
		return c
	}
	for _, c := range []cases.Case{
		gemm(512, 512, 512, pass.F16), gemm(1500, 384, 1536, pass.F16), gemm(1500, 1280, 5120, pass.F16), gemm(4096, 4096, 4096, pass.F16),
		gemm(1500, 1280, 5120, pass.Q8_0), gemm(4096, 4096, 4096, pass.F32), gemm(1, 1280, 51865, pass.F16),
		attention(1, 1500, 20, 64, false), attention(4, 4096, 16, 64, false), attention(1, 1500, 8, 128, true),
	} {
		for _, math := range []pass.Math{pass.Fast, pass.Exact} {
			for range 3 {
				_, err := compute(t.Context(), dev, c, math)
				require.NoError(t, err)
			}
			sum := 0.0
			for _, s := range last.Spans {
				sum += s.Seconds
			}
			t.Logf("%s %v: %.1f us", c.Name, math, sum*1e6)
			for _, s := range last.Spans {
				t.Logf("    %-40s %8.1f us", s.Kernel, s.Seconds*1e6)
			}
		}
	}
}
