package resample

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// The specification of the filter.
const (
	passEdge    = 0.91 // end of the pass band, over half of the lower rate
	attenuation = 112  // dB; the design formulas are good to a few dB
)

// Limits of what is accepted, which bound the number of weights.
const (
	maxRate  = 1 << 24
	maxRatio = 256
)

const (
	maxWeights = 1 << 19 // beyond that many, places are interpolated
	finePlaces = 2048    // then: places in a sample of the lower rate
)

// A filter is the weights for a pair of rates. It does not change.
type filter struct {
	up, down int64 // the ratio in lowest terms: down input samples take as long as up output samples
	taps     int   // weights of an output sample, a multiple of 8 (or 1, to copy)
	before   int   // how many of them lie before the sample at or before the output's time
	places   int64 // rows of weights in an input sample
	rows     [][]float64
}

// newFilter designs the filter. The rates must be in range.
func newFilter(in, out int) (*filter, error) {
	for _, rate := range []int{in, out} {
		if rate < 1 || rate > maxRate {
			return nil, fmt.Errorf("rate %d Hz: want 1 to %d: %w", rate, maxRate, pass.ErrInvalid)
		}
	}
	if in/maxRatio >= out || out/maxRatio >= in {
		return nil, fmt.Errorf("rates %d and %d Hz: want a ratio below %d: %w", in, out, maxRatio, pass.ErrInvalid)
	}
	if in == out {
		return &filter{up: 1, down: 1, taps: 1, places: 1, rows: [][]float64{{1}}}, nil
	}
	g := gcd(in, out)
	f := &filter{up: int64(out / g), down: int64(in / g)}
	// Frequencies in cycles per input sample from here on.
	nyquist := 0.5 * min(1, float64(out)/float64(in))
	edge := passEdge * nyquist
	cutoff := edge + nyquist // twice the middle of the band
	width := (attenuation - 7.95) / (2.285 * 2 * math.Pi * (nyquist - edge)) / 2
	half := (int(math.Ceil(width)) + 3) / 4 * 4
	f.taps, f.before = 2*half, half-1
	f.places = f.up
	last := int64(0) // one row more where places are interpolated
	if f.up > maxWeights/int64(f.taps) {
		f.places = int64(math.Ceil(finePlaces * 2 * nyquist))
		last = 1
	}
	beta := 0.1102 * (attenuation - 8.7)
	all := make([]float64, (f.places+last)*int64(f.taps))
	for p := range f.places + last {
		row := all[:f.taps:f.taps]
		all = all[f.taps:]
		sum := 0.0
		for j := range row {
			t := float64(p)/float64(f.places) - float64(j-f.before)
			row[j] = sinc(cutoff*t) * kaiser(t/width, beta)
			sum += row[j]
		}
		for j := range row {
			row[j] /= sum
		}
		f.rows = append(f.rows, row)
	}
	return f, nil
}

// sample returns the output sample phase/up after input sample before of x, which has
// taps samples.
func (f *filter) sample(x []float64, phase int64) float32 {
	if f.places == f.up {
		return float32(dot(f.rows[phase], x))
	}
	at := phase * f.places
	p := at / f.up
	part := float64(at%f.up) / float64(f.up)
	a, b := dot(f.rows[p], x), dot(f.rows[p+1], x)
	return float32(a + part*(b-a))
}

// dot sums in four chains, since one would wait for each addition.
func dot(w, x []float64) float64 {
	if len(w) == 1 {
		return w[0] * x[0]
	}
	var a, b, c, d float64
	for len(w) >= 8 && len(x) >= 8 {
		a += w[0]*x[0] + w[4]*x[4]
		b += w[1]*x[1] + w[5]*x[5]
		c += w[2]*x[2] + w[6]*x[6]
		d += w[3]*x[3] + w[7]*x[7]
		w, x = w[8:], x[8:]
	}
	return (a + b) + (c + d)
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}

// kaiser is Kaiser's window, 0 outside of (−1, 1).
func kaiser(u, beta float64) float64 {
	if u <= -1 || u >= 1 {
		return 0
	}
	return bessel(beta*math.Sqrt(1-u*u)) / bessel(beta)
}

// bessel is the modified Bessel function of the first kind of order 0, by its power
// series Σ ((x/2)^k / k!)².
func bessel(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; term > 1e-17*sum; k++ {
		term *= x / 2 / k * (x / 2 / k)
		sum += term
	}
	return sum
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
