package cuda

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// segmentation records pyannote's segmentation network for windows of ten seconds, at its
// published size, with weights that mean nothing.
func (m *rowMaker) segmentation(batch int) func(p pass.Pass) {
	rows := []int{160_000, 5325, 1773, 589}
	w := []int{1, 80, 60, 60}
	temp := func(row, col int) pass.View { return m.floats(batch * row * col) }
	norm := func(n int) pass.Param {
		return m.load(pass.NormWeights{Gain: cases.Recipe("g", 1, n, 0.5, 1), Bias: cases.Recipe("b", 1, n, 0.5, 0)})
	}
	x := m.random(batch * rows[0])
	y := temp(rows[0], 1)
	ops := []pass.Op{pass.PoolNorm{X: x, W: norm(1), Y: y, Batch: batch, Rows: rows[0], Cols: 1}}
	for i := range 3 {
		op := pass.Conv1D{Batch: batch, In: rows[i], Pool: 3}
		taps := 5
		if i == 0 {
			op.Stride, op.Abs, taps = 10, true, 251
		}
		op.X, op.W, op.Y = y, m.load(pass.ConvWeights{Weight: m.tensor(w[i+1], w[i], taps)}), temp(rows[i+1], w[i+1])
		y = temp(rows[i+1], w[i+1])
		ops = append(ops, op, pass.PoolNorm{X: op.Y, W: norm(w[i+1]), Y: y, Batch: batch, Rows: rows[i+1], Cols: w[i+1], Epilogue: pass.Leaky(0.01)})
	}
	h := temp(rows[3], 256)
	ops = append(ops, pass.LSTM{X: y, Y: h, Batch: batch, Time: rows[3], W: m.load(lstmCase{in: 60, hidden: 128, layers: 4, directions: 2}.weights())})
	in := 256
	for _, n := range []int{128, 128, 7} {
		z := temp(rows[3], n)
		ops = append(ops, pass.Gemm{A: h, C: z, Rows: batch * rows[3], W: m.load(pass.LinearWeights{Parts: []pass.Tensor{m.tensor(n, in)}}), Epilogue: pass.Leaky(0.01)})
		h, in = z, n
	}
	ops = append(ops, pass.LogSoftmax{X: h, Y: temp(rows[3], 7), Rows: batch * rows[3], Cols: 7})
	return func(p pass.Pass) { p.Do(ops...) }
}

// BenchmarkSegmentation times the network on the GPU, without what goes to it and comes
// back; with TANDEM_CUDA_SPANS=1 kernel by kernel.
func BenchmarkSegmentation(b *testing.B) {
	if !onDevice() {
		b.Skip("measures a GPU: TANDEM_DEVICES=cuda")
	}
	for _, batch := range []int{1, 32} {
		for _, math := range []pass.Math{pass.Exact, pass.Fast} {
			b.Run(fmt.Sprintf("b%d/%v", batch, math), func(b *testing.B) {
				ctx := context.Background()
				var last Trace
				cfg := Config{}
				if os.Getenv("TANDEM_CUDA_SPANS") != "" {
					cfg.Trace = func(s Trace) { last = s }
				}
				dev, err := Open(ctx, cfg)
				require.NoError(b, err)
				defer dev.Close()
				s, err := dev.NewSession(pass.SessionConfig{})
				require.NoError(b, err)
				defer s.Close()
				m := &rowMaker{b, dev, s}
				rec, err := s.Record(ctx, pass.RecordOptions{Math: math}, m.segmentation(batch))
				require.NoError(b, err)
				for range 5 { // an idle card runs slowly
					_, err = rec.Run(ctx)
					require.NoError(b, err)
				}
				for b.Loop() {
					_, err := rec.Run(ctx)
					require.NoError(b, err)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)*1e3, "ms")
				for _, s := range last.Spans {
					fmt.Printf("    %2d %-12s %-40s %8.1f us\n", s.Op, s.Name, s.Kernel, s.Seconds*1e6)
				}
			})
		}
	}
}
