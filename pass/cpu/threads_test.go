package cpu_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// mixed returns ops that are each worth sharing between threads, and their outputs.
func (r *rig) mixed() (ops []pass.Op, outputs []*area) {
	output := func(batch, rows, cols int) pass.View {
		outputs = append(outputs, r.output(batch, rows, cols))
		return outputs[len(outputs)-1].View
	}
	c := r.attentionCase(1, 150, 150, 3, 20)
	c.q2, c.p = random(r.rng, 150*60), random(r.rng, 299*60)
	relative, o := r.attention(c)
	outputs = append(outputs, o)
	cached := []pass.Op{relative}
	for _, t := range []pass.DType{pass.F32, pass.F16} {
		cache, err := r.ses.NewCache(pass.CacheConfig{Heads: 4, HeadDim: 36, Capacity: 300, Type: t})
		require.NoError(r, err)
		keys := r.floats(1, 290, 144, random(r.rng, 290*144))
		cached = append(cached,
			pass.Append{K: keys.View, V: keys.View, Cache: cache, Rows: 290},
			pass.Attend{Q: r.floats(1, 70, 144, random(r.rng, 70*144)).View, O: output(1, 70, 144), Cache: cache, Queries: 70, Keys: pass.Const(290), Causal: true})
	}
	image, y := r.conv2D(r.conv2DCase(2, 15, 40, 24, 70, 3, 2))
	outputs = append(outputs, y)
	glu := pass.ConvGLUWeights{Weight: pass.Float32s("w", random(r.rng, 64*9), 64, 9), Gain: random(r.rng, 64), Shift: random(r.rng, 64), Normalised: true}
	depth := pass.DepthwiseWeights{Weight: pass.Float32s("w", random(r.rng, 32*9), 32, 3, 3), First: pass.Float32s("f", random(r.rng, 32*9), 32, 3, 3)}
	mel := pass.MelWeights{FFT: 400, Hop: 160, Mels: 20, Window: r.window(400), Bank: r.bank(20, 201), Log: pass.MelLog10, Min: 1e-10, Normalise: pass.MelWhisper}
	sinc := pass.ConvWeights{Weight: pass.Float32s("w", random(r.rng, 40*100), 40, 1, 100)}
	return append(cached, image,
		pass.ConvGLU{X: r.floats(1, 300, 128, random(r.rng, 300*128)).View, W: r.load(glu), Y: output(1, 300, 64), Rows: 300},
		pass.DepthwiseConv2D{X: r.floats(1, 200, 40, random(r.rng, 8000)).View, W: r.load(depth), Y: output(1, 50, 320), Time: 200, Frequency: 40},
		pass.LogMel{X: r.floats(1, 1, 16000, random(r.rng, 16000)).View, W: r.load(mel), Y: output(1, 98, 20), Samples: 16000},
		pass.Conv1D{X: r.floats(1, 6000, 1, random(r.rng, 6000)).View, W: r.load(sinc), Y: output(1, 197, 40), In: 6000, Stride: 10, Abs: true, Pool: 3},
	), outputs
}

func TestSameBitsOfAllOps(t *testing.T) {
	t.Parallel()
	var want [][]uint32
	for _, threads := range []int{1, 2, 5} {
		dev, ses := open(t, threads)
		r := &rig{t, dev, ses, rand.New(rand.NewPCG(21, 22))}
		ops, outputs := r.mixed()
		r.do(ops...)
		for i, o := range outputs {
			got := o.result()
			require.NotContains(t, got, uint32(around), "output %d", i)
			if threads == 1 {
				want = append(want, got)
			}
			require.Equal(t, want[i], got, "output %d with %d threads", i, threads)
		}
	}
}

func TestReplayOfAllOpsAllocatesNothing(t *testing.T) {
	dev, ses := open(t, 2)
	r := &rig{t, dev, ses, rand.New(rand.NewPCG(21, 22))}
	ops, _ := r.mixed()
	rec, err := ses.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) { p.Do(ops...) })
	require.NoError(t, err)
	defer rec.Close()
	requireNoAllocs(t, 10, func() {
		run, err := rec.Run(t.Context())
		require.NoError(t, err)
		run.Close()
	})
}

// Long ops are cut in pieces, also where their parts are not ops of their own.
func TestLongOpsInPieces(t *testing.T) {
	t.Parallel()
	dev, ses := open(t, 1)
	load := func(w pass.Weights) pass.Param {
		p, err := dev.Load(t.Context(), w)
		require.NoError(t, err)
		return p
	}
	mel := load(pass.MelWeights{FFT: 4096, Hop: 16, Mels: 2, Window: make([]float32, 4096), Bank: make([]float32, 2*2049), Normalise: pass.MelMean})
	const samples = 16*5000 + 4096
	for _, c := range []struct {
		name string
		do   func(p pass.Pass)
		want string
	}{
		{"attention", func(p pass.Pass) {
			x := p.Input(pass.F32, 3000*64).View()
			p.Do(pass.Attention{Q: x, K: x, V: x, O: p.Temp(pass.F32, 3000*64).View(), Queries: 3000, Keys: 3000, Heads: 1, HeadDim: 64})
		}, " 12 pieces"}, // 2.3 GFLOP at 4 GFLOP/s in 47 blocks
		{"logmel", func(p pass.Pass) {
			p.Do(pass.LogMel{X: p.Input(pass.F32, samples).View(), W: mel, Y: p.Temp(pass.F32, 5001*2).View(), Samples: samples})
		}, " 8 pieces"}, // 1.3 GFLOP, and the mean
	} {
		rec, err := ses.Record(t.Context(), pass.RecordOptions{}, c.do)
		require.NoError(t, err)
		var b bytes.Buffer
		require.NoError(t, rec.Dump(&b))
		require.Contains(t, b.String(), c.want, c.name)
		require.NoError(t, rec.Close())
	}
}
