package gpu

import (
	"math"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// layRope lays out a table of angles: a matrix with a row for each position, of cosines
// and then sines.
func layRope(s pass.RopeShape, limits driver.Limits) (matrixLayout, error) {
	return layMatrix(pass.LinearShape{N: s.Positions, K: s.Rot, Type: pass.F32}, limits)
}

func packRope(w pass.RopeWeights, s pass.RopeShape, limits driver.Limits) ([]packedBuffer, error) {
	m, err := layRope(s, limits)
	if err != nil {
		return nil, err
	}
	row := make([]float32, s.Rot)
	encode := func(dst []uint32, position int) error {
		w.Row(row, position)
		for i, v := range row {
			dst[i] = math.Float32bits(v)
		}
		clear(dst[s.Rot:])
		return nil
	}
	return m.pack(encode, nil, nil), nil
}

// rotary returns a table of angles on the device.
func (c *compiler) rotary(h pass.Param) (matrix, error) {
	p := c.plan.Param(h).(*param)
	layout, err := layRope(p.shape.(pass.RopeShape), c.limits)
	return matrix{layout, p.buffers}, err
}

// position adds the index of a position to a kernel.
func (n *numbered) position(c *compiler, x indexed) {
	n.values["PosIndex"] = x.kind == "device"
	n.bind("PosBinding", x.kind == "device", x.o)
	n.status(c, x.numbers)
}

// rope compiles a Rope: a dispatch for each piece of the table that its positions may be
// in.
func (c *compiler) rope(op pass.Rope, cost pass.Cost) error {
	t, err := c.rotary(op.Table)
	if err != nil {
		return err
	}
	half := t.k / 2
	f := field{op.Batch, op.Rows, op.Heads * half}
	if f.empty() {
		return nil
	}
	x := c.lines(op.X, op.Batch, op.Rows, op.Heads*op.HeadDim, true)
	pos := c.index(op.Pos, op.Batch, op.Rows, t.n)
	for i := range t.pieces() {
		rows := t.piece(i)
		if pos.kind == "none" && (pos.added >= rows.To || pos.added+op.Rows <= rows.From) {
			continue
		}
		k := numbered{kernel{shader: "rope", entry: "rope", values: shaders.Values{
			"Interleaved": op.Style == pass.RopeInterleaved,
		}}, []operand{x.operand, t.values(i)}}
		k.position(c, pos)
		words := append(x.words(), uint32(op.HeadDim), uint32(half), uint32(t.stride), uint32(pos.added), uint32(rows.From), uint32(rows.Len()))
		vectors := half%4 == 0 && op.HeadDim%4 == 0 && x.inFours()
		if err := c.visit(op.Name(), k, f, vectors, append(words, pos.words()...), share(cost, rows.Len(), t.n)); err != nil {
			return err
		}
	}
	return nil
}
