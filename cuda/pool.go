package cuda

import (
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// poolAcross is how many channels a block of a StatsPool takes.
const poolAcross = 32

// statspool compiles a StatsPool.
func (c *compiler) statspool(op pass.StatsPool, cost pass.Cost) error {
	if op.Batch == 0 || op.Height == 0 || op.Channels == 0 || op.Count == 0 {
		return nil
	}
	k := c.call("pool_stats")
	columns := ceilDiv(op.Channels, poolAcross)
	return run(k, kernels.StatsPool{
		X:      k.read(op.X, op.Batch, op.Height*op.Width, op.Channels),
		Mask:   k.read(op.Masks, op.Batch, op.Count, op.Frames),
		Y:      k.write(op.Y, op.Batch, op.Count, 2*op.Channels*op.Height),
		Height: k.count(op.Height), Width: k.count(op.Width), Channels: k.count(op.Channels),
		Masks: k.count(op.Count), Frames: k.count(op.Frames), Blocks: k.count(columns),
	}, grid{op.Batch * op.Count * op.Height * columns, 1, 1}, 0, cost)
}
