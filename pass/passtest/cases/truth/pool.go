package truth

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// StatsPool returns Y [batch][masks][2·channels·height].
func StatsPool(s pass.StatsPool, x, masks []float64) []float64 {
	half := s.Channels * s.Height
	y := make([]float64, s.Batch*s.Count*2*half)
	for b := range s.Batch {
		for m := range s.Count {
			mask := masks[(b*s.Count+m)*s.Frames:][:s.Frames]
			out := y[(b*s.Count+m)*2*half:]
			for c := range s.Channels {
				for h := range s.Height {
					line := x[(b*s.Height+h)*s.Width*s.Channels:]
					out[c*s.Height+h], out[half+c*s.Height+h] = weighed(s, line, c, mask)
				}
			}
		}
	}
	return y
}

// weighed returns the mean and the deviation of a channel of a line.
func weighed(s pass.StatsPool, line []float64, channel int, mask []float64) (mean, deviation float64) {
	var weights, squares, sum float64
	for i := range s.Width {
		w := mask[i*s.Frames/s.Width]
		weights, squares, sum = weights+w, squares+w*w, sum+w*line[i*s.Channels+channel]
	}
	if weights == 0 {
		return 0, math.Sqrt(1e-10)
	}
	mean = sum / weights
	spread := 0.0
	for i := range s.Width {
		v := line[i*s.Channels+channel] - mean
		spread += mask[i*s.Frames/s.Width] * v * v
	}
	variance, divisor := 0.0, weights-squares/weights
	if divisor > 1e-12*weights { // what is 0 up to rounding is 0
		variance = spread / divisor
	}
	if variance < 1e-10 {
		variance = 1e-10
	}
	return mean, math.Sqrt(variance)
}
