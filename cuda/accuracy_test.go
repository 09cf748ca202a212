package cuda

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// aboveYardstick is how far above the other libraries' an error may be: split operands keep
// 22 of 24 bits, which shows where sums are short. Of what is here, in two, by a tenth.
const aboveYardstick = 1.15

// lastPlaces is two units in the last place of an F32. What rounds a few numbers, as ops
// without products do, is not held to how few another's kernel rounds.
const lastPlaces = 0x1p-22

// Exact has no larger errors than cuBLAS and cuDNN with FP32 operands, Fast none larger than
// the worse of theirs with TF32 and FP16 operands.
func TestAccuracy(t *testing.T) {
	dev := emulated(t, drivertest.Hopper(), Config{})
	t.Cleanup(func() { dev.Close() })
	theirs := yardsticks(t)
	for _, c := range measured() {
		if !onDevice() && !slices.Contains(emulatedAccuracies, c.Name) {
			continue // the emulator takes its time
		}
		want, err := c.Truth()
		require.NoError(t, err)
		for _, math := range []pass.Math{pass.Exact, pass.Fast} {
			got, err := compute(t.Context(), dev, c, math)
			require.NoError(t, err, c.Name)
			e := distance(got, want[0].Float32s())
			require.Contains(t, theirs, c.Name, "yardstick.py measures it")
			y := theirs[c.Name].of(math)
			t.Logf("%-32s %-5v %.2e (theirs %.2e)", c.Name, math, e, y)
			most := aboveYardstick * y
			switch c.Op.(type) {
			case pass.Gemm, pass.Conv1D, pass.Conv2D, pass.DepthwiseConv2D, pass.Attention, pass.LSTM:
			default:
				most = max(most, lastPlaces)
			}
			require.LessOrEqual(t, e, most, "%s, %v", c.Name, math)
		}
	}
}

// emulatedAccuracies are those that are looked at where there is no GPU.
var emulatedAccuracies = []string{
	"gemm 256x384x256 relu", "attention 300x4x64", "layernorm 300x1280", "softmax 200x1500", "gelu 300x1280", "silu 300x1280", "glu 300x1280",
	"statspool 10x100x64", "groupnorm 400x288", "poolnorm 3000x80", "l2norm 200x256", "logsoftmax 200x1500",
}

// Exact products on tensor cores take what is far below the largest of its row with fewer
// bits. That shows only where the large ones count for nothing: they may be ten million
// times as large before an error is too large.
func TestAccuracyBesideOutliers(t *testing.T) {
	t.Parallel()
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	const rows, columns, depth, at = 64, 64, 256, 7
	for _, large := range []float32{1, 1e6, 1e7} {
		a := values("A", "normal", 1, rows, depth).Float32s()
		of := values("w", "normal", columns, depth).Float32s()
		for i := range rows {
			a[i*depth+at], of[i*depth+at] = large, 0
		}
		w := pass.Float32s("w", of, columns, depth)
		c := cases.Case{
			Name: "gemm", Op: pass.Gemm{Rows: rows}, Inputs: []cases.Tensor{cases.F32("A", a, 1, rows, depth)}, Outputs: []string{"C"},
			Params: []cases.Param{{Field: "W", Weights: pass.LinearWeights{Parts: []pass.Tensor{w}}}},
		}
		want, err := c.Truth()
		require.NoError(t, err)
		got, err := compute(t.Context(), dev, c, pass.Exact)
		require.NoError(t, err)
		require.LessOrEqual(t, distance(got, want[0].Float32s()), cases.ExactTolerance.L2, "beside %g", large)
	}
}

// compute runs the op of a case on dense buffers and returns its output.
func compute(ctx context.Context, dev pass.Device, c cases.Case, math pass.Math) ([]float32, error) {
	ses, err := dev.NewSession(pass.SessionConfig{})
	if err != nil {
		return nil, err
	}
	defer ses.Close()
	params := map[string]pass.Param{}
	for _, p := range c.Params {
		if params[p.Field], err = dev.Load(ctx, p.Weights); err != nil {
			return nil, err
		}
		defer dev.Unload(params[p.Field])
	}
	resolved, err := c.Resolve()
	if err != nil {
		return nil, err
	}
	var out pass.Output
	n := 0
	var binds []pass.Bind
	rec, err := ses.Record(ctx, pass.RecordOptions{Math: math}, func(p pass.Pass) {
		views := map[string]pass.View{}
		var result pass.View
		for _, a := range resolved.Args {
			size := a.Batch * a.Rows * a.Cols
			if a.Access == pass.Write {
				n = size
				result = p.Temp(pass.F32, n).View()
				views[a.Name] = result
				continue
			}
			for _, in := range c.Inputs {
				if in.Name == a.Name {
					x := p.Input(pass.F32, size)
					binds = append(binds, x.F32(in.Float32s()))
					views[a.Name] = x.View()
				}
			}
		}
		op, bindErr := c.Bind(views, params, nil)
		if err = bindErr; err == nil {
			p.Do(op)
			out = p.Output(result, n)
		}
	})
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	run, err := rec.Run(ctx, binds...)
	if err != nil {
		return nil, err
	}
	got := make([]float32, n)
	return got, run.ReadF32(out, got)
}
