package goldens_test

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/frontend"
	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/pass"
)

// frontEnd makes the features of all clips of a case, and what it says about the filter
// bank.
func frontEnd(b *bench) goldens.Results {
	var config struct {
		Mels        int
		Window, Log string
	}
	require.NoError(b, b.Configuration(&config))
	var w pass.MelWeights
	clipped := func(samples []float32) []float32 { return samples }
	switch { // by what the case says of it, since names may be any
	case strings.HasPrefix(config.Window, "hann periodic 400") && strings.HasPrefix(config.Log, "log10"):
		w, clipped = frontend.Whisper(config.Mels), func(samples []float32) []float32 {
			const n = 30 * frontend.SampleRate
			samples = samples[:min(len(samples), n)]
			return append(slices.Clip(samples), make([]float32, n-len(samples))...)
		}
	case strings.HasPrefix(config.Window, "hann symmetric 400"):
		w = frontend.Parakeet(config.Mels)
	case strings.HasPrefix(config.Window, "hann periodic 320"):
		w = frontend.GigaAM()
	case strings.HasPrefix(config.Window, "hamming symmetric 400"):
		w = frontend.Kaldi()
	case strings.HasPrefix(config.Window, "hann periodic 400") && config.Log == "none":
		w = frontend.GE2E()
	default:
		b.Fatalf("%s: no front end with the window %q and the logarithm %q", b.Case.Name, config.Window, config.Log)
	}
	require.Equal(b, config.Mels, w.Mels)
	param := b.load(w)
	all := goldens.Results{}
	for _, clip := range b.Audio {
		samples, err := b.Samples(clip)
		require.NoError(b, err)
		samples = clipped(samples)
		n := clip.Frames * w.Mels
		y := b.run(func(p pass.Pass, output func(string, int) pass.View) {
			p.Do(pass.LogMel{X: b.upload(p, samples), W: param, Y: output("y", n), Samples: len(samples)})
		})["y"].([]float32)
		var some []float32
		for t := 0; t < clip.Frames; t += 10 {
			some = append(some, y[t*w.Mels:(t+1)*w.Mels]...)
		}
		all[clip.Clip+".every10"] = some
		if _, ok := b.Outputs[clip.Clip+".full"]; ok {
			full, err := b.OutputAxes(clip.Clip+".full", 2)
			require.NoError(b, err)
			all[clip.Clip+".full"] = y[:min(full[0], clip.Frames)*w.Mels]
		}
	}
	var sums []float32
	var peaks []int64
	bins := w.FFT/2 + 1
	for m := range w.Mels {
		sum, peak := 0.0, 0
		for k, v := range w.Bank[m*bins : (m+1)*bins] {
			sum += float64(v)
			if v > w.Bank[m*bins+peak] {
				peak = k
			}
		}
		sums, peaks = append(sums, float32(sum)), append(peaks, int64(peak))
	}
	all["filter_bank_row_sums"], all["filter_bank_peak_bins"] = sums, peaks
	return all
}
