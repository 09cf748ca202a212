package goldens

import (
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/pass"
)

// InputAxes returns the sizes of the axes of the named input. There must be n, none of
// them 0.
func (c *Case) InputAxes(name string, n int) ([]int, error) {
	a, ok := c.Inputs[name]
	return c.axes("input", name, a.Shape, ok, n)
}

// TensorAxes returns the sizes of the axes of the named weights. There must be n, none of
// them 0.
func (c *Case) TensorAxes(name string, n int) ([]int, error) {
	a, ok := c.Tensors[name]
	return c.axes("tensor", name, a.Shape, ok, n)
}

// OutputAxes returns the sizes of the axes of the named output. There must be n, none of
// them 0.
func (c *Case) OutputAxes(name string, n int) ([]int, error) {
	s, ok := c.Outputs[name]
	return c.axes("output", name, s.Shape, ok, n)
}

func (c *Case) axes(kind, name string, shape []int, ok bool, n int) ([]int, error) {
	switch {
	case !ok:
		return nil, c.missing(kind, name)
	case len(shape) != n || slices.Contains(shape, 0):
		return nil, fmt.Errorf("goldens: %s: %s %q: want %d axes, none of them 0, given shape %v: %w", c.Name, kind, name, n, shape, pass.ErrInvalid)
	}
	return shape, nil
}

// InputOf returns the named input, which must have the given shape.
func (c *Case) InputOf(name string, shape ...int) ([]float32, error) {
	given, err := c.InputAxes(name, len(shape))
	if err != nil {
		return nil, err
	}
	if !slices.Equal(given, shape) {
		return nil, fmt.Errorf("goldens: %s: input %q: want shape %v, given %v: %w", c.Name, name, shape, given, pass.ErrInvalid)
	}
	return c.Input(name)
}
