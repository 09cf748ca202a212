package cpu

import "math"

// exp returns e^x with a relative error below 1e-8, for x clamped to ±200, beyond
// which the functions of this file do not change in float32. NaN passes.
//
// x = n·ln 2 + r with |r| ≤ ln(2)/2; e^r is its Taylor polynomial of degree 7, whose
// remainder is at most |r|⁸/8!.
func exp(x float64) float64 {
	// Adding and taking away 1.5·2⁵² rounds to an integer, which is then in the low bits.
	const round = 0x1.8p52
	if x > 200 {
		x = 200
	}
	if x < -200 {
		x = -200
	}
	t := x*math.Log2E + round
	r := x - (t-round)*math.Ln2
	r2 := r * r
	low := (1 + r) + r2*(1.0/2+r*(1.0/6))
	high := (1.0/24 + r*(1.0/120)) + r2*(1.0/720+r*(1.0/5040))
	scale := math.Float64frombits((math.Float64bits(t) + 1023) << 52)
	return (low + r2*r2*high) * scale
}

func sigmoid(x float32) float32 { return float32(logistic(float64(x))) }

// logistic returns 1/(1 + e⁻ˣ).
func logistic(x float64) float64 { return 1 / (1 + exp(-x)) }

func tanh(x float32) float32 { return float32(hyperbolic(float64(x))) }

// hyperbolic returns tanh x = (e²ˣ − 1)/(e²ˣ + 1), but x where the difference would lose
// digits.
func hyperbolic(x float64) float64 {
	if x < 1e-5 && x > -1e-5 {
		return x
	}
	e := exp(2 * x)
	return (e - 1) / (e + 1)
}

func silu(x float32) float32 { return float32(swish(float64(x))) }

// swish returns x·sigmoid(x).
func swish(x float64) float64 {
	if x < -200 {
		return 0 // the limit, for −Inf too
	}
	return x / (1 + exp(-x))
}

// gelu returns x·Phi(x), with Phi(x) = erfc(−x/√2)/2, which keeps its digits for
// negative x.
func gelu(x float32) float32 {
	if x < -40 {
		return 0 // the limit, for −Inf too
	}
	v := float64(x)
	return float32(v * 0.5 * math.Erfc(v*-(1/math.Sqrt2)))
}
