package gpu

import (
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// statspool compiles a StatsPool. Which frame of a mask weighs which column is worked out
// here, because the product of the two numbers may exceed 32 bits.
func (c *compiler) statspool(op pass.StatsPool, cost pass.Cost) error {
	if op.Height == 0 || op.Channels == 0 || op.Count == 0 {
		return nil
	}
	frames := make([]uint32, op.Width)
	for i := range frames {
		frames[i] = uint32(int64(i) * int64(op.Frames) / int64(op.Width))
	}
	x, masks := c.lines(op.X, op.Batch, op.Height*op.Width, op.Channels, false), c.lines(op.Masks, op.Batch, op.Count, op.Frames, false)
	y := c.lines(op.Y, op.Batch, op.Count, 2*op.Channels*op.Height, true)
	k := numbered{kernel{shader: "pool", entry: "stats", values: shaders.Values{"Down": columnsDown(c.limits)}},
		[]operand{y.operand, x.operand, masks.operand, c.fixed(frames)}}
	blocks := (op.Channels + columnsAcross - 1) / columnsAcross
	words := []uint32{uint32(op.Height), uint32(op.Width), uint32(op.Channels), uint32(op.Count), uint32(blocks)}
	words = append(append(append(words, x.words()...), masks.words()...), y.words()...)
	return c.tiles(op.Name(), k, append(words, 0), op.Batch*op.Count*op.Height*blocks, nil, cost)
}
