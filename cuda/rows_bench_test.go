package cuda

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// A rowTiming is an op that hardly computes, at a size that networks have: what counts is
// how fast it moves memory.
type rowTiming struct {
	name  string
	times int // in one recording, one after the other
	make  func(m *rowMaker) pass.Op
}

// A rowMaker makes what ops need, on a device and in a session.
type rowMaker struct {
	b   *testing.B
	dev pass.Device
	s   pass.Session
}

func (m *rowMaker) floats(n int) pass.View {
	x, err := m.s.Alloc(pass.F32, n)
	require.NoError(m.b, err)
	return x.View()
}

func (m *rowMaker) words(n int) pass.View {
	x, err := m.s.Alloc(pass.U32, n)
	require.NoError(m.b, err)
	return x.View()
}

func (m *rowMaker) load(w pass.Weights) pass.Param {
	p, err := m.dev.Load(context.Background(), w)
	require.NoError(m.b, err)
	return p
}

func (m *rowMaker) norm(n int) pass.Param {
	return m.load(pass.NormWeights{Gain: make([]float32, n), Bias: make([]float32, n)})
}

func (m *rowMaker) mel(user string, batch, samples int) pass.Op {
	w := cases.MelUsers()[user]
	p := m.load(w)
	frames := p.Shape().(pass.MelShape).Frames(samples)
	return pass.LogMel{X: m.floats(batch * samples), W: p, Y: m.floats(batch * frames * w.Mels), Batch: batch, Samples: samples}
}

// BenchmarkRows times ops on the GPU, many in one graph, each of which waits for the one
// before it: one alone has a launch of its own.
func BenchmarkRows(b *testing.B) {
	if !onDevice() {
		b.Skip("measures a GPU: TANDEM_DEVICES=cuda")
	}
	ctx := context.Background()
	dev, err := Open(ctx, Config{})
	require.NoError(b, err)
	defer dev.Close()
	for _, r := range rowTimings() {
		b.Run(r.name, func(b *testing.B) {
			s, err := dev.NewSession(pass.SessionConfig{})
			require.NoError(b, err)
			defer s.Close()
			op := r.make(&rowMaker{b, dev, s})
			checked, err := pass.Check(op)
			require.NoError(b, err)
			rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
				for range r.times {
					p.Do(op)
				}
			})
			require.NoError(b, err)
			for range 20 { // an idle card runs slowly
				_, err = rec.Run(ctx)
				require.NoError(b, err)
			}
			for b.Loop() {
				_, err := rec.Run(ctx)
				require.NoError(b, err)
			}
			seconds := b.Elapsed().Seconds() / float64(b.N*r.times)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(seconds*1e6, "us")
			b.ReportMetric(checked.Cost.Bytes/seconds/1e9, "GB/s")
		})
	}
}

