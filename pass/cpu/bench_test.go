package cpu_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// open opens a device with the given number of threads, and a session on it.
func open(t testing.TB, threads int) (pass.Device, pass.Session) {
	t.Helper()
	dev, err := cpu.Open(cpu.Config{Threads: threads})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	return dev, ses
}

func random(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// network is the voice activity network Silero with random weights: the smallest that
// must run in real time, many times over.
type network struct {
	stft, conv1, conv2, conv3, conv4, cell, head pass.Param
}

func loadNetwork(t testing.TB, dev pass.Device) (n network) {
	rng := rand.New(rand.NewPCG(1, 2))
	load := func(w pass.Weights) pass.Param {
		p, err := dev.Load(context.Background(), w)
		require.NoError(t, err)
		return p
	}
	tensor := func(shape ...int) pass.Tensor {
		k := 1
		for _, d := range shape[1:] {
			k *= d
		}
		v := random(rng, shape[0]*k)
		for i := range v {
			v[i] /= float32(k)
		}
		return pass.Float32s("w", v, shape...)
	}
	conv := func(out, in, kernel int) pass.Param {
		return load(pass.ConvWeights{Weight: tensor(out, in, kernel), Bias: random(rng, out)})
	}
	n.stft = load(pass.ConvWeights{Weight: tensor(258, 1, 256)})
	n.conv1, n.conv2, n.conv3, n.conv4 = conv(128, 129, 3), conv(64, 128, 3), conv(64, 64, 3), conv(128, 64, 3)
	n.cell = load(pass.LSTMWeights{Layers: [][]pass.LSTMCell{{{Input: tensor(512, 128), Hidden: tensor(512, 128), Bias: random(rng, 512)}}}})
	n.head = load(pass.LinearWeights{Parts: []pass.Tensor{tensor(1, 128)}, Bias: []float32{0}})
	return n
}

// record records chunks of a stream each, one after the other in time or not.
func (n network) record(t testing.TB, ses pass.Session, streams int) (pass.Recording, pass.Input, pass.Output) {
	h, err := ses.Alloc(pass.F32, streams*128)
	require.NoError(t, err)
	c, err := ses.Alloc(pass.F32, streams*128)
	require.NoError(t, err)
	var in pass.Input
	var out pass.Output
	rec, err := ses.Record(context.Background(), pass.RecordOptions{Label: "silero"}, func(p pass.Pass) {
		in = p.Input(pass.F32, streams*576)
		temp := func(n int) pass.View { return p.Temp(pass.F32, streams*n).View() }
		spectrum, bins, a, b, d, e, y, r := temp(4*258), temp(4*129), temp(4*128), temp(2*64), temp(64), temp(128), temp(128), temp(128)
		prob := temp(1)
		p.Do(
			pass.Conv1D{X: in.View(), W: n.stft, Y: spectrum, Batch: streams, In: 576, Stride: 128, PadRight: 64, Padding: pass.PadReflect},
			pass.Magnitude{X: spectrum, Y: bins, Batch: streams, Rows: 4, Cols: 129},
			pass.Conv1D{X: bins, W: n.conv1, Y: a, Batch: streams, In: 4, PadLeft: 1, PadRight: 1, Epilogue: pass.ReLU},
			pass.Conv1D{X: a, W: n.conv2, Y: b, Batch: streams, In: 4, Stride: 2, PadLeft: 1, PadRight: 1, Epilogue: pass.ReLU},
			pass.Conv1D{X: b, W: n.conv3, Y: d, Batch: streams, In: 2, Stride: 2, PadLeft: 1, PadRight: 1, Epilogue: pass.ReLU},
			pass.Conv1D{X: d, W: n.conv4, Y: e, Batch: streams, In: 1, PadLeft: 1, PadRight: 1, Epilogue: pass.ReLU},
			pass.LSTM{X: e, W: n.cell, Y: y, Batch: streams, Time: 1, H0: h.View(), C0: c.View(), H: h.View(), C: c.View()},
			pass.Map{X: y, Y: r, Batch: streams, Rows: 1, Cols: 128, Epilogue: pass.ReLU},
			pass.Gemm{A: r, W: n.head, C: prob, Rows: streams, Epilogue: pass.Sigmoid},
		)
		out = p.Output(prob, streams)
	})
	require.NoError(t, err)
	return rec, in, out
}

// BenchmarkSilero takes a chunk of 32 ms of each stream.
func BenchmarkSilero(b *testing.B) {
	for _, bench := range []struct {
		name             string
		threads, streams int
	}{{"streams=1/threads=1", 1, 1}, {"streams=64/threads=1", 1, 64}, {"streams=64/threads=2", 2, 64}} {
		b.Run(bench.name, func(b *testing.B) {
			dev, ses := open(b, bench.threads)
			rec, in, out := loadNetwork(b, dev).record(b, ses, bench.streams)
			samples := random(rand.New(rand.NewPCG(3, 4)), bench.streams*576)
			prob := make([]float32, bench.streams)
			b.ReportAllocs()
			for b.Loop() {
				run, err := rec.Run(context.Background(), in.F32(samples))
				if err != nil {
					b.Fatal(err)
				}
				if err := run.ReadF32(out, prob); err != nil {
					b.Fatal(err)
				}
				run.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*bench.streams), "µs/chunk")
		})
	}
}

func BenchmarkGemm(b *testing.B) {
	for _, bench := range []struct {
		name             string
		threads, m, n, k int
	}{
		{"1x1024x1024/threads=1", 1, 1, 1024, 1024}, {"4x512x512/threads=1", 1, 4, 512, 512},
		{"128x1024x1024/threads=1", 1, 128, 1024, 1024}, {"128x1024x1024/threads=2", 2, 128, 1024, 1024},
	} {
		b.Run(bench.name, func(b *testing.B) {
			dev, ses := open(b, bench.threads)
			rng := rand.New(rand.NewPCG(5, 6))
			w, err := dev.Load(context.Background(), pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("w", random(rng, bench.n*bench.k), bench.n, bench.k)}})
			require.NoError(b, err)
			var in pass.Input
			rec, err := ses.Record(context.Background(), pass.RecordOptions{}, func(p pass.Pass) {
				in = p.Input(pass.F32, bench.m*bench.k)
				c := p.Temp(pass.F32, bench.m*bench.n)
				p.Do(pass.Gemm{A: in.View(), W: w, C: c.View(), Rows: bench.m})
			})
			require.NoError(b, err)
			a := random(rng, bench.m*bench.k)
			for b.Loop() {
				run, err := rec.Run(context.Background(), in.F32(a))
				if err != nil {
					b.Fatal(err)
				}
				run.Close()
			}
			b.ReportMetric(float64(b.N)*float64(bench.m)*float64(bench.n)*float64(bench.k)/float64(b.Elapsed().Nanoseconds()), "GMAC/s")
		})
	}
}
