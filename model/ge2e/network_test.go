package ge2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/model/safetensors"
	"github.com/tandem-gpu/tandem/pass"
)

var small = Config{Layers: 2, Hidden: 8, Width: 5}

// random returns weights of a network; those of the first layer's inputs up to a scale.
func random(c Config, scale float32) undertest.Source {
	s := undertest.Source{}
	in := mels
	for l := range c.Layers {
		s.Random(fmt.Sprint("lstm.weight_ih_l", l), scale, 0, 4*c.Hidden, in)
		s.Random(fmt.Sprint("lstm.weight_hh_l", l), 0.5, 0, 4*c.Hidden, c.Hidden)
		s.Random(fmt.Sprint("lstm.bias_ih_l", l), 0.2, 0, 4*c.Hidden)
		s.Random(fmt.Sprint("lstm.bias_hh_l", l), 0.2, 0, 4*c.Hidden)
		in, scale = c.Hidden, 0.8
	}
	s.Random("linear.weight", 1, 0, c.Width, c.Hidden)
	s.Random("linear.bias", 0.5, 0, c.Width)
	return s
}

func noise(n int, scale float32) []float32 {
	x := make([]float32, n)
	goldens.Values(x, "noise", 1, scale, 0)
	return x
}

func open(t *testing.T, dev pass.Device, src undertest.Source, c Config, cfg SessionConfig) *Session {
	m, err := Load(t.Context(), dev, src, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	s, err := m.NewSession(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// naive computes in float64 what one window of features sounds like.
func naive(t *testing.T, src undertest.Source, c Config, x []float32) (e []float64, gate float64) {
	values := func(name ...any) []float32 {
		v, err := src[fmt.Sprint(name...)].Float32s()
		require.NoError(t, err)
		return v
	}
	sigmoid := func(v float64) float64 { return 0.5 + 0.5*math.Tanh(v/2) }
	rows := make([][]float64, windowFrames)
	for i := range rows {
		for _, v := range x[i*mels : (i+1)*mels] {
			rows[i] = append(rows[i], float64(v))
		}
	}
	for l := range c.Layers {
		wx, wh := values("lstm.weight_ih_l", l), values("lstm.weight_hh_l", l)
		bx, bh := values("lstm.bias_ih_l", l), values("lstm.bias_hh_l", l)
		h, cell := make([]float64, c.Hidden), make([]float64, c.Hidden)
		for i, row := range rows {
			g := make([]float64, 4*c.Hidden)
			for j := range g {
				g[j] = float64(bx[j]) + float64(bh[j])
				for k, v := range row {
					g[j] += float64(wx[j*len(row)+k]) * v
				}
				for k, v := range h {
					g[j] += float64(wh[j*c.Hidden+k]) * v
				}
				gate = max(gate, math.Abs(g[j]))
			}
			next := make([]float64, c.Hidden)
			for k := range next {
				cell[k] = sigmoid(g[c.Hidden+k])*cell[k] + sigmoid(g[k])*math.Tanh(g[2*c.Hidden+k])
				next[k] = sigmoid(g[3*c.Hidden+k]) * math.Tanh(cell[k])
			}
			h, rows[i] = next, next
		}
	}
	w, b := values("linear.weight"), values("linear.bias")
	square := 0.0
	for i := range c.Width {
		sum := float64(b[i])
		for k, v := range rows[windowFrames-1] {
			sum += float64(w[i*c.Hidden+k]) * v
		}
		e = append(e, max(sum, 0))
		square += e[i] * e[i]
	}
	for i := range e {
		e[i] /= math.Sqrt(square)
	}
	return e, gate
}

// The network, also where sums of gates are so large that exponentials of them would
// overflow.
func TestNetwork(t *testing.T) {
	for _, scale := range []float32{0.3, 60} {
		src := random(small, scale)
		undertest.Each(t, func(t *testing.T, dev pass.Device) {
			var mel []float32
			s := open(t, dev, src, small, SessionConfig{Batch: 4, Trace: func(name string, v []float32) {
				if name == "mel" {
					mel = append(mel, v...)
				}
			}})
			u, err := s.Embed(t.Context(), noise(3*windowSamples, 1))
			require.NoError(t, err)
			require.Len(t, u.Windows, 5)
			for i, w := range u.Windows {
				want, gate := naive(t, src, small, mel[i*windowFrames*mels:(i+1)*windowFrames*mels])
				require.Equal(t, scale > 1, gate > 900, "gates up to %v", gate)
				for k := range want {
					require.InDelta(t, want[k], w.Embedding[k], 2e-5, "window %d: element %d", i, k)
				}
			}
			require.InDelta(t, 1, Cosine(u.Embedding, u.Embedding), 1e-6)
		})
	}
}

// Windows do not depend on those beside them in a batch, nor on what was computed before.
func TestBatches(t *testing.T) {
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		src := random(small, 1)
		samples := noise(100000, 0.5)
		one := open(t, dev, src, small, SessionConfig{Batch: 1})
		many := open(t, dev, src, small, SessionConfig{Batch: 5})
		want, err := one.Embed(t.Context(), samples)
		require.NoError(t, err)
		require.Len(t, one.sizes, 1)
		for range 2 {
			got, err := many.Embed(t.Context(), samples)
			require.NoError(t, err)
			require.Len(t, got.Windows, len(want.Windows))
			for i, w := range want.Windows {
				require.Equal(t, w.Start, got.Windows[i].Start)
				require.InDeltaSlice(t, w.Embedding, got.Windows[i].Embedding, 1e-6)
			}
		}
		require.LessOrEqual(t, len(many.sizes), 3)
		// A window sounds the same on its own, but for the samples around it.
		start := want.Windows[2].Start
		alone, err := one.Embed(t.Context(), samples[start:start+windowSamples])
		require.NoError(t, err)
		require.Len(t, alone.Windows, 1)
		require.Greater(t, Cosine(alone.Embedding, want.Windows[2].Embedding), 0.99)
	})
}

func TestStarts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		samples, windows int
	}{
		// One more window when three quarters of it, 19200 samples, lie inside.
		{1, 1}, {25600, 1}, {77*160 + 19199, 1}, {77*160 + 19200, 2}, {154*160 + 19199, 2}, {154*160 + 19200, 3},
		{176000, 13}, {47840, 3}, {486720, 38},
	} {
		all := starts(c.samples)
		require.Len(t, all, c.windows, "%d samples", c.samples)
		for i, s := range all {
			require.Equal(t, 77*i, s)
		}
	}
}

