package truth

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// LogMel returns Y [batch][frames of the samples][mels] for items of the given lengths.
func LogMel(m pass.LogMel, w pass.MelWeights, x []float64, lengths []int) []float64 {
	frames := melFrames(w, m.Samples)
	y := make([]float64, len(lengths)*frames*w.Mels)
	for b, n := range lengths {
		item := y[b*frames*w.Mels:][:melFrames(w, n)*w.Mels]
		clip := emphasised(w, x[b*m.Samples:][:n])
		for t := range len(item) / w.Mels {
			for j, power := range melPower(w, clip, t*w.Hop-w.PadLeft) {
				item[t*w.Mels+j] = logarithm(w, power)
			}
		}
		normalise(w, item, n)
	}
	return y
}

func melFrames(w pass.MelWeights, n int) int {
	frames := 0
	for n > 0 && frames*w.Hop+len(w.Window) <= w.PadLeft+n+w.PadRight {
		frames++
	}
	if w.DropLast && frames > 0 {
		frames--
	}
	return frames
}

// emphasised returns the samples of a clip, scaled, and with the pre-emphasis that is
// over the clip.
func emphasised(w pass.MelWeights, x []float64) []float64 {
	clip := make([]float64, len(x))
	for i, v := range x {
		if w.PreEmphasis != 0 && !w.PerFrame && i > 0 {
			v -= float64(w.PreEmphasis) * x[i-1]
		}
		if w.Gain != 0 {
			v *= float64(w.Gain)
		}
		clip[i] = v
	}
	return clip
}

// melPower returns the mel power of the frame that begins at a sample, by the plain
// Fourier sum.
func melPower(w pass.MelWeights, clip []float64, from int) []float64 {
	frame := make([]float64, len(w.Window))
	for i := range frame {
		at, last := from+i, len(clip)-1
		if w.Padding == pass.PadReflect && at < 0 {
			at = -at
		}
		if w.Padding == pass.PadReflect && at > last {
			at = 2*last - at
		}
		if at >= 0 && at <= last {
			frame[i] = clip[at]
		}
	}
	if w.PerFrame {
		mean := 0.0
		for _, v := range frame {
			mean += v / float64(len(frame))
		}
		before := frame[0] - mean
		for i, v := range frame {
			frame[i] = v - mean - float64(w.PreEmphasis)*before
			before = v - mean
		}
	}
	bins := w.FFT/2 + 1
	mels := make([]float64, w.Mels)
	for i, v := range w.Window {
		frame[i] *= float64(v)
	}
	sines := make([]float64, w.FFT) // of one turn
	cosines := make([]float64, w.FFT)
	for i := range sines {
		sines[i], cosines[i] = math.Sincos(2 * math.Pi * float64(i) / float64(w.FFT))
	}
	for k := range bins {
		var re, im float64
		for i, v := range frame {
			re += v * cosines[k*i%w.FFT]
			im -= v * sines[k*i%w.FFT]
		}
		for j := range mels {
			mels[j] += float64(w.Bank[j*bins+k]) * (re*re + im*im)
		}
	}
	return mels
}

func logarithm(w pass.MelWeights, power float64) float64 {
	if w.Min != 0 && power < float64(w.Min) {
		power = float64(w.Min)
	}
	if w.Max != 0 && power > float64(w.Max) {
		power = float64(w.Max)
	}
	power += float64(w.Add)
	switch w.Log {
	case pass.MelLn:
		return math.Log(power)
	case pass.MelLog10:
		return math.Log10(power)
	}
	return power
}

// normalise changes the logarithms of an item of some samples. Bins are averaged as distances
// from their first value, so that one that is constant becomes zero and not what float64 loses.
func normalise(w pass.MelWeights, y []float64, samples int) {
	frames := len(y) / w.Mels
	if frames > 0 && (w.Normalise == pass.MelPerBin || w.Normalise == pass.MelMean) {
		for i := len(y) - 1; i >= 0; i-- { // the first values last
			if first := y[i%w.Mels]; !math.IsInf(first, 0) {
				y[i] -= first
			}
		}
	}
	switch w.Normalise {
	case pass.MelWhisper:
		largest := math.Inf(-1)
		for _, v := range y {
			largest = max(largest, v)
		}
		for i, v := range y {
			y[i] = (max(v, largest-8) + 4) / 4
		}
	case pass.MelPerBin:
		count := min(samples/w.Hop, frames)
		for j := range w.Mels {
			bin := make([]float64, count)
			for t := range bin {
				bin[t] = y[t*w.Mels+j]
			}
			mean, variance := moments(bin)
			deviation := 0.0 // of a single frame
			if count > 1 {
				deviation = math.Sqrt(variance * float64(count) / float64(count-1))
			}
			for t := range frames {
				y[t*w.Mels+j] = (y[t*w.Mels+j] - mean) / (deviation + float64(w.NormaliseEps))
				if t >= count {
					y[t*w.Mels+j] = 0
				}
			}
		}
	case pass.MelMean:
		for j := range w.Mels {
			mean := 0.0
			for t := range frames {
				mean += y[t*w.Mels+j] / float64(frames)
			}
			for t := range frames {
				y[t*w.Mels+j] -= mean
			}
		}
	}
}