func rowTimings() []rowTiming {
	return []rowTiming{
		{"layernorm/1500x1280", 500, func(m *rowMaker) pass.Op {
			return pass.LayerNorm{X: m.floats(1500 * 1280), Y: m.floats(1500 * 1280), W: m.norm(1280), Rows: 1500, Cols: 1280}
		}},
		{"layernorm/1x1280", 500, func(m *rowMaker) pass.Op {
			return pass.LayerNorm{X: m.floats(1280), Y: m.floats(1280), W: m.norm(1280), Rows: 1, Cols: 1280}
		}},
		{"layernorm/1500x768-rotated", 500, func(m *rowMaker) pass.Op {
			n := 1500 * 768
			return pass.LayerNorm{X: m.floats(n), Y: m.floats(n), Rotated: m.floats(n), W: m.norm(768), Rows: 1500, Cols: 768, Heads: 16,
				Table: m.load(pass.RopeWeights{Positions: 1500, Rot: 48, Base: 5000})}
		}},
		{"layernorm/12000x1280", 100, func(m *rowMaker) pass.Op {
			return pass.LayerNorm{X: m.floats(12000 * 1280), Y: m.floats(12000 * 1280), W: m.norm(1280), Rows: 12000, Cols: 1280}
		}},
		{"groupnorm/2499x288", 500, func(m *rowMaker) pass.Op {
			return pass.GroupNorm{X: m.floats(2499 * 288), Y: m.floats(2499 * 288), W: m.norm(288), Rows: 2499, Cols: 288}
		}},
		{"poolnorm/15975x80-abs-3", 300, func(m *rowMaker) pass.Op {
			return pass.PoolNorm{X: m.floats(15975 * 80), Y: m.floats(5325 * 80), W: m.norm(80), Rows: 15975, Cols: 80, Abs: true, Pool: 3, Epilogue: pass.Leaky(0.01)}
		}},
		{"poolnorm/160000x1", 500, func(m *rowMaker) pass.Op {
			return pass.PoolNorm{X: m.floats(160000), Y: m.floats(160000), W: m.norm(1), Rows: 160000, Cols: 1}
		}},
		{"l2norm/1500x256", 500, func(m *rowMaker) pass.Op {
			return pass.L2Norm{X: m.floats(1500 * 256), Y: m.floats(1500 * 256), Rows: 1500, Cols: 256}
		}},
		{"softmax/12000x1500", 100, func(m *rowMaker) pass.Op {
			return pass.Softmax{X: m.floats(12000 * 1500), Y: m.floats(12000 * 1500), Rows: 12000, Cols: 1500}
		}},
		{"softmax/1x51865", 500, func(m *rowMaker) pass.Op {
			return pass.Softmax{X: m.floats(51865), Y: m.floats(51865), Rows: 1, Cols: 51865}
		}},
		{"logsoftmax/18848x7", 500, func(m *rowMaker) pass.Op {
			return pass.LogSoftmax{X: m.floats(18848 * 7), Y: m.floats(18848 * 7), Rows: 18848, Cols: 7}
		}},
		{"argmax/1x51865", 500, func(m *rowMaker) pass.Op {
			return pass.Argmax{X: m.floats(51865), IDs: m.words(1), Rows: 1, Cols: 51865}
		}},
		{"argmax/32x51865", 300, func(m *rowMaker) pass.Op {
			return pass.Argmax{X: m.floats(32 * 51865), IDs: m.words(32), Rows: 32, Cols: 51865}
		}},
		{"rope/1500-32x64", 500, func(m *rowMaker) pass.Op {
			return pass.Rope{X: m.floats(1500 * 32 * 64), Table: m.load(pass.RopeWeights{Positions: 1500, Rot: 64, Base: 10000}), Rows: 1500, Heads: 32, HeadDim: 64}
		}},
		{"swiglu/1500x4096", 200, func(m *rowMaker) pass.Op {
			return pass.SwiGLU{X: m.floats(1500 * 8192), Y: m.floats(1500 * 4096), Rows: 1500, Cols: 4096}
		}},
		{"glu/1500x1024", 500, func(m *rowMaker) pass.Op {
			return pass.GLU{X: m.floats(1500 * 2048), Y: m.floats(1500 * 1024), Rows: 1500, Cols: 1024}
		}},
		{"gelu/1500x5120", 300, func(m *rowMaker) pass.Op {
			return pass.Map{X: m.floats(1500 * 5120), Y: m.floats(1500 * 5120), Rows: 1500, Cols: 5120, Epilogue: pass.GELU}
		}},
		{"add/1500x1280", 500, func(m *rowMaker) pass.Op {
			a := m.floats(1500 * 1280)
			return pass.Add{A: a, B: m.floats(1500 * 1280), Y: a, Rows: 1500, Cols: 1280}
		}},
		{"copy/256MiB", 20, func(m *rowMaker) pass.Op {
			return pass.Copy{From: m.floats(64 << 20), To: m.floats(64 << 20), Rows: 1, Cols: 64 << 20}
		}},
		{"permute/998x80-to-80x998", 500, func(m *rowMaker) pass.Op {
			return pass.Permute{X: m.floats(32 * 998 * 80), Y: m.floats(32 * 998 * 80), Dims: [4]int{32, 1, 998, 80}, Order: [4]int{0, 1, 3, 2}}
		}},
		{"statspool/32-10x125x256-3", 100, func(m *rowMaker) pass.Op {
			return pass.StatsPool{X: m.floats(32 * 1250 * 256), Masks: m.floats(32 * 3 * 589), Y: m.floats(32 * 3 * 5120), Batch: 32, Height: 10, Width: 125, Channels: 256, Count: 3, Frames: 589}
		}},
		{"embed/448x1280-F16", 500, func(m *rowMaker) pass.Op {
			w := m.load(pass.LinearWeights{Parts: []pass.Tensor{cases.Encode("w", pass.F16, make([]float32, 51865*1280), 51865, 1280)}})
			return pass.Embed{IDs: m.words(448), Table: w, Out: m.floats(448 * 1280), Rows: 448}
		}},
		{"logmel/whisper-30s", 200, func(m *rowMaker) pass.Op { return m.mel("whisper", 1, 480_000) }},
		{"logmel/parakeet-30s", 200, func(m *rowMaker) pass.Op { return m.mel("parakeet", 1, 480_000) }},
		{"logmel/kaldi-10s-x32", 50, func(m *rowMaker) pass.Op { return m.mel("kaldi", 32, 160_000) }},
	}
}