func TestGain(t *testing.T) {
	t.Parallel()
	require.Equal(t, 1.0, gain([]float32{0, 0}))
	require.Equal(t, 1.0, gain([]float32{1, -1}))
	require.InDelta(t, 3.16227766, gain([]float32{0.01, -0.01, 0.01}), 1e-6)
	// So quiet that squares underflow in float32.
	require.InEpsilon(t, math.Pow(10, 28.5), gain([]float32{1e-30, -1e-30}), 1e-6)
}

// A quiet clip sounds like a louder one.
func TestLevel(t *testing.T) {
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		s := open(t, dev, random(small, 1), small, SessionConfig{})
		samples := noise(30000, float32(loudness))
		want, err := s.Embed(t.Context(), samples)
		require.NoError(t, err)
		for i := range samples {
			samples[i] /= 1000
		}
		got, err := s.Embed(t.Context(), samples)
		require.NoError(t, err)
		require.InDeltaSlice(t, want.Embedding, got.Embedding, 1e-4)
		silence, err := s.Embed(t.Context(), make([]float32, 5))
		require.NoError(t, err)
		require.Len(t, silence.Windows, 1)
		for _, v := range silence.Embedding {
			require.False(t, math.IsNaN(float64(v)))
		}
	})
}

func TestMean(t *testing.T) {
	t.Parallel()
	require.Equal(t, []float32{0.6, 0.8}, mean([][]float32{{0.1, 0.4}, {0.5, 0.4}}, 2))
	require.Equal(t, []float32{0, 0}, mean([][]float32{{0, 0}}, 2))
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	undertest.Refuses(t, random(small, 1), func(ctx context.Context, dev pass.Device, src undertest.Source) (io.Closer, error) {
		return Load(ctx, dev, src, small)
	})
	for _, c := range []Config{{}, {0, 1, 1}, {1, 0, 1}, {1, 1, -1}, {maxLayers + 1, 1, 1}, {1, math.MaxInt, 1}, {1, 1, math.MaxInt}} {
		_, err := Load(t.Context(), undertest.Open(t, "cpu"), undertest.Source{}, c)
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, "ge2e: config: ")
	}
}

