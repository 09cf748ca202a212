package cuda

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// A product is out[r][j] = epilogue(Σₛ Σₖ a[r][s][k]·w[j][s][k] + residual + bias[j]) on
// tensor cores. Its rows are the places of images: items of lines of width. For a matrix
// product an item is one line; for a convolution along time too, whose rows begin Stride
// steps apart and overlap; for one over images the sum has a segment for each line of the
// kernel.
type product struct {
	a                   prepared
	items, lines, width int  // rows: items·lines·width
	whole               int  // rows of a whole item, if it may come in parts, which have the same bits; 0: no matter
	line, step, segment int  // elements of a from a line of rows, a row, a segment to the next
	plain               bool // no tensor map describes a
	last                bool // no later op reads a

	w               halves
	columns         pass.Span // rows of w
	segments, depth int       // depth is a multiple of 8

	bias  driver.Pointer // of the column columns.From; 0: none
	dual  driver.Pointer // biases of the columns from dualFrom on; 0: none
	duals pass.Span      // columns, counted from columns.From, that are given again
	shift int            // elements of out from a column to where it is given again

	// out and residual note the use of memory by the launch that writes, and reads it.
	out      func(k *call) kernels.View
	residual func(k *call) kernels.View // nil: none
	epilogue pass.Epilogue
	halves   *boundedRows // out is F16; nil: it is F32
	note     string       // for Dump; "": nothing to say

	// Rows of an item that count, see kernels.Tile; lengths nil: all.
	lengths                             func(k *call) kernels.Items
	lengthAdd, lengthStride, lengthFrom int
}

// rows returns how many rows a product has.
func (p *product) rows() int { return p.items * p.lines * p.width }

// tile emits the launches of a product.
func (c *compiler) tile(p product, cost pass.Cost) error {
	if p.rows() == 0 || p.columns.Len() <= 0 {
		return nil
	}
	if err := p.check(); err != nil {
		return err
	}
	t, why := c.decide(&p)
	if p.note != "" {
		why += "; " + p.note
	}
	switch {
	case t.wide.Columns > 0:
		err := c.tileWide(p, t, why, cost)
		if err == nil {
			return nil
		}
		var refused *driver.Error
		if !errors.As(err, &refused) || refused.Code != driver.InvalidValue {
			return err
		}
		// The driver makes no map of such operands, as rows that overlap.
		t = tileChoice{rows: 128, columns: 128, splits: 1}
		why = fmt.Sprintf("%v: %v", t, err)
	case t.splits > 1:
		return c.tileSplit(p, t, why, cost)
	}
	k := c.call(t.kernel(p.parts()))
	args := p.args(k)
	args.Splits = 1
	p.results(k, &args)
	return run(k.says(why), args, t.grid(p.rows(), p.columns.Len()), t.shared(p.parts(), c.d.attributes.capability), cost)
}

// A tileShape is all of a product that decides between tiles.
type tileShape struct {
	items, lines, width, whole, columns, segments, depth, parts int
	straight                                                    bool
}

// A tileDecision is what was decided for a shape, and why. A recording has few shapes and
// many products.
type tileDecision struct {
	tile tileChoice
	why  string
}

// decide chooses between the tiles for a product, and says why that one.
func (c *compiler) decide(p *product) (t tileChoice, why string) {
	shape := tileShape{p.items, p.lines, p.width, p.whole, p.columns.Len(), p.segments, p.depth, p.parts(), p.straight()}
	if was, ok := c.tiles[shape]; ok {
		return was.tile, was.why
	}
	ways, rule := tileWays(p, c.d.attributes.sms, c.has)
	names := make([]string, len(ways))
	for i, t := range ways {
		names[i] = t.String()
	}
	name, why := c.choose(p.boundary(), rule, names...)
	t, why = ways[slices.Index(names, name)], name+": "+why
	if c.tiles == nil {
		c.tiles = map[tileShape]tileDecision{}
	}
	c.tiles[shape] = tileDecision{t, why}
	return t, why
}

// boundary names a product for the tune file.
func (p *product) boundary() string {
	name := fmt.Sprintf("product %d×%d×%d in %d", p.rows(), p.columns.Len(), p.segments*p.depth, p.parts())
	if !p.straight() {
		name += " over images"
	}
	return name
}

// straight reports whether the rows of an item, and the sum, go on in equal steps, of which
// a tensor map can be made.
func (p *product) straight() bool { return p.lines == 1 && p.line == 0 && p.segments == 1 && !p.plain }

