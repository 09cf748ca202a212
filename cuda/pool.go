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
	columns := ceilDiv(op.Channels, poolAcross)
	name, blocks := "pool_stats", op.Batch*op.Height*columns
	if op.Width > kernels.StatsHeld {
		name, blocks = "pool_stats_wide", blocks*op.Count
	}
	k := c.call(name).because("width %d", op.Width)
	return run(k, kernels.StatsPool{
		X:      k.read(op.X, op.Batch, op.Height*op.Width, op.Channels),
		Mask:   k.read(op.Masks, op.Batch, op.Count, op.Frames),
		Y:      k.write(op.Y, op.Batch, op.Count, 2*op.Channels*op.Height),
		Height: k.count(op.Height), Width: k.count(op.Width), Channels: k.count(op.Channels),
		Masks: k.count(op.Count), Frames: k.count(op.Frames), Blocks: k.count(columns),
	}, grid{blocks, 1, 1}, 0, cost)
}
