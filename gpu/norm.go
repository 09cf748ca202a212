package gpu

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// packNorm lays out the weights of a norm: the gain of each channel, filled up with zeros
// to whole vectors, and the bias in the same way, if there is one.
func packNorm(w pass.NormWeights, limits driver.Limits) ([]packedBuffer, error) {
	n := len(w.Gain)
	stride := roundUp(n, 4)
	words := stride
	if w.Bias != nil {
		words *= 2
	}
	if most := limits.MaxStorageBindingSize; 4*uint64(words) > most {
		return nil, fmt.Errorf("norm weights %q: %d bytes exceed the device's %d for one binding: %w", w.Name, 4*words, most, pass.ErrUnsupported)
	}
	return []packedBuffer{{words: words, fill: func(dst []uint32, from int) error {
		for i := range dst {
			values, at := w.Gain, from+i
			if at >= stride {
				values, at = w.Bias, at-stride
			}
			dst[i] = 0
			if at < n {
				dst[i] = math.Float32bits(values[at])
			}
		}
		return nil
	}}}, nil
}

// whole returns all of a buffer as an operand.
func whole(m *memory) operand { return operand{memory: m, end: m.words} }

// rowwise is an op under compilation that makes a row of each row, in place or not.
type rowwise struct {
	numbered
	lanes   lanes
	x, y    lines
	rows    int // of all items
	of      int // of an item
	columns int
}

// rowwise begins a kernel of the rows of x and y, which are bound once if they are the
// same view.
func (c *compiler) rowwise(shader, entry string, x, y pass.View, batch, rows, columns int) rowwise {
	r := rowwise{lanes: chooseLanes(columns, c.limits), rows: batch * rows, of: rows, columns: columns}
	r.x, r.y = c.lines(x, batch, rows, columns, false), c.lines(y, batch, rows, columns, true)
	inPlace := x == y
	r.numbered = numbered{kernel{shader: shader, entry: entry, values: shaders.Values{
		"Entry": entry, "InPlace": inPlace, "Vectors": columns%4 == 0 && r.x.inFours() && r.y.inFours(), "Held": r.lanes.held,
	}}, []operand{r.y.operand}}
	r.lanes.set(r.values)
	r.bind("XBinding", !inPlace, r.x.operand)
	return r
}

// words returns the words that all kernels of rows begin with.
func (r rowwise) words() []uint32 {
	return append(append([]uint32{uint32(r.rows), uint32(r.of), uint32(r.columns), uint32(roundUp(r.columns, 4) / 4)}, r.x.words()...), r.y.words()...)
}

// workgroups returns how many take the rows.
func (r rowwise) workgroups() int { return roundUp(r.rows, r.lanes.rows()) / r.lanes.rows() }

// layernorm compiles a LayerNorm.
func (c *compiler) layernorm(op pass.LayerNorm, cost pass.Cost) error {
	if op.Rows == 0 {
		return nil
	}
	var table matrix
	if !op.Rotated.IsZero() {
		var err error
		if table, err = c.rotary(op.Table); err != nil {
			return err
		}
		if table.pieces() > 1 {
			return c.layernormInPieces(op, cost)
		}
	}
	p := c.plan.Param(op.W).(*param)
	r := c.rowwise("norm", "layer", op.X, op.Y, op.Batch, op.Rows, op.Cols)
	r.values["Key"], r.values["Bias"] = "u32", p.shape.(pass.NormShape).Bias
	r.bind("WeightsBinding", true, whole(p.buffers[0]))
	words := append(r.words(), math.Float32bits(op.Eps))
	return c.tiles(op.Name(), r.numbered, words, r.workgroups(), r.rotate(c, op, table), cost)
}

// rotate adds the second output to a kernel, if there is a table, and returns its words.
func (r *rowwise) rotate(c *compiler, op pass.LayerNorm, table matrix) []uint32 {
	r.values["Rotated"] = table.n > 0
	if table.n == 0 {
		r.bind("TurnedBinding", false, operand{})
		r.bind("TableBinding", false, operand{})
		r.position(c, indexed{numbers: numbers{kind: "none"}})
		return make([]uint32, 10)
	}
	turned := c.lines(op.Rotated, op.Batch, op.Rows, op.Cols, true)
	r.bind("TurnedBinding", true, turned.operand)
	r.bind("TableBinding", true, table.values(0))
	pos := c.index(op.Pos, op.Batch, op.Rows, table.n)
	r.position(c, pos)
	words := append(turned.words(), uint32(op.Cols/op.Heads), uint32(table.k/2), uint32(table.stride), uint32(pos.added*table.stride))
	return append(words, pos.words()...)
}

// layernormInPieces compiles a LayerNorm with a rotated output whose table has several
// pieces: the output is copied, and turned in place.
func (c *compiler) layernormInPieces(op pass.LayerNorm, cost pass.Cost) error {
	plain := op
	plain.Rotated = pass.View{}
	if err := c.layernorm(plain, cost); err != nil {
		return err
	}
	if err := c.copy(pass.Copy{From: op.Y, To: op.Rotated, Batch: op.Batch, Rows: op.Rows, Cols: op.Cols}, pass.Cost{}); err != nil {
		return err
	}
	return c.rope(pass.Rope{
		X: op.Rotated, Table: op.Table, Batch: op.Batch, Rows: op.Rows, Heads: op.Heads, HeadDim: op.Cols / op.Heads, Pos: op.Pos,
	}, pass.Cost{})
}

// l2norm compiles an L2Norm.
func (c *compiler) l2norm(op pass.L2Norm, cost pass.Cost) error {
	if op.Rows == 0 {
		return nil
	}
	r := c.rowwise("norm", "length", op.X, op.Y, op.Batch, op.Rows, op.Cols)
	r.values["Key"], r.values["Bias"] = "u32", false
	r.bind("WeightsBinding", false, operand{})
	words := append(r.words(), math.Float32bits(op.Eps))
	return c.tiles(op.Name(), r.numbered, words, r.workgroups(), r.rotate(c, pass.LayerNorm{}, matrix{}), cost)
}
