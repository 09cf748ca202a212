package frontend

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWindows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		got, want []float32
	}{
		{"periodic Hann", hannPeriodic(4), []float32{0, 0.5, 1, 0.5}},
		{"symmetric Hann", hannSymmetric(5), []float32{0, 0.5, 1, 0.5, 0}},
		{"symmetric Hamming", hammingSymmetric(3), []float32{0.08, 1, 0.08}},
		{"centred", centred([]float32{1, 2, 3}, 7), []float32{0, 0, 1, 2, 3, 0, 0}},
	} {
		require.InDeltaSlice(t, c.want, c.got, 1e-7, c.name)
	}
}

func TestScales(t *testing.T) {
	t.Parallel()
	// Values of the definitions: 1 kHz is 15 on Slaney's scale, 6.4 kHz 27 more, and about
	// 1000 on the others.
	require.InDelta(t, 7.5, slaneyMel(500), 1e-12)
	require.InDelta(t, 15, slaneyMel(1000), 1e-12)
	require.InDelta(t, 42, slaneyMel(6400), 1e-12)
	require.InDelta(t, 999.9855, htkMel(1000), 1e-4)
	require.InDelta(t, 999.9907, kaldiMel(1000), 1e-3)
	for _, hz := range []float64{0, 20, 999, 1001, 8000} {
		require.InDelta(t, hz, slaneyFrequency(slaneyMel(hz)), 1e-9)
		require.InDelta(t, hz, htkFrequency(htkMel(hz)), 1e-9)
	}
}
