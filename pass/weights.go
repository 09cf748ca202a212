package pass

import (
	"fmt"
	"slices"
)

// Weights is what Device.Load takes: [LinearWeights], [ConvWeights], [LSTMWeights],
// [NormWeights], [RopeWeights], [Conv2DWeights], [DepthwiseWeights], [ConvGLUWeights] or
// [MelWeights]. The set is closed. Tensors are read once, in pieces, during Load.
type Weights interface {
	// Shape checks the weights and returns the shape of the param that they make.
	Shape() (ParamShape, error)
	weights()
}

// A ParamShape is the geometry of a param, such as a [LinearShape]; each type of
// [Weights] has its own. All are comparable values.
type ParamShape interface {
	fmt.Stringer
	paramShape()
}

// LinearShape is the geometry of a matrix [N][K] as [Gemm] uses it.
type LinearShape struct {
	N, K int   // outputs, inputs
	Type DType // of the stored matrix
	Bias bool  // whether there is a bias
	Dual int   // columns that are given again with another bias; see LinearWeights
}

// Columns returns how many columns a Gemm with these weights writes.
func (s LinearShape) Columns() int { return s.N + s.Dual }

// String gives the shape for error messages.
func (s LinearShape) String() string { return fmt.Sprintf("linear [%d][%d] %v", s.N, s.K, s.Type) }

func (LinearShape) paramShape() {}

// ConvShape is the geometry of convolution weights [Out][In][Kernel].
type ConvShape struct {
	Out, In, Kernel int
	Type            DType
	Bias            bool
}

// String gives the shape for error messages.
func (s ConvShape) String() string {
	return fmt.Sprintf("conv [%d][%d][%d] %v", s.Out, s.In, s.Kernel, s.Type)
}

func (ConvShape) paramShape() {}

// LSTMShape is the geometry of a stack of LSTM layers.
type LSTMShape struct {
	In, Hidden int
	Layers     int
	Directions int // 1: forward; 2: forward and backward
}

// States returns how many (h, c) pairs the stack has: Layers·Directions.
func (s LSTMShape) States() int { return s.Layers * s.Directions }

// String gives the shape for error messages.
func (s LSTMShape) String() string {
	return fmt.Sprintf("lstm %d→%d, %d layers × %d directions", s.In, s.Hidden, s.Layers, s.Directions)
}

func (LSTMShape) paramShape() {}

// LinearWeights are the weights of a Gemm: one or several matrices [nᵢ][k] of one
// type stacked along n.
type LinearWeights struct {
	Name  string    // for error messages and dumps
	Parts []Tensor  // at least one; same type and k
	Bias  []float32 // nil, or n values
	// Dual, d ≤ n values, asks for the first d products a second time: columns
	// n … n+d−1 hold them with these biases and no epilogue.
	Dual []float32
}

// Shape implements Weights.
func (w LinearWeights) Shape() (ParamShape, error) {
	if len(w.Parts) == 0 {
		return nil, fmt.Errorf("pass: linear weights %q: want at least one part: %w", w.Name, ErrInvalid)
	}
	s := LinearShape{Type: w.Parts[0].Type, Bias: w.Bias != nil, Dual: len(w.Dual)}
	for i, t := range w.Parts {
		if err := t.Check(); err != nil {
			return nil, fmt.Errorf("pass: linear weights %q: part %d: %w", w.Name, i, err)
		}
		if len(t.Shape) != 2 || t.Shape[0] < 1 || t.Shape[1] < 1 {
			return nil, fmt.Errorf("pass: linear weights %q: part %d: want [n][k] with n, k ≥ 1, given %v: %w", w.Name, i, t.Shape, ErrInvalid)
		}
		if i == 0 {
			s.K = t.Shape[1]
		}
		if t.Type != s.Type || t.Shape[1] != s.K {
			return nil, fmt.Errorf("pass: linear weights %q: part %d: want %v with k = %d as part 0, given %v with k = %d: %w",
				w.Name, i, s.Type, s.K, t.Type, t.Shape[1], ErrInvalid)
		}
		s.N += t.Shape[0]
		if int64(s.N) > maxElements/int64(s.K) {
			return nil, fmt.Errorf("pass: linear weights %q: %d rows of k = %d: want at most %d elements: %w", w.Name, s.N, s.K, int64(maxElements), ErrInvalid)
		}
	}
	if w.Bias != nil && len(w.Bias) != s.N {
		return nil, fmt.Errorf("pass: linear weights %q: bias: want %d values, given %d: %w", w.Name, s.N, len(w.Bias), ErrInvalid)
	}
	if s.Dual > s.N {
		return nil, fmt.Errorf("pass: linear weights %q: dual: want at most n = %d values, given %d: %w", w.Name, s.N, s.Dual, ErrInvalid)
	}
	return s, nil
}

