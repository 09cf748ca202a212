package weights

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// A BatchNorm is a batch normalisation with fixed statistics, so that channel i of its
// input is multiplied by Gain[i], and Shift[i] added.
type BatchNorm struct {
	Name        string
	Gain, Shift []float64
}

// ReadBatchNorm reads a batch normalisation of n channels, and computes in float64:
//
//	Gain = NAME.weight / sqrt(NAME.running_var + eps)
//	Shift = NAME.bias − NAME.running_mean·Gain
func ReadBatchNorm(src Source, name string, n int, eps float64) (BatchNorm, error) {
	var v [4][]float32
	for i, suffix := range []string{".weight", ".bias", ".running_mean", ".running_var"} {
		var err error
		if v[i], err = Values(src, name+suffix, n); err != nil {
			return BatchNorm{}, err
		}
	}
	b := BatchNorm{name, make([]float64, n), make([]float64, n)}
	for i := range n {
		variance := float64(v[3][i])
		if variance < 0 || !(variance+eps > 0) {
			return BatchNorm{}, fmt.Errorf("weights: tensor %.200q: want values of at least 0, and more with eps %v, given %v at %d: %w", name+".running_var", eps, variance, i, pass.ErrInvalid)
		}
		b.Gain[i] = float64(v[0][i]) / math.Sqrt(variance+eps)
		b.Shift[i] = float64(v[1][i]) - float64(v[2][i])*b.Gain[i]
	}
	return b, nil
}

// Affine returns Gain and Shift, rounded, as for [pass.ConvGLUWeights].
func (b BatchNorm) Affine() (gain, shift []float32) {
	gain, shift = make([]float32, len(b.Gain)), make([]float32, len(b.Gain))
	for i := range gain {
		gain[i], shift[i] = float32(b.Gain[i]), float32(b.Shift[i])
	}
	return gain, shift
}

// Fold returns the weight and bias of the layer that does what the given one and then b
// do: of a linear layer or a convolution, whose outputs are the first axis of weight.
// bias may be nil. The products are rounded once, to F32, and held in memory.
func (b BatchNorm) Fold(weight pass.Tensor, bias []float32) (pass.Tensor, []float32, error) {
	n := len(b.Gain)
	if len(weight.Shape) == 0 || weight.Shape[0] != n || bias != nil && len(bias) != n {
		return pass.Tensor{}, nil, fmt.Errorf("weights: batch norm %.200q into tensor %.200q: want %d outputs, given shape %v and a bias of %d: %w", b.Name, weight.Name, n, weight.Shape, len(bias), pass.ErrInvalid)
	}
	values, err := weight.Float32s()
	if err != nil {
		return pass.Tensor{}, nil, fmt.Errorf("weights: %w", err)
	}
	out := make([]float32, n)
	row := len(values) / max(n, 1)
	for i := range n {
		for j := i * row; j < (i+1)*row; j++ {
			values[j] = float32(float64(values[j]) * b.Gain[i])
		}
		sum := b.Shift[i]
		if bias != nil {
			sum += float64(bias[i]) * b.Gain[i]
		}
		out[i] = float32(sum)
	}
	for _, results := range [][]float32{values, out} {
		for i, v := range results {
			if v-v != 0 {
				return pass.Tensor{}, nil, fmt.Errorf("weights: batch norm %.200q into tensor %.200q: want finite values, given %v at %d: %w", b.Name, weight.Name, v, i, pass.ErrInvalid)
			}
		}
	}
	return pass.Float32s(weight.Name, values, weight.Shape...), out, nil
}
