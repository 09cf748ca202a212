package cpu

import "github.com/tandem-gpu/tandem/pass"

// An epilogue is a [pass.Epilogue] taken apart.
type epilogue struct {
	kind  pass.EpilogueKind
	alpha float32
}

func newEpilogue(e pass.Epilogue) epilogue { return epilogue{e.Kind(), e.Alpha()} }

// store finishes the sums of up to eight columns: acc + bias, through the epilogue,
// into c.
func (e epilogue) store(c []float32, acc []float64, bias []float32) {
	var v [lanes]float32
	acc, bias = acc[:len(c)], bias[:len(c)]
	for j := range min(len(c), lanes) {
		v[j] = float32(acc[j] + float64(bias[j]))
	}
	e.apply(c, v[:len(c)])
}

// apply computes c from v element by element. Both may be the same.
func (e epilogue) apply(c, v []float32) {
	v = v[:len(c)]
	switch e.kind {
	case pass.KindNone:
		copy(c, v)
	case pass.KindSiLU:
		for j, v := range v {
			c[j] = silu(v)
		}
	case pass.KindReLU:
		for j, v := range v {
			if v < 0 {
				v = 0
			}
			c[j] = v
		}
	case pass.KindLeaky:
		for j, v := range v {
			if v < 0 {
				v *= e.alpha
			}
			c[j] = v
		}
	case pass.KindResidual:
		for j, v := range v {
			c[j] += e.alpha * v
		}
	case pass.KindGELU:
		for j, v := range v {
			c[j] = gelu(v)
		}
	case pass.KindGELUResidual:
		for j, v := range v {
			c[j] += gelu(v)
		}
	case pass.KindTanh:
		for j, v := range v {
			c[j] = tanh(v)
		}
	case pass.KindSigmoid:
		for j, v := range v {
			c[j] = sigmoid(v)
		}
	}
}

// flop returns about what one element takes.
func (e epilogue) flop() float64 {
	switch e.kind {
	case pass.KindSiLU, pass.KindTanh, pass.KindSigmoid:
		return 25
	case pass.KindGELU, pass.KindGELUResidual:
		return 100
	}
	return 1
}
