package frontend

import "math"

// Slaney's mel scale is linear below 1 kHz, 3 mels in 200 Hz, and logarithmic above, 27
// mels in a factor of 6.4 (Slaney, Auditory toolbox, technical report 1998-010, Interval
// Research).
const (
	slaneyHz    = 200.0 / 3 // of a mel below the corner
	slaneyKnee  = 1000.0    // Hz
	slaneyMels  = 15.0      // at the corner
	slaneySteps = 27.0      // mels in a factor of 6.4
)

func slaneyMel(hz float64) float64 {
	if hz < slaneyKnee {
		return hz / slaneyHz
	}
	return slaneyMels + math.Log(hz/slaneyKnee)*slaneySteps/math.Log(6.4)
}

func slaneyFrequency(mel float64) float64 {
	if mel < slaneyMels {
		return mel * slaneyHz
	}
	return slaneyKnee * math.Exp((mel-slaneyMels)*math.Log(6.4)/slaneySteps)
}

// The mel scale of HTK is 2595·log10(1 + f/700) (Young et al., The HTK book, 2006, section
// 5.4); Kaldi writes it 1127·ln(1 + f/700), which is another in the fifth digit.

func htkMel(hz float64) float64        { return 2595 * math.Log10(1+hz/700) }
func htkFrequency(mel float64) float64 { return 700 * (math.Pow(10, mel/2595) - 1) }
func kaldiMel(hz float64) float64      { return 1127 * math.Log(1+hz/700) }

// slaney returns a bank of triangles in frequency, whose corners are equally far apart on
// Slaney's scale from 0 to half the sampling rate. Each triangle has the area of 1 Hz: its
// weights are 2/(width in Hz) at the top.
func slaney(mels, fft int) []float32 {
	corners := corners(mels, 0, SampleRate/2, slaneyMel, slaneyFrequency)
	return triangles(mels, fft, corners, func(i int) float64 { return 2 / (corners[i+2] - corners[i]) })
}

// htk returns a bank of triangles in frequency of height 1, whose corners are equally far
// apart on the scale of HTK from 0 to half the sampling rate.
func htk(mels, fft int) []float32 {
	return triangles(mels, fft, corners(mels, 0, SampleRate/2, htkMel, htkFrequency), func(int) float64 { return 1 })
}

// corners returns mels + 2 frequencies, equally far apart on a scale.
func corners(mels int, low, high float64, mel, frequency func(float64) float64) []float64 {
	c := make([]float64, mels+2)
	for i := range c {
		c[i] = frequency(mel(low) + (mel(high)-mel(low))*float64(i)/float64(mels+1))
	}
	return c
}

// triangles returns a bank [mels][fft/2 + 1]: row i rises from corner i to i + 1 and falls
// to corner i + 2.
func triangles(mels, fft int, corners []float64, height func(i int) float64) []float32 {
	bins := fft/2 + 1
	bank := make([]float32, mels*bins)
	for i := range mels {
		for k := range bins {
			hz := float64(k) * SampleRate / float64(fft)
			up := (hz - corners[i]) / (corners[i+1] - corners[i])
			down := (corners[i+2] - hz) / (corners[i+2] - corners[i+1])
			bank[i*bins+k] = float32(max(min(up, down), 0) * height(i))
		}
	}
	return bank
}

// kaldi returns a bank of triangles in mels, not in frequency, of height 1, from 20 Hz to
// half the sampling rate; the last bin of the spectrum has no weight (Povey et al., The
// Kaldi speech recognition toolkit, 2011; its compute-fbank-feats).
func kaldi(mels, fft int) []float32 {
	bins := fft/2 + 1
	low, high := kaldiMel(20), kaldiMel(SampleRate/2)
	step := (high - low) / float64(mels+1)
	bank := make([]float32, mels*bins)
	for i := range mels {
		left := low + float64(i)*step
		for k := range bins - 1 {
			mel := kaldiMel(float64(k) * SampleRate / float64(fft))
			bank[i*bins+k] = float32(max(min((mel-left)/step, (left+2*step-mel)/step), 0))
		}
	}
	return bank
}
