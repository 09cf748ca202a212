package pyannote

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// The least that is added to learned frequencies and to learned widths of bands, in Hz.
const (
	minLow  = 50.0
	minBand = 50.0
)

// bank returns the filters of the first convolution, [80][1][251]: those of the file if
// it has them, as networks that were exported do, else computed in float64 from the
// lower frequencies and the widths of the bands, in Hz, that were learned (parametric
// sinc filters of the toolkit asteroid-filterbanks: 40 cosines, then 40 sines).
func bank(src weights.Source) (pass.ConvWeights, error) {
	const name = "sincnet.conv1d.0"
	const low, band = name + ".filterbank.low_hz_", name + ".filterbank.band_hz_"
	if !weights.Has(src, low) && weights.Has(src, name+".weight") {
		return weights.Conv(src, name, filters, 1, taps, false)
	}
	lows, err := weights.Values(src, low, filters/2, 1)
	if err != nil {
		return pass.ConvWeights{}, err
	}
	bands, err := weights.Values(src, band, filters/2, 1)
	if err != nil {
		return pass.ConvWeights{}, err
	}
	values := make([]float32, filters*taps)
	for i := range lows {
		from := minLow + math.Abs(float64(lows[i]))
		to := min(max(from+minBand+math.Abs(float64(bands[i])), minLow), SampleRate/2)
		if from >= to {
			return pass.ConvWeights{}, fmt.Errorf("weights: tensor %q: want frequencies below %v Hz, given %v at %d: %w", low, SampleRate/2-minLow, lows[i], i, pass.ErrInvalid)
		}
		cosine, sine := values[i*taps:(i+1)*taps], values[(filters/2+i)*taps:(filters/2+i+1)*taps]
		bandPass(cosine, sine, from, to)
	}
	return pass.ConvWeights{Name: name, Weight: pass.Float32s(name, values, filters, 1, taps)}, nil
}

// bandPass computes the pair of filters for a band in Hz: the difference of two sinc
// functions, or what has cosines in place of their sines, with a symmetric Hamming window
// around the middle, divided by twice the width of the band.
func bandPass(cosine, sine []float32, from, to float64) {
	const middle = taps / 2
	for k := range middle {
		t := 2 * math.Pi * float64(k-middle) / SampleRate // negative
		scale := (0.54 - 0.46*math.Cos(2*math.Pi*float64(k)/(taps-1))) / (t / 2) / (2 * (to - from))
		even := float32((math.Sin(to*t) - math.Sin(from*t)) * scale)
		odd := float32((math.Cos(from*t) - math.Cos(to*t)) * scale)
		cosine[k], cosine[taps-1-k] = even, even
		sine[k], sine[taps-1-k] = odd, -odd
	}
	cosine[middle], sine[middle] = 1, 0
}