// A file that ends early, or is of another size than was asked for.
func TestFiles(t *testing.T) {
	t.Parallel()
	src := random(small, 1)
	var tensors []safetensors.Tensor
	for _, name := range src.Names() {
		tensors = append(tensors, safetensors.Of(src[name]))
	}
	var b bytes.Buffer
	require.NoError(t, safetensors.Write(&b, tensors, nil))
	f, err := safetensors.New(bytes.NewReader(b.Bytes()), int64(b.Len()))
	require.NoError(t, err)
	dev := &undertest.Counted{Device: undertest.Open(t, "cpu")}
	m, err := Load(t.Context(), dev, f, small)
	require.NoError(t, err)
	require.NoError(t, m.Close())
	_, err = Load(t.Context(), dev, f, Resemblyzer())
	require.ErrorContains(t, err, `ge2e: weights: tensor "lstm.weight_ih_l0": want shape [1024 40], given [32 40]`)
	// The file lost its second half after its header was read.
	f, err = safetensors.New(bytes.NewReader(b.Bytes()[:b.Len()/2]), int64(b.Len()))
	require.NoError(t, err)
	_, err = Load(t.Context(), dev, f, small)
	require.ErrorIs(t, err, io.EOF)
	require.ErrorContains(t, err, "ge2e: ")
	require.Zero(t, dev.Held())
}

func TestErrors(t *testing.T) {
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		m, err := Load(t.Context(), dev, random(small, 1), small)
		require.NoError(t, err)
		require.Equal(t, small, m.Config())
		for _, batch := range []int{-1, maxBatch + 1} {
			_, err = m.NewSession(t.Context(), SessionConfig{Batch: batch})
			require.ErrorIs(t, err, pass.ErrInvalid)
		}
		s, err := m.NewSession(t.Context(), SessionConfig{})
		require.NoError(t, err)
		_, err = s.Embed(t.Context(), nil)
		require.ErrorIs(t, err, pass.ErrInvalid)
		_, err = s.Embed(t.Context(), []float32{0, float32(math.NaN())})
		require.ErrorContains(t, err, "ge2e: embed: sample 1: want a finite value, given NaN")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = s.Embed(ctx, make([]float32, 100))
		require.ErrorIs(t, err, context.Canceled)
		silence, err := s.Embed(t.Context(), make([]float32, 100))
		require.NoError(t, err, "after a call that was cancelled")
		ofModel, err := m.Embed(t.Context(), make([]float32, 100))
		require.NoError(t, err)
		require.Equal(t, silence, ofModel)
		require.NoError(t, m.Close())
		_, err = s.Embed(t.Context(), make([]float32, 100))
		require.ErrorIs(t, err, pass.ErrClosed)
		_, err = m.NewSession(t.Context(), SessionConfig{})
		require.ErrorIs(t, err, pass.ErrClosed)
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
		require.NoError(t, m.Close())
		require.NoError(t, (*Session)(nil).Close())
		require.NoError(t, (*Model)(nil).Close())
	})
}

func TestClosedSession(t *testing.T) {
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		s := open(t, dev, random(small, 1), small, SessionConfig{})
		_, err := s.Embed(t.Context(), make([]float32, 100))
		require.NoError(t, err)
		require.NoError(t, s.Close())
		_, err = s.Embed(t.Context(), make([]float32, 100))
		require.ErrorIs(t, err, pass.ErrClosed)
	})
}

// Values that were not made by this package's functions are refused, not followed.
func TestZeroValues(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var m Model
	var s Session
	_, newSession := m.NewSession(ctx, SessionConfig{})
	_, ofModel := m.Embed(ctx, make([]float32, 100))
	_, embed := s.Embed(ctx, make([]float32, 100))
	for _, err := range []error{newSession, ofModel, embed} {
		require.ErrorIs(t, err, pass.ErrInvalid)
	}
	require.NoError(t, m.Close())
	require.NoError(t, s.Close())
}
