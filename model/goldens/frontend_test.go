package goldens_test

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/frontend"
	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/pass"
)

// frontEnd makes the features of all clips of a case, and what it says about the filter
// bank.
func frontEnd(b *bench) goldens.Results {
	var config struct{ Mels int }
	require.NoError(b, b.Configuration(&config))
	var w pass.MelWeights
	least := 0 // samples that a clip is filled up to
	switch kind := strings.TrimRight(strings.TrimPrefix(b.Case.Name, "frontend-"), "0123456789"); kind {
	case "whisper":
		w, least = frontend.Whisper(config.Mels), 30*frontend.SampleRate
	case "parakeet":
		w = frontend.Parakeet(config.Mels)
	case "gigaam":
		w = frontend.GigaAM()
	case "kaldi":
		w = frontend.Kaldi()
	case "ge2e":
		w = frontend.GE2E()
	default:
		b.Fatalf("no front end %q", kind)
	}
	require.Equal(b, config.Mels, w.Mels)
	param := b.load(w)
	all := goldens.Results{}
	for _, clip := range b.Audio {
		samples, err := b.Samples(clip)
		require.NoError(b, err)
		samples = append(samples[:len(samples):len(samples)], make([]float32, max(least-len(samples), 0))...)
		n := clip.Frames * w.Mels
		y := b.run(func(p pass.Pass, output func(string, int) pass.View) {
			p.Do(pass.LogMel{X: b.upload(p, samples), W: param, Y: output("y", n), Samples: len(samples)})
		})["y"].([]float32)
		var some []float32
		for t := 0; t < clip.Frames; t += 10 {
			some = append(some, y[t*w.Mels:(t+1)*w.Mels]...)
		}
		all[clip.Clip+".every10"] = some
		if s, ok := b.Outputs[clip.Clip+".full"]; ok {
			all[clip.Clip+".full"] = y[:s.Shape[0]*w.Mels]
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
