package gpu

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// gates is how many rows of weights a cell of an LSTM has: i, f, g, o.
const gates = 4

// A recurrentLayout says how the weights of an LSTM lie in device buffers: for each
// layer a matrix of the input weights of all directions, whose rows are
// [direction][cell][gate] so that a product gives a cell's gates side by side, with
// biases; then a buffer of the recurrent weights [direction][depth][cell][gate], where
// depth is hidden filled up with zeros.
type recurrentLayout struct {
	shape  pass.LSTMShape
	depth  int
	inputs []matrixLayout // of each layer
}

// recurrentGrain is what depth is a multiple of: slices of the summed axis that are
// whole vectors.
const recurrentGrain = 32

func layRecurrent(s pass.LSTMShape, limits driver.Limits) (recurrentLayout, error) {
	r := recurrentLayout{shape: s, depth: roundUp(s.Hidden, recurrentGrain)}
	in := s.In
	for range s.Layers {
		m, err := layMatrix(pass.LinearShape{N: s.Directions * gates * s.Hidden, K: in, Type: pass.F32, Bias: true}, limits)
		if err != nil {
			return r, err
		}
		r.inputs = append(r.inputs, m)
		in = s.Directions * s.Hidden
	}
	if most := limits.MaxStorageBindingSize; 4*uint64(r.words()) > most {
		return r, fmt.Errorf("%v: %d bytes of recurrent weights exceed the device's %d for one binding: %w", s, 4*r.words(), most, pass.ErrUnsupported)
	}
	return r, nil
}

// words returns the words of the recurrent weights of one direction.
func (r recurrentLayout) words() int { return r.depth * r.shape.Hidden * gates }

// layer returns where the buffers of a layer begin.
func (r recurrentLayout) layer(l int) int {
	n := 0
	for _, m := range r.inputs[:l] {
		n += m.buffers() + 1
	}
	return n
}

// source returns the row of a cell's tensors, whose gates are stacked, for a row of the
// device's order.
func (r recurrentLayout) source(row int) (direction, at int) {
	h := r.shape.Hidden
	direction, row = row/(gates*h), row%(gates*h)
	return direction, row%gates*h + row/gates
}

func packLSTM(w pass.LSTMWeights, s pass.LSTMShape, limits driver.Limits) ([]packedBuffer, error) {
	r, err := layRecurrent(s, limits)
	if err != nil {
		return nil, err
	}
	var buffers []packedBuffer
	for l, layer := range w.Layers {
		buffers = append(buffers, r.packInput(layer, r.inputs[l])...)
		buffers = append(buffers, packedBuffer{words: s.Directions * r.words(), fill: r.fillHidden(layer)})
	}
	return buffers, nil
}

func (r recurrentLayout) packInput(layer []pass.LSTMCell, m matrixLayout) []packedBuffer {
	row := make([]float32, m.k)
	encode := func(dst []uint32, n int) error {
		direction, at := r.source(n)
		if err := layer[direction].Input.Decode(row, at*m.k); err != nil {
			return err
		}
		for i, v := range row {
			dst[i] = math.Float32bits(v)
		}
		clear(dst[m.k:])
		return nil
	}
	bias := func(n int) float32 {
		direction, at := r.source(n)
		if layer[direction].Bias == nil {
			return 0
		}
		return layer[direction].Bias[at]
	}
	return m.pack(encode, nil, bias)
}

// fillHidden turns the rows of the recurrent weights into columns. For every block of
// words that is asked for it reads all rows again, so that no copy of them is held.
func (r recurrentLayout) fillHidden(layer []pass.LSTMCell) func([]uint32, int) error {
	h := r.shape.Hidden
	row := make([]float32, h)
	return func(dst []uint32, from int) error {
		clear(dst)
		width := gates * h // words for one k
		for direction := range layer {
			base := direction * r.words()
			first := max((from-base)/width, 0)
			end := min((from+len(dst)-base+width-1)/width, h)
			if from+len(dst) <= base || first >= end {
				continue
			}
			for n := range width {
				_, at := r.source(n)
				if err := layer[direction].Hidden.Decode(row, at*h); err != nil {
					return err
				}
				for k := first; k < end; k++ {
					if to := base + k*width + n - from; to >= 0 && to < len(dst) {
						dst[to] = math.Float32bits(row[k])
					}
				}
			}
		}
		return nil
	}
}