func (LinearWeights) weights() {}

// ConvWeights are the weights of a Conv1D: one tensor [out][in][kernel].
type ConvWeights struct {
	Name   string // for error messages and dumps
	Weight Tensor
	Bias   []float32 // nil, or out values
}

// Shape implements Weights.
func (w ConvWeights) Shape() (ParamShape, error) {
	t := w.Weight
	if err := t.Check(); err != nil {
		return nil, fmt.Errorf("pass: conv weights %q: %w", w.Name, err)
	}
	if len(t.Shape) != 3 || slices.Min(t.Shape) < 1 {
		return nil, fmt.Errorf("pass: conv weights %q: want [out][in][kernel], each ≥ 1, given %v: %w", w.Name, t.Shape, ErrInvalid)
	}
	s := ConvShape{Out: t.Shape[0], In: t.Shape[1], Kernel: t.Shape[2], Type: t.Type, Bias: w.Bias != nil}
	if w.Bias != nil && len(w.Bias) != s.Out {
		return nil, fmt.Errorf("pass: conv weights %q: bias: want %d values, given %d: %w", w.Name, s.Out, len(w.Bias), ErrInvalid)
	}
	return s, nil
}

func (ConvWeights) weights() {}

// LSTMWeights are the weights of a stack of LSTM layers: Layers[l][d] is layer l in
// direction d (0 forward, 1 backward).
type LSTMWeights struct {
	Name   string // for error messages and dumps
	Layers [][]LSTMCell
}

// An LSTMCell holds the weights of one layer in one direction. The four gates are
// stacked along the first axis in the order i, f, g, o.
type LSTMCell struct {
	Input  Tensor    // [4·hidden][in]
	Hidden Tensor    // [4·hidden][hidden]
	Bias   []float32 // nil, or 4·hidden values; loaders add the two vectors of a file
}

// Shape implements Weights.
func (w LSTMWeights) Shape() (ParamShape, error) {
	if len(w.Layers) == 0 || len(w.Layers[0]) < 1 || len(w.Layers[0]) > 2 {
		return nil, fmt.Errorf("pass: lstm weights %q: want at least one layer of one or two directions: %w", w.Name, ErrInvalid)
	}
	s := LSTMShape{Layers: len(w.Layers), Directions: len(w.Layers[0])}
	for l, layer := range w.Layers {
		if len(layer) != s.Directions {
			return nil, fmt.Errorf("pass: lstm weights %q: layer %d: want %d directions, given %d: %w", w.Name, l, s.Directions, len(layer), ErrInvalid)
		}
		for d, cell := range layer {
			for _, t := range []Tensor{cell.Input, cell.Hidden} {
				if err := t.Check(); err != nil {
					return nil, fmt.Errorf("pass: lstm weights %q: layer %d, direction %d: %w", w.Name, l, d, err)
				}
				if len(t.Shape) != 2 || slices.Min(t.Shape) < 1 {
					return nil, fmt.Errorf("pass: lstm weights %q: layer %d, direction %d: %q: want two axes, each ≥ 1, given %v: %w", w.Name, l, d, t.Name, t.Shape, ErrInvalid)
				}
			}
			if l == 0 && d == 0 {
				s.In, s.Hidden = cell.Input.Shape[1], cell.Hidden.Shape[1]
			}
			in := s.In
			if l > 0 {
				in = s.Directions * s.Hidden
			}
			if want := []int{4 * s.Hidden, in}; !slices.Equal(cell.Input.Shape, want) {
				return nil, fmt.Errorf("pass: lstm weights %q: layer %d, direction %d: input weights: want %v, given %v: %w", w.Name, l, d, want, cell.Input.Shape, ErrInvalid)
			}
			if want := []int{4 * s.Hidden, s.Hidden}; !slices.Equal(cell.Hidden.Shape, want) {
				return nil, fmt.Errorf("pass: lstm weights %q: layer %d, direction %d: hidden weights: want %v, given %v: %w", w.Name, l, d, want, cell.Hidden.Shape, ErrInvalid)
			}
			if cell.Bias != nil && len(cell.Bias) != 4*s.Hidden {
				return nil, fmt.Errorf("pass: lstm weights %q: layer %d, direction %d: bias: want %d values, given %d: %w", w.Name, l, d, 4*s.Hidden, len(cell.Bias), ErrInvalid)
			}
		}
	}
	return s, nil
}

func (LSTMWeights) weights() {}
