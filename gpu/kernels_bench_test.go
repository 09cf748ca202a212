package gpu

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// A timing is an op at a size that networks have; large is too much for software adapters.
type timing struct {
	name  string
	large bool
	times int // in one recording
	make  func(b *testing.B, dev pass.Device, s pass.Session) pass.Op
}

// BenchmarkKernels times ops, many in one recording, so that what a run costs beside
// them hardly counts.
func BenchmarkKernels(b *testing.B) {
	p, a := testAdapter(b)
	for _, c := range append(append(timings(), rowTimings()...), blockTimings()...) {
		b.Run(c.name, func(b *testing.B) {
			if c.large && kindOf(a) == kindSoftware {
				b.Skip("too large for a software adapter")
			}
			ctx := context.Background()
			drv, err := p.Open(ctx, a.Index, driver.DeviceConfig{})
			require.NoError(b, err)
			dev := backend.New(newHardware(drv, a, options{}))
			defer dev.Close()
			s, err := dev.NewSession(pass.SessionConfig{})
			require.NoError(b, err)
			op := c.make(b, dev, s)
			checked, err := pass.Check(op)
			require.NoError(b, err)
			times := max(c.times, 1)
			if kindOf(a) == kindSoftware {
				times = 1
			}
			rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
				for range times {
					p.Do(op)
				}
			})
			require.NoError(b, err)
			_, err = rec.Run(ctx)
			require.NoError(b, err)
			for b.Loop() {
				_, err := rec.Run(ctx)
				require.NoError(b, err)
			}
			seconds := b.Elapsed().Seconds() / float64(b.N*times)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(seconds*1e6, "us")
			b.ReportMetric(checked.Cost.FLOP/seconds/1e12, "TFLOP/s")
			b.ReportMetric(checked.Cost.Bytes/seconds/1e9, "GB/s")
		})
	}
}

func timings() []timing {
	return []timing{
		{"gemm/256", false, 1, timedGemm(256, 256, 256, pass.F32)},
		{"gemm/4096", true, 4, timedGemm(4096, 4096, 4096, pass.F32)},
		{"gemm/4096-F16", true, 4, timedGemm(4096, 4096, 4096, pass.F16)},
		{"gemm/1500x1280x5120-F16", true, 20, timedGemm(1500, 1280, 5120, pass.F16)},
		{"gemm/1500x384x1536-F16", true, 50, timedGemm(1500, 384, 1536, pass.F16)},
		{"few/1x51865x1280-F16", true, 50, timedGemm(1, 51865, 1280, pass.F16)},
		{"few/1x51865x1280-Q8_0", true, 50, timedGemm(1, 51865, 1280, pass.Q8_0)},
		{"few/1x1280x1280-F16", false, 200, timedGemm(1, 1280, 1280, pass.F16)},
		{"few/8x1280x1280-F16", false, 200, timedGemm(8, 1280, 1280, pass.F16)},
		{"conv1d/stft-256", false, 100, timedConv(256, 576, 1, 258, 256, 128, 64)},
		{"conv1d/stft-18750", true, 5, timedConv(18750, 576, 1, 258, 256, 128, 64)},
		{"conv1d/129to128-256", false, 100, timedConv(256, 4, 129, 128, 3, 1, 1)},
		{"conv1d/129to128-18750", true, 5, timedConv(18750, 4, 129, 128, 3, 1, 1)},
		{"lstm/589-4x2x128-b1", false, 1, timedLSTM(1, 589, 60, 128, 4, 2)},
		{"lstm/589-4x2x128-b32", true, 1, timedLSTM(32, 589, 60, 128, 4, 2)},
		{"lstm/18750-128", true, 1, timedLSTM(1, 18750, 128, 128, 1, 1)},
		{"lstm/1-128-b256", false, 100, timedLSTM(256, 1, 128, 128, 1, 1)},
		{"lstm/1-128-b1", false, 100, timedLSTM(1, 1, 128, 128, 1, 1)},
	}
}

func load(b *testing.B, dev pass.Device, w pass.Weights) pass.Param {
	p, err := dev.Load(context.Background(), w)
	require.NoError(b, err)
	return p
}

func alloc(b *testing.B, s pass.Session, n int) pass.View {
	x, err := s.Alloc(pass.F32, n)
	require.NoError(b, err)
	return x.View()
}

func timedGemm(rows, n, k int, t pass.DType) func(*testing.B, pass.Device, pass.Session) pass.Op {
	return func(b *testing.B, dev pass.Device, s pass.Session) pass.Op {
		w := load(b, dev, pass.LinearWeights{Parts: []pass.Tensor{cases.Encode("w", t, cases.Recipe("w", 1, n*k, 1, 0), n, k)}})
		return pass.Gemm{A: alloc(b, s, rows*k), W: w, C: alloc(b, s, rows*n), Rows: rows}
	}
}

func timedConv(batch, in, channels, out, kernel, stride, right int) func(*testing.B, pass.Device, pass.Session) pass.Op {
	return func(b *testing.B, dev pass.Device, s pass.Session) pass.Op {
		w := load(b, dev, pass.ConvWeights{Weight: randomTensor("w", 1, out, channels, kernel)})
		op := pass.Conv1D{X: alloc(b, s, batch*in*channels), W: w, Batch: batch, In: in, Stride: stride, PadRight: right, PadLeft: right % 64, Padding: pass.PadReflect}
		op.Y = alloc(b, s, batch*op.Steps(in)*out)
		return op
	}
}

func timedLSTM(batch, time, in, hidden, layers, directions int) func(*testing.B, pass.Device, pass.Session) pass.Op {
	return func(b *testing.B, dev pass.Device, s pass.Session) pass.Op {
		c := lstmCase(1, 1, in, hidden, layers, directions)
		op := pass.LSTM{X: alloc(b, s, batch*time*in), W: load(b, dev, c.Params[0].Weights), Y: alloc(b, s, batch*time*directions*hidden), Batch: batch, Time: time}
		n := batch * layers * directions * hidden
		op.H, op.C = alloc(b, s, n), alloc(b, s, n)
		op.H0, op.C0 = op.H, op.C
		return op
	}
}
