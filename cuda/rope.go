package cuda

import (
	"context"
	"math"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// ropeParam is a loaded [pass.RopeWeights]: a row of cosines and then sines for each
// position.
type ropeParam struct {
	*memory
	positions, rot int
}

// loadRope computes a table of angles on its way to the device.
func (d *device) loadRope(ctx context.Context, w pass.RopeWeights, s pass.RopeShape) (backend.Memory, error) {
	bytes := 4 * s.Rot
	m, err := d.alloc("rope weights "+w.Name, s.Positions*bytes)
	if err != nil {
		return nil, err
	}
	values, words := make([]float32, s.Rot), make([]uint32, s.Rot)
	ready := -1 // position whose row is in words
	next := func(dst []byte, from int) error {
		for len(dst) > 0 {
			if p := from / bytes; p != ready {
				w.Row(values, p)
				for i, v := range values {
					words[i] = math.Float32bits(v)
				}
				ready = p
			}
			n := copy(dst, bytesOf(words)[from%bytes:])
			dst, from = dst[n:], from+n
		}
		return nil
	}
	if err := d.fill(ctx, m, 0, next, s.Positions*bytes); err != nil {
		m.Free()
		return nil, err
	}
	return &ropeParam{m, s.Positions, s.Rot}, nil
}

// rope compiles a Rope.
func (c *compiler) rope(op pass.Rope, cost pass.Cost) error {
	t := c.plan.Param(op.Table).(*ropeParam)
	half := t.rot / 2
	f := field{op.Batch, op.Rows, 4 * op.Heads * half} // a pair counts as a quad
	if f.empty() {
		return nil
	}
	k := c.call("rope_turn")
	args := kernels.Rope{
		X:     k.write(op.X, op.Batch, op.Rows, op.Heads*op.HeadDim),
		Table: kernels.F32(t.at),
		Pos:   k.index(op.Pos, op.Batch, op.Rows, t.positions),
		Head:  k.count(op.HeadDim), Half: uint32(half),
	}
	if op.Style == pass.RopeInterleaved {
		args.Interleaved = 1
	}
	if half%4 == 0 && op.HeadDim%4 == 0 {
		args.Vectors = vectors(kernels.VectorX, args.X, f)
	}
	args.PerHead = k.divisor(half)
	if args.Vectors != 0 {
		f.cols /= 4
		args.PerHead = k.divisor(half / 4)
	}
	var g grid
	args.Units, args.Cols, args.Quads, args.Rows, g = k.units(f)
	return run(k, args, g, 0, cost)
}
