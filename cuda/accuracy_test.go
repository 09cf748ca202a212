package cuda

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// An accuracy is work whose error is held against that of cuBLAS and cuDNN: Exact against
// theirs with FP32 operands, Fast against the worse of theirs with TF32 and FP16 operands,
// as testdata/yardstick.py measured them on an H200. Errors are relative L2 errors against
// float64, of data of the same kind.
type accuracy struct {
	c           cases.Case
	exact, fast float64
}

func accuracies() []accuracy {
	gemm := func(rows, k, n int, kind string, exact, fast float64) accuracy {
		return accuracy{cases.Case{
			Name: fmt.Sprintf("gemm %dx%dx%d %s", rows, k, n, kind), Op: pass.Gemm{Rows: rows},
			Inputs:  []cases.Tensor{values("A", kind, 1, rows, k)},
			Params:  []cases.Param{{Field: "W", Weights: pass.LinearWeights{Parts: []pass.Tensor{weights(n, k)}}}},
			Outputs: []string{"C"},
		}, exact, fast}
	}
	conv1d := func(kind string, exact, fast float64) accuracy {
		return accuracy{cases.Case{
			Name: "conv1d 300x128 k3 " + kind, Op: pass.Conv1D{In: 300, PadLeft: 1, PadRight: 1, Stride: 1},
			Inputs:  []cases.Tensor{values("X", kind, 1, 300, 128)},
			Params:  []cases.Param{{Field: "W", Weights: pass.ConvWeights{Weight: weights(64, 128, 3)}}},
			Outputs: []string{"Y"},
		}, exact, fast}
	}
	conv2d := func(kind string, exact, fast float64) accuracy {
		return accuracy{cases.Case{
			Name: "conv2d 20x50x64 k3 " + kind, Op: pass.Conv2D{Height: 20, Width: 50},
			Inputs:  []cases.Tensor{values("X", kind, 1, 20*50, 64)},
			Params:  []cases.Param{{Field: "W", Weights: pass.Conv2DWeights{Weight: weights(64, 64, 3, 3)}}},
			Outputs: []string{"Y"},
		}, exact, fast}
	}
	attention := accuracy{cases.Case{
		Name: "attention 300x4x64", Op: pass.Attention{Queries: 300, Keys: 300, Heads: 4, HeadDim: 64},
		Inputs:  []cases.Tensor{values("Q", "normal", 1, 300, 256), values("K", "normal", 1, 300, 256), values("V", "normal", 1, 300, 256)},
		Outputs: []string{"O"},
	}, 4.02e-7, 6.47e-4}
	return []accuracy{
		gemm(256, 384, 256, "normal", 1.54e-7, 3.59e-4), gemm(256, 384, 256, "relu", 1.14e-7, 3.61e-4),
		gemm(256, 1280, 256, "normal", 2.34e-7, 3.60e-4), gemm(256, 1280, 256, "relu", 1.72e-7, 3.58e-4),
		gemm(256, 4096, 256, "normal", 2.98e-7, 3.61e-4), gemm(256, 4096, 256, "relu", 2.18e-7, 3.63e-4),
		gemm(1, 1280, 1024, "normal", 1.31e-7, 3.51e-4), gemm(1, 1280, 1024, "relu", 1.05e-7, 3.59e-4),
		conv1d("normal", 3.52e-7, 3.64e-4), conv1d("relu", 2.46e-7, 3.68e-4),
		conv2d("normal", 4.22e-7, 3.57e-4), conv2d("relu", 2.94e-7, 3.53e-4),
		attention,
	}
}

// aboveYardstick is how far above the other libraries' an error may be: split operands keep
// 22 of 24 bits, which shows where sums are short. Of what is here, in two, by a tenth.
const aboveYardstick = 1.15

func values(name, kind string, shape ...int) cases.Tensor {
	n := 1
	for _, s := range shape {
		n *= s
	}
	r := rand.New(rand.NewPCG(uint64(len(name)), uint64(n)))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
		if kind == "relu" {
			v[i] = max(v[i], 0)
		}
	}
	return cases.F32(name, v, shape...)
}

func weights(shape ...int) pass.Tensor {
	t := values("w", "normal", shape...)
	return cases.Encode("w", pass.F32, t.Float32s(), shape...)
}

func TestAccuracy(t *testing.T) {
	var dev pass.Device
	if onDevice() {
		var err error
		dev, err = Open(t.Context(), Config{})
		require.NoError(t, err)
	} else {
		dev = emulated(t, drivertest.Hopper(), Config{})
	}
	t.Cleanup(func() { dev.Close() })
	for _, a := range accuracies() {
		if !onDevice() && a.c.Name != "gemm 256x384x256 relu" && a.c.Name != "attention 300x4x64" {
			continue // the emulator takes its time
		}
		want, err := a.c.Truth()
		require.NoError(t, err)
		for _, math := range []pass.Math{pass.Exact, pass.Fast} {
			got, err := compute(t.Context(), dev, a.c, math)
			require.NoError(t, err, a.c.Name)
			e, yardstick := distance(got, want[0].Float32s()), a.exact
			if math == pass.Fast {
				yardstick = a.fast
			}
			t.Logf("%-32s %-5v %.2e (theirs %.2e)", a.c.Name, math, e, yardstick)
			require.LessOrEqual(t, e, aboveYardstick*yardstick, "%s, %v", a.c.Name, math)
		}
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

// distance is the relative L2 error.
func distance(got, want []float32) float64 {
	var sum, norm float64
	for i, w := range want {
		d := float64(got[i]) - float64(w)
		sum += d * d
		norm += float64(w) * float64(w)
	}
	return math.Sqrt(sum / norm)
}
