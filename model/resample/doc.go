// Package resample changes the sample rate of audio, between any two rates, with a
// windowed-sinc filter.
//
// With f the lower of the two rates:
//
//	pass band    0 to 0.91·f/2, flat within 0.001 dB
//	stop band    from f/2 on, at least 105 dB down: images and aliases alike
//	delay        none: output i lies at the time i/outRate, input n at n/inRate
//	gain at 0 Hz 1 within 1e-6
//	length       ⌈n·outRate/inRate⌉ samples for n
//
// Before the first and after the last sample the input counts as 0. Equal rates copy.
//
// # Method
//
// An output sample is the sum of the input samples around its time, weighted by
//
//	h(t) = c·sinc(c·t)·w(t/T)        t in input samples, |t| < T
//
// where sinc(x) = sin(πx)/(πx), w(u) = I0(β√(1−u²))/I0(β) is Kaiser's window and c the
// cutoff, the middle of the transition band, over half of the input rate. Kaiser's
// formulas give β = 0.1102(A−8.7) and 2T = (A−7.95)/(2.285·Δω) for an attenuation of A dB
// and a transition band of Δω radians per input sample (Kaiser and Schafer, "On the use
// of the I0-sinh window for spectrum analysis", IEEE Transactions on ASSP 28, 1980).
//
// In lowest terms the rates are as L : M, and output times fall on L different places
// between two input samples. The weights for each place are computed once, in float64,
// and scaled to a sum of 1. Where they would be very many, as from 44,101 Hz to 16,000,
// they are computed for about 2,000 places an input sample of the lower rate, and
// interpolated linearly between them; the error of that is below −130 dB.
// Sums are formed in float64.
package resample
