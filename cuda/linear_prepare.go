package cuda

import (
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// A prepared is the left operand of products: activations as F16, scaled by powers of two
// so that none is too large, in scratch.
type prepared struct {
	high, low region // low.bytes 0: rounded
	scales    region // inverse, F32
	norms     region // lengths of rows as vectors, F32; bytes 0: not known
	shared    bool   // one scale for an item, else one for each row
	rows      int    // of an item
	stride    int    // elements from a row to the next, a multiple of 8
	note      string // for Dump: where it comes from, if not from a launch before
}

// A preparation says what is prepared: rows that are the pixels of images of inLines ×
// inWidth, put into images of lines × width. Line y of those is the source's line y + top,
// and column x its column x + left; what lies outside is zero, or the source's line
// mirrored at its ends. Rows without any of that are images of one column.
type preparation struct {
	x                func(k *call) kernels.View // notes that the launch reads it
	items            int
	inLines, inWidth int
	lines, width     int
	top, left        int
	channels         int
	reflect          bool
	lengths          func(k *call) kernels.Items // lines of each item that there are; nil: all
	norms            bool                        // lengths of rows as vectors are wanted
	overlap          bool                        // rows of a product share elements: one scale for an item
}

// rowsOf returns the preparation of plain rows, each with a scale of its own.
func rowsOf(x func(k *call) kernels.View, items, rows, columns int) preparation {
	return preparation{x: x, items: items, inLines: rows, inWidth: 1, lines: rows, width: 1, channels: columns}
}

// prepare emits the launches that prepare a left operand, split unless operands may be
// rounded.
func (c *compiler) prepare(p preparation) (prepared, error) {
	out := prepared{rows: p.lines * p.width, stride: roundUp(p.channels, 8), shared: p.overlap}
	bytes := 2 * p.items * out.rows * out.stride
	out.high = c.temporary(bytes)
	if !c.fast {
		out.low = c.temporary(bytes)
	}
	args := kernels.Prepare{
		Stride: int64(out.stride), Top: int64(p.top), Left: int64(p.left),
		InLines: uint32(p.inLines), InWidth: uint32(p.inWidth), Lines: uint32(p.lines), Width: uint32(p.width),
		Items: uint32(p.items), Columns: uint32(p.channels),
	}
	if p.reflect {
		args.Reflect = 1
	}
	source := func(k *call) {
		args.X = p.x(k)
		if p.lengths != nil {
			args.Lengths = p.lengths(k)
		} else {
			args.Lengths.Usual = uint32(p.inLines)
		}
	}
	target := func(k *call) {
		args.High, args.Scales = kernels.F16(k.to(out.high)), kernels.F32(k.to(out.scales))
		if !c.fast {
			args.Low = kernels.F16(k.to(out.low))
		}
		if out.norms.bytes > 0 {
			args.Norms = kernels.F32(k.to(out.norms))
		}
	}
	cost := pass.Cost{Bytes: float64(p.items) * float64(out.rows) * float64(out.stride) * 8}
	if !p.overlap {
		out.scales = c.temporary(4 * p.items * out.rows)
		if p.norms {
			out.norms = c.temporary(4 * p.items * out.rows)
		}
		name, rows := "tile_prepare_256", 1
		if p.channels <= 1536 {
			name, rows = "tile_prepare_32", 4
		}
		k := c.call(name)
		source(k)
		target(k)
		return out, run(k, args, grid{ceilDiv(p.items*out.rows, rows), 1, 1}, 0, cost)
	}
	// The parts of an item whose peaks are found on their own: the number must not depend
	// on the device, though a peak does not depend on it.
	out.scales = c.temporary(4 * p.items)
	parts := min(max(ceilDiv(p.inLines*p.inWidth*p.channels, 16384), 1), 128)
	peaks := c.temporary(4 * p.items * parts)
	args.Parts = uint32(parts)
	k := c.call("tile_peaks")
	source(k)
	args.Peaks = kernels.F32(k.to(peaks))
	if err := run(k, args, grid{p.items * parts, 1, 1}, 0, cost); err != nil {
		return out, err
	}
	k = c.call("tile_prepare_items")
	source(k)
	target(k)
	args.Peaks = kernels.F32(k.from(peaks))
	blocks := ceilDiv(out.rows*out.stride/8, 4*256)
	return out, run(k, args, grid{p.items * blocks, 1, 1}, 0, cost)
}
