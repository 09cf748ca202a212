package cuda

import (
	"math"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

func (c *compiler) fill(op pass.Fill, cost pass.Cost) error {
	bits := op.Word
	if op.To.Buffer.Type() == pass.F32 {
		bits = math.Float32bits(op.Value)
	}
	k := c.call("move_fill")
	return run(k, kernels.Fill{
		Y:    k.writeWords(op.To, op.Batch, op.Rows, op.Cols),
		Rows: uint32(op.Rows), Batch: uint32(op.Batch), Cols: uint32(op.Cols),
		Value: bits,
	}, grid{op.Batch * op.Rows}, 0, cost)
}
