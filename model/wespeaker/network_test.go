package wespeaker

import (
	"context"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/frontend"
	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/pass"
)

var small = Config{Mels: 80, Channels: 2, Blocks: [4]int{1, 1, 2, 1}, Width: 5}

// random returns weights of a network.
func random(c Config) undertest.Source {
	s := undertest.Source{}
	norm := func(name string, n int) {
		s.Random(name+".weight", 0.2, 1, n)
		s.Random(name+".bias", 0.1, 0, n)
		s.Random(name+".running_mean", 0.1, 0, n)
		s.Random(name+".running_var", 0.5, 1, n)
	}
	s.Random("resnet.conv1.weight", 0.5, 0, c.Channels, 1, 3, 3)
	norm("resnet.bn1", c.Channels)
	in := c.Channels
	for stage, blocks := range c.Blocks {
		out := c.channels(stage)
		for i := range blocks {
			name := fmt.Sprintf("resnet.layer%d.%d.", stage+1, i)
			s.Random(name+"conv1.weight", 0.4, 0, out, in, 3, 3)
			norm(name+"bn1", out)
			s.Random(name+"conv2.weight", 0.4, 0, out, out, 3, 3)
			norm(name+"bn2", out)
			if in != out {
				s.Random(name+"shortcut.0.weight", 0.8, 0, out, in, 1, 1)
				norm(name+"shortcut.1", out)
			}
			in = out
		}
	}
	s.Random("resnet.seg_1.weight", 0.1, 0, c.Width, c.pooled())
	s.Random("resnet.seg_1.bias", 0.1, 0, c.Width)
	return s
}

func noise(n int) []float32 {
	x := make([]float32, n)
	goldens.Values(x, "noise", uint64(n), 0.3, 0)
	return x
}

func open(t *testing.T, dev pass.Device, c Config, cfg SessionConfig) *Session {
	m, err := Load(t.Context(), dev, random(c), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	s, err := m.NewSession(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// features computes the features of samples.
func features(t *testing.T, dev pass.Device, samples []float32) []float32 {
	w, err := dev.Load(t.Context(), frontend.Kaldi())
	require.NoError(t, err)
	s, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer s.Close()
	var in pass.Input
	var out pass.Output
	rec, err := s.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
		in = p.Input(pass.F32, len(samples))
		n := w.Shape().(pass.MelShape).Frames(len(samples)) * kaldiMels
		y := p.Temp(pass.F32, n).View()
		p.Do(pass.LogMel{X: in.View(), W: w, Y: y, Samples: len(samples)})
		out = p.Output(y, n)
	})
	require.NoError(t, err)
	run, err := rec.Run(t.Context(), in.F32(samples))
	require.NoError(t, err)
	values := make([]float32, out.Len())
	require.NoError(t, run.ReadF32(out, values))
	return values
}

// Windows of any length, in batches, give what each gives on its own, from samples or
// their features, with samples beyond the last frame or without.
func TestWindows(t *testing.T) {
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		one := open(t, dev, small, SessionConfig{Batch: 1, Masks: 1})
		many := open(t, dev, small, SessionConfig{Batch: 4})
		var all []Window
		for _, n := range []int{5000, 5000, 5039, 4999, 400, 559, 5001} {
			all = append(all, Window{Samples: noise(n)})
		}
		got, err := many.Embed(t.Context(), all...)
		require.NoError(t, err)
		require.Len(t, got, len(all))
		for i, w := range all {
			want, err := one.Embed(t.Context(), w)
			require.NoError(t, err)
			require.Len(t, got[i], 1)
			require.Len(t, got[i][0], small.Width)
			require.InDeltaSlice(t, want[0][0], got[i][0], 1e-4, "window %d", i)
			same, err := one.Embed(t.Context(), Window{Features: features(t, dev, w.Samples)})
			require.NoError(t, err)
			require.InDeltaSlice(t, want[0][0], same[0][0], 1e-4, "window %d", i)
		}
		require.NotEqual(t, got[0][0], got[4][0])
	})
}

