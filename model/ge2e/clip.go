package ge2e

import "math"

// SampleRate is the number of samples in a second.
const SampleRate = 16000

const (
	hop           = 160                // samples from one frame to the next
	frame         = 400                // samples of a frame, centred
	windowFrames  = 160                // of a window
	stepFrames    = 77                 // from one window to the next
	windowSamples = windowFrames * hop // 1.6 s
	// inputSamples are the samples that the frames of a window touch.
	inputSamples = (windowFrames-1)*hop + frame
)

// loudness is the level to which quieter clips are raised: −30 dB below full scale, as a
// root of the mean square.
var loudness = math.Pow(10, -30.0/20)

// gain returns the factor that raises samples to the level, or 1.
func gain(samples []float32) float64 {
	sum := 0.0
	for _, v := range samples {
		sum += float64(v) * float64(v)
	}
	level := math.Sqrt(sum / float64(len(samples)))
	if level == 0 || level >= loudness {
		return 1
	}
	return loudness / level
}

// starts returns the first frames of the windows of a clip of at least one sample: one
// every 77 frames, up to the first that reaches the clip's end (Resemblyzer's
// compute_partial_slices). A last window of which less than three quarters lie inside the
// clip is left out, unless it is the only one.
func starts(samples int) []int {
	frames := (samples + hop) / hop // ceil((samples + 1)/hop)
	end := max(1, frames-windowFrames+stepFrames+1)
	all := []int{0}
	for s := stepFrames; s < end; s += stepFrames {
		all = append(all, s)
	}
	if last := len(all) - 1; last > 0 && 4*(samples-all[last]*hop) < 3*windowSamples {
		all = all[:last]
	}
	return all
}

// cut copies the samples that the frames of a window touch, multiplied by a factor, with
// zeros before and after the clip.
func cut(dst, samples []float32, start int, factor float64) {
	from := start*hop - frame/2
	for i := range dst[:inputSamples] {
		dst[i] = 0
		if at := from + i; at >= 0 && at < len(samples) {
			dst[i] = float32(float64(samples[at]) * factor)
		}
	}
}

// mean returns the mean of embeddings, scaled to length 1; zeros if it is zero.
func mean(embeddings [][]float32, width int) []float32 {
	sum := make([]float64, width)
	for _, e := range embeddings {
		for i, v := range e {
			sum[i] += float64(v)
		}
	}
	square := 0.0
	for _, v := range sum {
		square += v * v
	}
	result := make([]float32, width)
	if square > 0 {
		for i, v := range sum {
			result[i] = float32(v / math.Sqrt(square))
		}
	}
	return result
}

// Cosine returns the dot product of two embeddings of the same network, which is the
// cosine of the angle between them: 1 for the same voice.
func Cosine(a, b []float32) float64 {
	sum := 0.0
	for i := range min(len(a), len(b)) {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
