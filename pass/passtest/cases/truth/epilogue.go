package truth

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// Epilogue returns what is stored for the sum v where c was before.
func Epilogue(e pass.Epilogue, v, c float64) float64 {
	alpha := float64(e.Alpha())
	switch e.Kind() {
	case pass.KindSiLU:
		return v / (1 + math.Exp(-v))
	case pass.KindReLU:
		if v < 0 {
			return 0
		}
		return v
	case pass.KindLeaky:
		if v < 0 {
			return alpha * v
		}
		return v
	case pass.KindResidual:
		return c + alpha*v
	case pass.KindGELU:
		return gelu(v)
	case pass.KindGELUResidual:
		return c + gelu(v)
	case pass.KindTanh:
		return math.Tanh(v)
	case pass.KindSigmoid:
		return sigmoid(v)
	}
	return v
}

func sigmoid(v float64) float64 { return 1 / (1 + math.Exp(-v)) }

// gelu is v·Phi(v); the complement of erf keeps the digits of the lower tail.
func gelu(v float64) float64 { return v * 0.5 * math.Erfc(-v/math.Sqrt2) }