func TestMasks(t *testing.T) {
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		s := open(t, dev, small, SessionConfig{})
		// 60 frames, 8 columns.
		w := Window{Samples: noise(400 + 59*hop)}
		all, err := s.Embed(t.Context(), w)
		require.NoError(t, err)
		// Masks of any length, taken at floor(i·length/8).
		w.Masks = [][]float32{{1}, {1, 1, 1, 0}, {1, 9, 1, 9, 1, 9, 1, 9, 1, 9, 1, 9, 0, 9, 0, 9}}
		got, err := s.Embed(t.Context(), w)
		require.NoError(t, err)
		require.Len(t, got[0], 3)
		require.InDeltaSlice(t, all[0][0], got[0][0], 1e-5)
		require.InDeltaSlice(t, got[0][1], got[0][2], 1e-5)
		require.NotEqual(t, got[0][0], got[0][1])
		// Embeddings of a mask do not depend on the others.
		w.Masks = [][]float32{{0, 0}, {2, 2, 2, 0}}
		again, err := s.Embed(t.Context(), w)
		require.NoError(t, err)
		require.Len(t, again[0], 2)
		require.InDeltaSlice(t, got[0][1], again[0][1], 1e-5)
		// Nothing: means of 0 and deviations of 1e-5 leave the bias.
		bias, err := random(small)["resnet.seg_1.bias"].Float32s()
		require.NoError(t, err)
		require.InDeltaSlice(t, bias, again[0][0], 1e-3)
	})
}

// Only so many recordings are kept, those that were used last.
func TestRecordings(t *testing.T) {
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		s := open(t, dev, small, SessionConfig{Batch: 1})
		embed := func(frames int) []float32 {
			e, err := s.Embed(t.Context(), Window{Samples: noise(samplesOf(frames))})
			require.NoError(t, err)
			return e[0][0]
		}
		first := embed(1)
		for frames := 2; frames <= maxSizes; frames++ {
			embed(frames)
		}
		kept := s.kept[0]
		embed(1)
		require.Same(t, kept, s.kept[maxSizes-1], "it is there still")
		embed(maxSizes + 1)
		require.Len(t, s.kept, maxSizes)
		for frames := 20; frames < 20+maxSizes; frames++ {
			embed(frames)
		}
		require.Len(t, s.kept, maxSizes)
		require.Equal(t, first, embed(1))
		require.NotSame(t, kept, s.kept[maxSizes-1])
	})
}

func TestOtherSizes(t *testing.T) {
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		c := Config{Mels: 13, Channels: 3, Blocks: [4]int{2, 1, 1, 1}, Width: 4}
		require.Equal(t, 2*24*2, c.pooled())
		s := open(t, dev, c, SessionConfig{})
		e, err := s.Embed(t.Context(), Window{Features: noise(13 * 11)})
		require.NoError(t, err)
		require.Len(t, e[0][0], 4)
		_, err = s.Embed(t.Context(), Window{Samples: noise(1000)})
		require.ErrorContains(t, err, "want features, since the network has 13 mel bins")
	})
	require.Equal(t, 5120, ResNet34().pooled())
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	load := func(ctx context.Context, dev pass.Device, src undertest.Source) (io.Closer, error) {
		return Load(ctx, dev, src, small)
	}
	undertest.Refuses(t, random(small), load)
	dev := &undertest.Counted{Device: undertest.Open(t, "cpu")}
	src := random(small)
	values, err := src["resnet.layer3.0.bn2.running_var"].Float32s()
	require.NoError(t, err)
	values[3] = -1
	src["resnet.layer3.0.bn2.running_var"] = pass.Float32s("", values, len(values))
	_, err = Load(t.Context(), dev, src, small)
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, `wespeaker: weights: tensor "resnet.layer3.0.bn2.running_var": want values of at least 0`)
	require.Zero(t, dev.Held())
	for _, c := range []Config{{}, {0, 1, [4]int{1, 1, 1, 1}, 1}, {1, 0, [4]int{1, 1, 1, 1}, 1}, {1, 1, [4]int{1, 1, 0, 1}, 1}, {1, 1, [4]int{1, 1, 1, 1}, 0},
		{math.MaxInt, 1, [4]int{1, 1, 1, 1}, 1}, {1, math.MaxInt, [4]int{1, 1, 1, 1}, 1}, {1, 1, [4]int{1, 1, 1, math.MaxInt}, 1}, {1, 1, [4]int{1, 1, 1, 1}, math.MaxInt}} {
		_, err := Load(t.Context(), dev, src, c)
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, "wespeaker: config: ")
	}
}

