package pyannote

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/pass"
)

var small = Config{Layers: 1, Hidden: 4, Linear: []int{6}, Classes: 3}

// random returns weights of a small network, with learned frequencies.
func random() undertest.Source {
	s := undertest.Source{}
	norm := func(name string, n int) {
		s.Random(name+".weight", 0.2, 1, n)
		s.Random(name+".bias", 0.1, 0, n)
	}
	norm("sincnet.wav_norm1d", 1)
	s.Random("sincnet.conv1d.0.filterbank.low_hz_", 3000, 0, filters/2, 1)
	s.Random("sincnet.conv1d.0.filterbank.band_hz_", 1000, 0, filters/2, 1)
	for i := range stages {
		norm(fmt.Sprint("sincnet.norm1d.", i), width(i))
	}
	s.Random("sincnet.conv1d.1.weight", 0.1, 0, channels, filters, kernel)
	s.Random("sincnet.conv1d.1.bias", 0.1, 0, channels)
	s.Random("sincnet.conv1d.2.weight", 0.1, 0, channels, channels, kernel)
	s.Random("sincnet.conv1d.2.bias", 0.1, 0, channels)
	h := small.Hidden
	for _, d := range []string{"", "_reverse"} {
		s.Random("lstm.weight_ih_l0"+d, 0.4, 0, 4*h, channels)
		s.Random("lstm.weight_hh_l0"+d, 0.4, 0, 4*h, h)
		s.Random("lstm.bias_ih_l0"+d, 0.1, 0, 4*h)
		s.Random("lstm.bias_hh_l0"+d, 0.1, 0, 4*h)
	}
	s.Random("linear.0.weight", 1, 0, 6, 2*h)
	s.Random("linear.0.bias", 0.1, 0, 6)
	s.Random("classifier.weight", 1, 0, 3, 6)
	s.Random("classifier.bias", 0.1, 0, 3)
	return s
}

func noise(n int) []float32 {
	x := make([]float32, n)
	goldens.Values(x, "noise", uint64(n), 0.3, 0)
	return x
}

func open(t *testing.T, dev pass.Device, cfg SessionConfig) *Session {
	m, err := Load(t.Context(), dev, random(), small)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	s, err := m.NewSession(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestFrames(t *testing.T) {
	t.Parallel()
	require.Equal(t, [4]int{160000, 5325, 1773, 589}, steps(160000))
	require.Equal(t, 0, Frames(-1))
	require.Equal(t, 0, Frames(FrameField-1))
	for i := range 50 {
		require.Equal(t, i+1, Frames(FrameField+i*FrameStep))
		require.Equal(t, i+1, Frames(FrameField+(i+1)*FrameStep-1))
	}
}

// A filter is the mean of cosines, or sines, of all frequencies of its band, under a
// Hamming window.
func TestFilters(t *testing.T) {
	t.Parallel()
	src := random()
	lows, bands := make([]float32, filters/2), make([]float32, filters/2)
	for i := range lows {
		lows[i], bands[i] = float32(i*90), 100
	}
	lows[1], bands[1] = -lows[1], -bands[1] // their magnitudes count
	lows[2], bands[2] = 7000, 5000          // no more than half the sampling rate
	src["sincnet.conv1d.0.filterbank.low_hz_"] = pass.Float32s("", lows, filters/2, 1)
	src["sincnet.conv1d.0.filterbank.band_hz_"] = pass.Float32s("", bands, filters/2, 1)
	w, err := bank(src)
	require.NoError(t, err)
	values, err := w.Weight.Float32s()
	require.NoError(t, err)
	require.Equal(t, []int{80, 1, 251}, w.Weight.Shape)
	for i, want := range map[int][2]float64{0: {50, 200}, 1: {140, 290}, 2: {7050, 8000}, 39: {3560, 3710}} {
		for _, k := range []int{0, 1, 77, 124, 125, 126, 200, 250} {
			const parts = 2000
			var cosine, sine float64
			for j := range parts {
				f := want[0] + (want[1]-want[0])*(float64(j)+0.5)/parts
				s, c := math.Sincos(2 * math.Pi * f * float64(k-125) / SampleRate)
				cosine, sine = cosine+c/parts, sine+s/parts
			}
			hamming := 0.54 - 0.46*math.Cos(2*math.Pi*float64(k)/250)
			require.InDelta(t, cosine*hamming, values[i*taps+k], 1e-6, "cosine %d: tap %d", i, k)
			require.InDelta(t, sine*hamming, values[(40+i)*taps+k], 1e-6, "sine %d: tap %d", i, k)
		}
	}
	lows[5] = 7950
	src["sincnet.conv1d.0.filterbank.low_hz_"] = pass.Float32s("", lows, filters/2, 1)
	_, err = bank(src)
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, "low_hz_")
	require.ErrorContains(t, err, "given 7950 at 5")
}

// A network with its filters expanded is the same network.
func TestExpanded(t *testing.T) {
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		src := random()
		x := noise(5000)
		segment := func() []float32 {
			m, err := Load(t.Context(), dev, src, small)
			require.NoError(t, err)
			defer m.Close()
			s, err := m.NewSession(t.Context(), SessionConfig{Samples: len(x)})
			require.NoError(t, err)
			defer s.Close()
			y, err := s.Segment(t.Context(), x)
			require.NoError(t, err)
			return y[0]
		}
		want := segment()
		w, err := bank(src)
		require.NoError(t, err)
		delete(src, "sincnet.conv1d.0.filterbank.low_hz_")
		delete(src, "sincnet.conv1d.0.filterbank.band_hz_")
		src["sincnet.conv1d.0.weight"] = w.Weight
		require.Equal(t, want, segment())
	})
}

