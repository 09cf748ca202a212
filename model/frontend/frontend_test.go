package frontend_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/frontend"
	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/pass"
)

// rows calls f with each row of a filter bank.
func rows(w pass.MelWeights, f func(m int, row []float32)) {
	bins := w.FFT/2 + 1
	for m := range w.Mels {
		f(m, w.Bank[m*bins:(m+1)*bins])
	}
}

func sum(row []float32) float64 {
	s := 0.0
	for _, v := range row {
		s += float64(v)
	}
	return s
}

// The sums and the peaks of filter banks are those of independent implementations.
func TestBanks(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]pass.MelWeights{
		"whisper80": frontend.Whisper(80), "whisper128": frontend.Whisper(128),
		"parakeet80": frontend.Parakeet(80), "parakeet128": frontend.Parakeet(128),
		"gigaam64": frontend.GigaAM(), "kaldi80": frontend.Kaldi(),
	} {
		c, err := goldens.Open(filepath.Join("..", "testdata", "goldens", "frontend-"+name))
		require.NoError(t, err)
		sums, err := c.Output("filter_bank_row_sums")
		require.NoError(t, err)
		peaks, err := c.Integers("filter_bank_peak_bins")
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.Len(t, sums, w.Mels, name)
		rows(w, func(m int, row []float32) {
			require.InEpsilon(t, sums[m], sum(row), 5e-7, "%s: row %d", name, m)
			require.Equal(t, peaks[m], int64(slices.Index(row, slices.Max(row))), "%s: row %d", name, m)
		})
	}
}

// A triangle on Slaney's scale has the area of 1 Hz, where it is wide enough to be sampled
// well.
func TestSlaneyAreas(t *testing.T) {
	t.Parallel()
	w := frontend.GE2E()
	require.Equal(t, 40, w.Mels)
	const hz = float64(frontend.SampleRate) / 400 // of a bin
	rows(w, func(m int, row []float32) {
		if m >= 20 {
			require.InDelta(t, 1, sum(row)*hz, 0.03, "row %d", m)
		}
	})
}

func TestShapes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		w               pass.MelWeights
		samples, frames int
	}{
		{frontend.Whisper(80), 480000, 3000},
		{frontend.Whisper(128), 12345, 77}, {frontend.Parakeet(80), 12345, 78}, {frontend.Parakeet(128), 160, 2},
		{frontend.GigaAM(), 12345, 76}, {frontend.GigaAM(), 319, 0}, {frontend.Kaldi(), 12345, 75}, {frontend.Kaldi(), 400, 1},
		{frontend.GE2E(), 12345, 78}, {frontend.GE2E(), 0, 0},
	} {
		s, err := c.w.Shape()
		require.NoError(t, err)
		require.Equal(t, c.frames, s.(pass.MelShape).Frames(c.samples), "%s of %d samples", c.w.Name, c.samples)
		require.Equal(t, 160, c.w.Hop)
	}
}

func TestNumbersOfBins(t *testing.T) {
	t.Parallel()
	for _, mels := range []int{-1, 0, frontend.MaxMels + 1} {
		for _, w := range []pass.MelWeights{frontend.Whisper(mels), frontend.Parakeet(mels)} {
			_, err := w.Shape()
			require.ErrorIs(t, err, pass.ErrInvalid)
		}
	}
	_, err := frontend.Whisper(frontend.MaxMels).Shape()
	require.NoError(t, err)
}
