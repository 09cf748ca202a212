package cases

import (
	"fmt"
	"math"
	"slices"

	"github.com/tandem-gpu/tandem/pass"
)

// A Tensor is what an argument of an op holds, dense and row-major. Elements are kept
// as words, so that every bit of an F32 element survives.
type Tensor struct {
	Name  string     // the field of the op: "A", "Lengths"
	Type  pass.DType // F32 or U32
	Shape []int      // [batch][rows][cols], or [n] for lengths and indices, [] for one index
	Words []uint32
}

// F32 returns a tensor of float32 values.
func F32(name string, values []float32, shape ...int) Tensor {
	return Tensor{name, pass.F32, shape, floatWords(values)}
}

// U32 returns a tensor of uint32 values.
func U32(name string, values []uint32, shape ...int) Tensor {
	return Tensor{name, pass.U32, shape, values}
}

// Float32s returns the elements as float32.
func (t Tensor) Float32s() []float32 {
	values := make([]float32, len(t.Words))
	for i, w := range t.Words {
		values[i] = math.Float32frombits(w)
	}
	return values
}

func (t Tensor) float64s() []float64 {
	values := make([]float64, len(t.Words))
	for i, w := range t.Words {
		values[i] = float64(math.Float32frombits(w))
	}
	return values
}

// volume returns the number of elements of a shape.
func volume(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// sameShape reports whether two shapes are equal but for leading ones.
func sameShape(a, b []int) bool { return slices.Equal(trimOnes(a), trimOnes(b)) }

func trimOnes(shape []int) []int {
	for len(shape) > 0 && shape[0] == 1 {
		shape = shape[1:]
	}
	return shape
}

func floatWords(values []float32) []uint32 {
	words := make([]uint32, len(values))
	for i, v := range values {
		words[i] = math.Float32bits(v)
	}
	return words
}

// rounded returns float64 values as the words of the nearest float32.
func rounded(values []float64) []uint32 {
	words := make([]uint32, len(values))
	for i, v := range values {
		words[i] = math.Float32bits(float32(v))
	}
	return words
}

// find returns the tensor of a name.
func find(tensors []Tensor, name string) (Tensor, bool) {
	i := slices.IndexFunc(tensors, func(t Tensor) bool { return t.Name == name })
	if i < 0 {
		return Tensor{}, false
	}
	return tensors[i], true
}

func invalid(format string, a ...any) error {
	return fmt.Errorf("cases: "+format+": %w", append(a, pass.ErrInvalid)...)
}
