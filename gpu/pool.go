package gpu

import (
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// Lines of more than longLine columns are cut into chunks; see pool.wgsl.
const (
	longLine  = 512
	poolChunk = 256
)

// partWords is what is known of a chunk and channel.
const partWords = 8

// statspool compiles a StatsPool. Which frame of a mask weighs which column is worked out
// here, because the product of the two numbers may exceed 32 bits.
func (c *compiler) statspool(op pass.StatsPool, cost pass.Cost) error {
	if op.Height == 0 || op.Channels == 0 || op.Count == 0 {
		return nil
	}
	s := statsPool{c: c, op: op, chunk: op.Width, chunks: 1, frames: make([]uint32, op.Width)}
	for i := range s.frames {
		s.frames[i] = uint32(int64(i) * int64(op.Frames) / int64(op.Width))
	}
	s.table = c.fixed(s.frames)
	if op.Width > longLine || !c.holds(op.X, op.Batch, pass.Span{To: op.Width}, op.Channels) {
		s.chunk, s.chunks = poolChunk, (op.Width+poolChunk-1)/poolChunk
	}
	all := s.all()
	if s.holds(all, pass.Span{To: s.units()}) && s.fitsParts(op.Batch*op.Count) {
		return s.masks(all, []pass.Span{{To: s.units()}}, cost)
	}
	if op.Batch > 1 {
		return c.inHalves(op, op.Batch, func(part pass.Checked) error { return c.statspool(part.Op.(pass.StatsPool), part.Cost) })
	}
	for m := range op.Count {
		mask := pass.Span{From: m, To: m + 1}
		list, ok := runs(pass.Span{To: s.units()}, func(u pass.Span) bool { return s.holds(mask, u) })
		if !ok || !s.fitsParts(1) {
			return c.tooMuch("what is found for a mask, or a chunk of the image,")
		}
		if err := s.masks(mask, list, share(cost, 1, op.Count)); err != nil {
			return err
		}
	}
	return nil
}

// A statsPool is a StatsPool on its way to dispatches. Its units are chunks of lines, or
// lines.
type statsPool struct {
	c             *compiler
	op            pass.StatsPool
	chunk, chunks int // columns of a chunk, and how many a line has
	frames        []uint32
	table         operand // frames, on the device
}

func (s *statsPool) units() int { return s.op.Height * s.chunks }

func (s *statsPool) all() pass.Span { return pass.Span{To: s.op.Count} }

// rows returns the rows of X of some units.
func (s *statsPool) rows(units pass.Span) pass.Span {
	row := func(u int) int { return u/s.chunks*s.op.Width + u%s.chunks*s.chunk }
	return pass.Span{From: row(units.From), To: row(units.To)}
}

// columns returns the columns that some units have, those of all lines if they have
// several.
func (s *statsPool) columns(units pass.Span) pass.Span {
	if units.From/s.chunks != (units.To-1)/s.chunks {
		return pass.Span{To: s.op.Width}
	}
	first := units.From % s.chunks * s.chunk
	return pass.Span{From: first, To: min(first+units.Len()*s.chunk, s.op.Width)}
}

// weights returns what is bound of some masks, as rows of an element each: all, or what
// some columns need of one.
func (s *statsPool) weights(masks, columns pass.Span) (v pass.View, frames pass.Span) {
	op := s.op
	return op.Masks.At(masks.From * op.Masks.RowStride).Rows(1), pass.Span{From: int(s.frames[columns.From]), To: int(s.frames[columns.To-1]) + 1}
}

// holds reports whether bindings hold what some units take, for all masks or for one.
func (s *statsPool) holds(masks, units pass.Span) bool {
	c, op, columns := s.c, s.op, s.columns(units)
	v, frames := s.weights(masks, columns)
	return c.holds(op.X, op.Batch, s.rows(units), op.Channels) && c.holds(op.Y, op.Batch, masks, 2*op.Channels*op.Height) && c.fitsScratch(columns.Len()) &&
		(masks == s.all() && c.holds(op.Masks, op.Batch, masks, op.Frames) || op.Batch == 1 && masks.Len() == 1 && c.holds(v, 1, frames, 1))
}

func (s *statsPool) fitsParts(masks int) bool {
	return s.chunks == 1 || s.c.fitsScratch(partWords*masks*s.units()*s.op.Channels)
}

// masks emits the kernels for all masks, or for one in runs of units.
func (s *statsPool) masks(masks pass.Span, list []pass.Span, cost pass.Cost) error {
	c, op := s.c, s.op
	y := c.window(op.Y, op.Batch, masks, 2*op.Channels*op.Height, true)
	if s.chunks == 1 {
		for _, u := range list {
			if err := s.emit("stats", y, y.operand, masks, u, share(cost, u.Len(), s.units())); err != nil {
				return err
			}
		}
		return nil
	}
	parts := c.scratch(partWords * op.Batch * masks.Len() * s.units() * op.Channels)
	defer c.giveBack(parts)
	parts.write = true
	for _, u := range list {
		if err := s.emit("moments", y, parts, masks, u, share(cost, u.Len(), s.units())); err != nil {
			return err
		}
	}
	parts.write = false
	const across = 64 // channels of a workgroup that joins
	blocks := roundUp(op.Channels, across) / across
	k := numbered{s.kernel("join"), []operand{y.operand, parts}}
	tiles := pass.Span{From: masks.From * op.Height * blocks, To: ((op.Batch-1)*op.Count + masks.To) * op.Height * blocks}
	words := s.words(blocks, lines{}, lines{}, y, 0, masks)
	return c.someTiles(op.Name(), k, words, tiles, nil, pass.Cost{Bytes: 4 * float64(parts.end)})
}

func (s *statsPool) kernel(entry string) kernel {
	return kernel{shader: "pool", entry: entry, values: shaders.Values{"Entry": entry, "Down": columnsDown(s.c.limits)}}
}

// words returns the words of all kernels.
func (s *statsPool) words(blocks int, x, masks, y lines, frames uint32, bound pass.Span) []uint32 {
	op := s.op
	words := []uint32{uint32(op.Height), uint32(op.Width), uint32(op.Channels), uint32(op.Count), uint32(blocks)}
	words = append(append(append(words, x.words()...), masks.words()...), y.words()...)
	return append(words, frames, uint32(s.chunk), uint32(s.chunks), uint32(-bound.From*s.units()*op.Channels*2))
}

// emit emits the kernel that sums for some units.
func (s *statsPool) emit(entry string, y lines, out operand, masks, units pass.Span, cost pass.Cost) error {
	c, op, columns := s.c, s.op, s.columns(units)
	x := c.window(op.X, op.Batch, s.rows(units), op.Channels, false)
	weights := lines{row: op.Masks.RowStride}
	if masks == s.all() && c.holds(op.Masks, op.Batch, masks, op.Frames) {
		weights = c.lines(op.Masks, op.Batch, op.Count, op.Frames, false)
	} else {
		v, frames := s.weights(masks, columns)
		w := c.window(v, 1, frames, 1, false)
		weights.operand, weights.shift = w.operand, w.shift-masks.From*op.Masks.RowStride
	}
	table, shift := c.part(s.table, columns.From, columns.To, false)
	blocks := (op.Channels + columnsAcross - 1) / columnsAcross
	k := numbered{s.kernel(entry), []operand{out, x.operand, weights.operand, table}}
	tile := func(mask, unit int) int { return (mask*s.units() + unit) * blocks }
	tiles := pass.Span{From: tile(masks.From, units.From), To: tile((op.Batch-1)*op.Count+masks.To-1, units.To)}
	return c.someTiles(op.Name(), k, s.words(blocks, x, weights, y, shift-uint32(columns.From), masks), tiles, nil, cost)
}
