package frontend

import "math"

// Windows are of the form a − b·cos(2π·i/period). A periodic window has the period of its
// length, as if it began again after its last sample; a symmetric one is one shorter, so
// that its first and last samples are equal (Harris, On the use of windows for harmonic
// analysis with the discrete Fourier transform, 1978).

func cosineWindow(n, period int, a, b float64) []float32 {
	w := make([]float32, n)
	for i := range w {
		w[i] = float32(a - b*math.Cos(2*math.Pi*float64(i)/float64(period)))
	}
	return w
}

// hannPeriodic returns the Hann window of n samples, with period n.
func hannPeriodic(n int) []float32 { return cosineWindow(n, n, 0.5, 0.5) }

// hannSymmetric returns the Hann window of n samples, with period n − 1.
func hannSymmetric(n int) []float32 { return cosineWindow(n, n-1, 0.5, 0.5) }

// hammingSymmetric returns the Hamming window of n samples, with period n − 1.
func hammingSymmetric(n int) []float32 { return cosineWindow(n, n-1, 0.54, 0.46) }

// centred returns a window in the middle of n samples, with zeros around it.
func centred(window []float32, n int) []float32 {
	w := make([]float32, n)
	copy(w[(n-len(window))/2:], window)
	return w
}
