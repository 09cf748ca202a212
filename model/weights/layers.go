package weights

import (
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/pass"
)

// A Part is a layer of a stack of linear layers; see [Rows].
type Part struct {
	name string
	rows int
	bias bool
}

// Rows is the linear layer of the given name, of so many outputs: NAME.weight and, if
// it has a bias, NAME.bias.
func Rows(name string, outputs int, bias bool) Part { return Part{name, outputs, bias} }

// Linear returns the weights of linear layers of the given number of inputs, stacked in
// the order of parts. A part without a bias has zeros if another has one.
func Linear(src Source, inputs int, parts ...Part) (pass.LinearWeights, error) {
	var w pass.LinearWeights
	outputs := 0
	for i, p := range parts {
		if i == 0 {
			w.Name = p.name
		}
		t, err := Tensor(src, p.name+".weight", p.rows, inputs)
		if err != nil {
			return pass.LinearWeights{}, err
		}
		w.Parts = append(w.Parts, t)
		outputs += p.rows
	}
	if !slices.ContainsFunc(parts, func(p Part) bool { return p.bias }) {
		return w, nil
	}
	w.Bias = make([]float32, 0, outputs)
	for _, p := range parts {
		b, err := bias(src, p.name, p.rows, p.bias)
		if err != nil {
			return pass.LinearWeights{}, err
		}
		if b == nil {
			b = make([]float32, p.rows)
		}
		w.Bias = append(w.Bias, b...)
	}
	return w, nil
}

// bias returns NAME.bias, or nil if there is none to be.
func bias(src Source, name string, n int, there bool) ([]float32, error) {
	if !there {
		return nil, nil
	}
	return Values(src, name+".bias", n)
}

// Conv returns the weights of a convolution over time: NAME.weight [out][in][kernel]
// and, if it has a bias, NAME.bias [out].
func Conv(src Source, name string, out, in, kernel int, biased bool) (pass.ConvWeights, error) {
	t, err := Tensor(src, name+".weight", out, in, kernel)
	if err != nil {
		return pass.ConvWeights{}, err
	}
	b, err := bias(src, name, out, biased)
	if err != nil {
		return pass.ConvWeights{}, err
	}
	return pass.ConvWeights{Name: name, Weight: t, Bias: b}, nil
}

// Conv2D returns the weights of a convolution of images: NAME.weight
// [out][in][size][size] and, if it has a bias, NAME.bias [out].
func Conv2D(src Source, name string, out, in, size int, biased bool) (pass.Conv2DWeights, error) {
	t, err := Tensor(src, name+".weight", out, in, size, size)
	if err != nil {
		return pass.Conv2DWeights{}, err
	}
	b, err := bias(src, name, out, biased)
	if err != nil {
		return pass.Conv2DWeights{}, err
	}
	return pass.Conv2DWeights{Name: name, Weight: t, Bias: b}, nil
}

// Norm returns the weights of a normalisation of n channels: NAME.weight and, if it has
// a bias, NAME.bias.
func Norm(src Source, name string, n int, biased bool) (pass.NormWeights, error) {
	gain, err := Values(src, name+".weight", n)
	if err != nil {
		return pass.NormWeights{}, err
	}
	b, err := bias(src, name, n, biased)
	if err != nil {
		return pass.NormWeights{}, err
	}
	return pass.NormWeights{Name: name, Gain: gain, Bias: b}, nil
}

// LSTM returns the weights of a stack of LSTM layers, of one or two directions:
// NAME.weight_ih_lN [4·hidden][in or directions·hidden], NAME.weight_hh_lN
// [4·hidden][hidden] with the gates in the order i, f, g, o; and as biases either the
// sum, NAME.bias_lN, or both of NAME.bias_ih_lN and NAME.bias_hh_lN. The backward
// direction has the suffix _reverse.
func LSTM(src Source, name string, in, hidden, layers, directions int) (pass.LSTMWeights, error) {
	w := pass.LSTMWeights{Name: name}
	if layers < 1 || directions < 1 || directions > 2 {
		return w, fmt.Errorf("weights: lstm %q: want at least one layer of one or two directions, given %d of %d: %w", name, layers, directions, pass.ErrInvalid)
	}
	for l := range layers {
		if l > 0 {
			in = directions * hidden
		}
		var layer []pass.LSTMCell
		for _, suffix := range []string{"", "_reverse"}[:directions] {
			c, err := cell(src, name, fmt.Sprintf("_l%d%s", l, suffix), in, hidden)
			if err != nil {
				return pass.LSTMWeights{}, err
			}
			layer = append(layer, c)
		}
		w.Layers = append(w.Layers, layer)
	}
	return w, nil
}

func cell(src Source, name, suffix string, in, hidden int) (c pass.LSTMCell, err error) {
	if c.Input, err = Tensor(src, name+".weight_ih"+suffix, 4*hidden, in); err != nil {
		return c, err
	}
	if c.Hidden, err = Tensor(src, name+".weight_hh"+suffix, 4*hidden, hidden); err != nil {
		return c, err
	}
	if sum := name + ".bias" + suffix; Has(src, sum) {
		c.Bias, err = Values(src, sum, 4*hidden)
		return c, err
	}
	if c.Bias, err = Values(src, name+".bias_ih"+suffix, 4*hidden); err != nil {
		return c, err
	}
	second, err := Values(src, name+".bias_hh"+suffix, 4*hidden)
	for i, v := range second {
		c.Bias[i] += v
	}
	return c, err
}