// tileSplit emits a product whose sum is made in parts, and what adds them.
func (c *compiler) tileSplit(p product, t tileChoice, why string, cost pass.Cost) error {
	rows, columns := p.rows(), p.columns.Len()
	sums := c.temporary(4 * t.splits * rows * columns)
	k := c.call(t.kernel(p.parts()))
	args := p.args(k)
	args.Splits, args.Sums = uint32(t.splits), kernels.F32(k.to(sums))
	if err := run(k.says(why), args, t.grid(rows, columns), t.shared(p.parts(), c.d.attributes.capability), cost); err != nil {
		return err
	}
	k = c.call("tile_sum")
	args = p.args(k)
	args.Splits, args.Sums = uint32(t.splits), kernels.F32(k.from(sums))
	p.results(k, &args)
	return run(k, args, grid{ceilDiv(rows*ceilDiv(columns, 4), 256), 1, 1}, 0, pass.Cost{Bytes: 4 * float64(t.splits) * float64(rows) * float64(columns)})
}

// check refuses what kernels cannot count.
func (p *product) check() error {
	const most = 1<<31 - 1
	if p.rows() > most-256 || p.columns.Len() > most-256 || p.depth > most-256 || p.segments > most {
		return fmt.Errorf("product of %d rows, %d columns, %d × %d deep: want at most 2^31 − 257 of each: %w",
			p.rows(), p.columns.Len(), p.segments, p.depth, pass.ErrUnsupported)
	}
	if p.depth%8 != 0 || p.a.stride%8 != 0 || p.line%8 != 0 || p.step%8 != 0 || p.segment%8 != 0 || p.w.stride%8 != 0 || p.w.segment%8 != 0 {
		return fmt.Errorf("product: want strides and depth in eights, given %d, %d, %d, %d, %d, %d, %d: %w",
			p.depth, p.a.stride, p.line, p.step, p.segment, p.w.stride, p.w.segment, pass.ErrInvalid)
	}
	return nil
}

// parts returns of how many products the sum of exact operands consists: 1 if they are
// rounded, 2 if only the left one is split, 3 if both are.
func (p *product) parts() int {
	switch {
	case p.a.low.bytes == 0:
		return 1
	case p.w.low == 0:
		return 2
	}
	return 3
}

// args returns the operands of a product, and notes that they are read.
func (p *product) args(k *call) kernels.Tile {
	shift := driver.Pointer(2 * p.columns.From * p.w.stride)
	a := kernels.Tile{
		A: kernels.F16(k.from(p.a.high)), AScale: kernels.F32(k.from(p.a.scales)),
		B:     kernels.F16(p.w.high + shift),
		AItem: int64(p.a.rows) * int64(p.a.stride), ALine: int64(p.line), AStep: int64(p.step), ASegment: int64(p.segment),
		BRow: int64(p.w.stride), BSegment: int64(p.w.segment),
		Rows: uint32(p.rows()), Columns: uint32(p.columns.Len()), ItemRows: uint32(p.lines * p.width), Width: uint32(p.width),
		ScaleRows: 1, Segments: uint32(p.segments), Depth: uint32(p.depth), Last: flag(p.last),
	}
	if p.a.shared {
		a.ScaleRows = a.ItemRows
	}
	if parts := p.parts(); parts > 1 {
		a.ALow = kernels.F16(k.from(p.a.low))
		if parts > 2 {
			a.BLow = kernels.F16(p.w.low + shift)
		}
	}
	if p.w.scales != 0 {
		a.BScale = kernels.F32(p.w.scales + driver.Pointer(4*p.columns.From))
	}
	return a
}

// results adds what the launch needs that writes the output.
func (p *product) results(k *call, a *kernels.Tile) {
	a.C = p.out(k)
	if h := p.halves; h != nil {
		a.Scales, a.Norms = kernels.F32(k.to(h.scales)), kernels.F32(k.from(p.a.norms))
		a.Reach, a.Lift, a.Most = h.reach, h.lift, h.most
	}
	if p.residual != nil {
		a.Residual = p.residual(k)
	}
	a.Bias = kernels.F32(p.bias)
	if p.dual != 0 {
		a.Dual = kernels.F32(p.dual)
		a.DualFrom, a.DualTo, a.DualShift = uint32(p.duals.From), uint32(p.duals.To), int32(p.shift)
	}
	if p.lengths != nil {
		a.Lengths = p.lengths(k)
		a.LengthAdd, a.LengthStride, a.LengthFrom = int32(p.lengthAdd), uint32(p.lengthStride), uint32(p.lengthFrom)
	}
	a.Epilogue = epilogue(p.epilogue)
}
