package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tandem-gpu/tandem/examples/internal/kernel"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// A tensorTable is the shape of each tensor of a network, by its name.
type tensorTable map[string][]int

// add adds name.weight of the given shape.
func (t tensorTable) add(name string, shape ...int) { t[name+".weight"] = shape }

// biased adds name.weight of the given shape and name.bias.
func (t tensorTable) biased(name string, shape ...int) {
	t[name+".weight"], t[name+".bias"] = shape, shape[:1]
}

// batchNorm adds a normalisation with fixed statistics.
func (t tensorTable) batchNorm(name string, n int) {
	t.biased(name, n)
	t[name+".running_mean"], t[name+".running_var"] = []int{n}, []int{n}
}

// randomWeights are a network's weights, made when they are asked for, the same every
// time. They are a weights.Source.
type randomWeights struct {
	shapes tensorTable
	matrix pass.DType // of tensors with more than one axis; others are F32
}

// Tensor implements weights.Source. Sums over the inputs of a layer have the deviation of
// the inputs, so that numbers stay of one size through many layers.
func (r randomWeights) Tensor(name string) (pass.Tensor, error) {
	shape, ok := r.shapes[name]
	if !ok {
		return pass.Tensor{}, fmt.Errorf("no tensor %q: %w", name, pass.ErrInvalid)
	}
	n := pass.Tensor{Shape: shape}.Len()
	if len(shape) > 1 {
		return cases.Encode(name, r.matrix, cases.Recipe(name, 1, n, kernel.Scale(n/shape[0]), 0), shape...), nil
	}
	offset := float32(0)
	if strings.HasSuffix(name, ".weight") || strings.HasSuffix(name, ".running_var") {
		offset = 1
	}
	return pass.Float32s(name, cases.Recipe(name, 1, n, 0.1, offset), shape...), nil
}

// Names implements weights.Source.
func (r randomWeights) Names() []string { return slices.Sorted(maps.Keys(r.shapes)) }

// bytes returns the size of all tensors.
func (r randomWeights) bytes() (sum int64) {
	for _, shape := range r.shapes {
		t := pass.Tensor{Type: pass.F32, Shape: shape}
		if len(shape) > 1 {
			t.Type = r.matrix
		}
		sum += t.Bytes()
	}
	return sum
}