// Checkpoints of WeSpeaker itself have no prefix.
func TestPrefix(t *testing.T) {
	t.Parallel()
	src := undertest.Source{}
	for name, tensor := range random(small) {
		src[name[len("resnet."):]] = tensor
	}
	m, err := Load(t.Context(), undertest.Open(t, "cpu"), src, small)
	require.NoError(t, err)
	require.NoError(t, m.Close())
	delete(src, "layer1.0.conv2.weight")
	_, err = Load(t.Context(), undertest.Open(t, "cpu"), src, small)
	require.ErrorContains(t, err, `tensor "layer1.0.conv2.weight": want shape [2 2 3 3]`)
}

func TestErrors(t *testing.T) {
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		m, err := Load(t.Context(), dev, random(small), small)
		require.NoError(t, err)
		require.Equal(t, small, m.Config())
		for _, cfg := range []SessionConfig{{Batch: -1}, {Batch: maxBatch + 1}, {Masks: -1}, {Masks: maxMasks + 1}} {
			_, err = m.NewSession(t.Context(), cfg)
			require.ErrorIs(t, err, pass.ErrInvalid)
		}
		s, err := m.NewSession(t.Context(), SessionConfig{Masks: 2})
		require.NoError(t, err)
		x, nan := noise(1000), float32(math.NaN())
		for want, w := range map[string]Window{
			"want samples or features, given 0 and 0":       {},
			"want samples or features, given 1000 and 80":   {Samples: x, Features: noise(80)},
			"want 400 to 960399 samples, given 399":         {Samples: noise(399)},
			"want 400 to 960399 samples, given 960400":      {Samples: make([]float32, 960400)},
			"frames of 80 bins, given 81":                   {Features: noise(81)},
			"frames of 80 bins, given 0":                    {Features: []float32{}},
			"frames of 80 bins, given 480080":               {Features: make([]float32, 480080)},
			"value 400: want a finite value, given NaN":     {Samples: append(noise(400), nan)},
			"want at most 2 masks, given 3":                 {Samples: x, Masks: make([][]float32, 3)},
			"mask 1: want at least one weight":              {Samples: x, Masks: [][]float32{{1}, {}}},
			"mask 0: weight 1: want at least 0, given -1":   {Samples: x, Masks: [][]float32{{1, -1}}},
			"mask 0: weight 0: want at least 0, given NaN":  {Samples: x, Masks: [][]float32{{nan}}},
			"mask 0: weight 0: want at least 0, given +Inf": {Samples: x, Masks: [][]float32{{float32(math.Inf(1))}}},
		} {
			_, err = s.Embed(t.Context(), Window{Samples: x}, w)
			require.ErrorIs(t, err, pass.ErrInvalid, want)
			require.ErrorContains(t, err, "wespeaker: embed: window 1: ")
			require.ErrorContains(t, err, want)
		}
		none, err := s.Embed(t.Context())
		require.NoError(t, err)
		require.Empty(t, none)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = s.Embed(ctx, Window{Samples: x})
		require.ErrorIs(t, err, context.Canceled)
		embeddings, err := s.Embed(t.Context(), Window{Samples: x})
		require.NoError(t, err, "after a call that was cancelled")
		ofModel, err := m.Embed(t.Context(), Window{Samples: x})
		require.NoError(t, err)
		require.Less(t, goldens.Error(ofModel[0][0], embeddings[0][0]), 1e-5)
		require.NoError(t, m.Close())
		_, err = s.Embed(t.Context(), Window{Samples: x})
		require.ErrorIs(t, err, pass.ErrClosed)
		_, err = m.NewSession(t.Context(), SessionConfig{})
		require.ErrorIs(t, err, pass.ErrClosed)
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
		require.NoError(t, m.Close())
		require.NoError(t, (*Session)(nil).Close())
		require.NoError(t, (*Model)(nil).Close())
		closed := open(t, dev, small, SessionConfig{})
		_, err = closed.Embed(t.Context(), Window{Samples: x})
		require.NoError(t, err)
		require.NoError(t, closed.Close())
		_, err = closed.Embed(t.Context(), Window{Samples: x})
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
	_, ofModel := m.Embed(ctx)
	_, embed := s.Embed(ctx)
	for _, err := range []error{newSession, ofModel, embed} {
		require.ErrorIs(t, err, pass.ErrInvalid)
	}
	require.NoError(t, m.Close())
	require.NoError(t, s.Close())
}