// Windows of any lengths, in batches, give what each gives on its own in a session of just
// its length.
func TestBatches(t *testing.T) {
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		many := open(t, dev, SessionConfig{Batch: 5, Samples: 6000})
		var all [][]float32
		for _, n := range []int{6000, FrameField, 5999, 1261, 3000, 6000, 2500} {
			all = append(all, noise(n))
		}
		for range 2 {
			got, err := many.Segment(t.Context(), all...)
			require.NoError(t, err)
			require.Len(t, got, len(all))
			for i, x := range all {
				one := open(t, dev, SessionConfig{Batch: 1, Samples: len(x)})
				want, err := one.Segment(t.Context(), x)
				require.NoError(t, err)
				require.Len(t, got[i], Frames(len(x))*small.Classes)
				require.InDeltaSlice(t, want[0], got[i], 2e-5, "window %d", i)
				for row := range slices.Chunk(got[i], small.Classes) {
					sum := 0.0
					for _, v := range row {
						sum += math.Exp(float64(v))
					}
					require.InDelta(t, 1, sum, 1e-5)
				}
			}
		}
		require.LessOrEqual(t, len(many.sizes), 3)
	})
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	undertest.Refuses(t, random(), func(ctx context.Context, dev pass.Device, src undertest.Source) (io.Closer, error) {
		return Load(ctx, dev, src, small)
	})
	for _, c := range []Config{
		{}, {0, 1, nil, 1}, {1, 0, nil, 1}, {1, 1, nil, 0}, {1, 1, []int{0}, 1},
		{maxLayers + 1, 1, nil, 1}, {1, math.MaxInt, nil, 1}, {1, 1, make([]int, maxLayers+1), 1}, {1, 1, nil, math.MaxInt},
	} {
		_, err := Load(t.Context(), undertest.Open(t, "cpu"), undertest.Source{}, c)
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, "pyannote: config: ")
	}
}

func TestErrors(t *testing.T) {
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		cfg := small
		cfg.Linear = slices.Clone(small.Linear)
		m, err := Load(t.Context(), dev, random(), cfg)
		require.NoError(t, err)
		cfg.Linear[0]++ // the caller's
		require.Equal(t, small, m.Config())
		for _, cfg := range []SessionConfig{{Batch: -1}, {Batch: maxBatch + 1}, {Samples: FrameField - 1}, {Samples: maxSamples + 1}} {
			_, err = m.NewSession(t.Context(), cfg)
			require.ErrorIs(t, err, pass.ErrInvalid)
		}
		s, err := m.NewSession(t.Context(), SessionConfig{Samples: 2000})
		require.NoError(t, err)
		for _, n := range []int{0, FrameField - 1, 2001} {
			_, err = s.Segment(t.Context(), noise(2000), noise(n))
			require.ErrorIs(t, err, pass.ErrInvalid)
			require.ErrorContains(t, err, fmt.Sprintf("window 1: want 991 to 2000 samples, given %d", n))
		}
		x := noise(2000)
		x[7] = float32(math.Inf(1))
		_, err = s.Segment(t.Context(), x)
		require.ErrorContains(t, err, "pyannote: segment: window 0: sample 7: want a finite value, given +Inf")
		none, err := s.Segment(t.Context())
		require.NoError(t, err)
		require.Empty(t, none)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = s.Segment(ctx, noise(2000))
		require.ErrorIs(t, err, context.Canceled)
		classes, err := s.Segment(t.Context(), noise(2000))
		require.NoError(t, err, "after a call that was cancelled")
		ofModel, err := m.Segment(t.Context(), noise(2000))
		require.NoError(t, err)
		require.Less(t, goldens.Error(ofModel[0], classes[0]), 1e-5)
		require.NoError(t, m.Close())
		_, err = s.Segment(t.Context(), noise(2000))
		require.ErrorIs(t, err, pass.ErrClosed)
		_, err = m.NewSession(t.Context(), SessionConfig{})
		require.ErrorIs(t, err, pass.ErrClosed)
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
		require.NoError(t, m.Close())
		require.NoError(t, (*Session)(nil).Close())
		require.NoError(t, (*Model)(nil).Close())
		closed := open(t, dev, SessionConfig{})
		require.NoError(t, closed.Close())
		_, err = closed.Segment(t.Context(), noise(2000))
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
	_, ofModel := m.Segment(ctx)
	_, segment := s.Segment(ctx)
	for _, err := range []error{newSession, ofModel, segment} {
		require.ErrorIs(t, err, pass.ErrInvalid)
	}
	require.NoError(t, m.Close())
	require.NoError(t, s.Close())
}
