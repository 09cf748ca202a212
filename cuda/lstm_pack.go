package cuda

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// lstmParam is the weights of a stack of LSTM layers on the device.
type lstmParam struct {
	shape  pass.LSTMShape
	layers []lstmLayer
}

// lstmLayer is the weights of one layer.
type lstmLayer struct {
	input *matrix // rows [direction][gate][hidden]
	bias  *memory // F32, as many
	// hidden are the recurrent weights, F32 [direction][hidden][gate][depth], whose depth
	// is hidden filled up with zeros: the kernels keep them in registers, or read the four
	// rows of a unit side by side.
	hidden *memory
}

// Free implements backend.Memory.
func (p *lstmParam) Free() {
	for _, l := range p.layers {
		l.input.Free()
		l.bias.Free()
		l.hidden.Free()
	}
	p.layers = nil
}

// lstmGates is how many rows of weights a unit has: i, f, g, o.
const lstmGates = 4

// lstmDepth returns the elements of a row of the recurrent weights.
func lstmDepth(hidden int) int { return roundUp(hidden, 4) }

// loadLSTM puts the weights of an LSTM on the device.
func (d *device) loadLSTM(ctx context.Context, w pass.LSTMWeights, s pass.LSTMShape) (*lstmParam, error) {
	p := &lstmParam{shape: s}
	in := s.In
	for l, cells := range w.Layers {
		p.layers = append(p.layers, lstmLayer{})
		if err := p.layers[l].load(ctx, d, w.Name, cells, s.Hidden, in); err != nil {
			p.Free()
			return nil, fmt.Errorf("lstm weights %q: layer %d: %w", w.Name, l, err)
		}
		in = s.Directions * s.Hidden
	}
	return p, nil
}

func (l *lstmLayer) load(ctx context.Context, d *device, label string, cells []pass.LSTMCell, hidden, in int) error {
	rows := lstmGates * hidden
	typ := cells[0].Input.Type
	for _, c := range cells {
		if c.Input.Type != typ {
			typ = pass.F32
		}
	}
	var err error
	if l.input, err = d.newMatrix(label+" input", typ, len(cells)*rows, in); err != nil {
		return err
	}
	var bias []uint32
	for i, c := range cells {
		if c.Input.Type == typ {
			err = l.input.fillRows(ctx, c.Input, i*rows, rows)
		} else {
			same := func(row int) int { return row }
			err = fillDecoded(ctx, d, l.input.values, i*rows*l.input.stride, c.Input, rows, in, l.input.stride, same)
		}
		if err != nil {
			return err
		}
		l.input.tensors = append(l.input.tensors, rows)
		if c.Bias == nil {
			bias = append(bias, make([]uint32, rows)...)
		}
		bias = appendBits(bias, c.Bias)
	}
	if l.bias, err = d.upload(ctx, label+" bias", bytesOf(bias)); err != nil {
		return err
	}
	depth := lstmDepth(hidden)
	if l.hidden, err = d.alloc(label+" hidden", 4*len(cells)*rows*depth); err != nil {
		return err
	}
	for i, c := range cells {
		source := func(row int) int { return row%lstmGates*hidden + row/lstmGates }
		if err := fillDecoded(ctx, d, l.hidden, i*rows*depth, c.Hidden, rows, hidden, depth, source); err != nil {
			return err
		}
	}
	return nil
}

// fillDecoded puts rows of a tensor, as F32, into memory from an element on: rows of stride
// elements with zeros at their ends, each from the row that source names.
func fillDecoded(ctx context.Context, d *device, m *memory, at int, t pass.Tensor, rows, cols, stride int, source func(row int) int) error {
	values := make([]float32, cols)
	bytes := make([]byte, 4*cols)
	decoded := -1
	next := func(dst []byte, from int) error {
		return spread(dst, from, 4*stride, 4*cols, func(b []byte, row, at int) error {
			if row != decoded {
				if err := t.Decode(values, source(row)*cols); err != nil {
					return err
				}
				for i, v := range values {
					binary.LittleEndian.PutUint32(bytes[4*i:], math.Float32bits(v))
				}
				decoded = row
			}
			copy(b, bytes[at:])
			return nil
		})
	}
	return d.fill(ctx, m, 4*at, next, 4*rows*stride)
}

// biasAt returns where the bias of a row of the input weights is.
func (l *lstmLayer) biasAt(row int) driver.Pointer { return l.bias.at + driver.Pointer(4*row) }
