package gpu

import (
	"fmt"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
	"github.com/tandem-gpu/tandem/shaders"
)

// A cacheLayout says how a cache lies in device buffers. A slab is a head of an item,
// item after item. A piece, a buffer of keys and one of values, has some slabs with all
// their positions; if one slab is larger than a binding, some positions of one slab.
type cacheLayout struct {
	slabs, capacity int
	quads           int // of a head
	quadWords       int // words of four elements
	each            int // slabs of a piece
	span            int // positions of a piece
}

// layCache lays out a cache for a device.
func layCache(g pass.CacheConfig, limits driver.Limits) (cacheLayout, error) {
	l := cacheLayout{slabs: g.Batch * g.Heads, capacity: g.Capacity, quads: g.HeadDim / 4, quadWords: 4, each: 1, span: g.Capacity}
	if g.Type == pass.F16 {
		l.quadWords = 2
	}
	const mostWords = 1 << 31 // kernels count in 32 bits
	most := min(int64(min(limits.MaxStorageBindingSize, limits.MaxBufferSize)/4), mostWords)
	position := int64(l.quads) * int64(l.quadWords)
	if slab := position * int64(l.capacity); slab <= most {
		l.each = int(min(most/slab, int64(l.slabs)))
		return l, nil
	}
	l.span = int(most/position) / splitKeys * splitKeys
	if l.span == 0 {
		return l, fmt.Errorf("cache: %d positions of %d bytes exceed the device's %d for one binding: %w", splitKeys, 4*position, 4*most, pass.ErrUnsupported)
	}
	return l, nil
}

// parts returns in how many pieces a slab lies.
func (l cacheLayout) parts() int { return (l.capacity + l.span - 1) / l.span }

func (l cacheLayout) pieces() int {
	return (l.slabs + l.each - 1) / l.each * l.parts()
}

// piece returns what a piece holds.
func (l cacheLayout) piece(i int) slabPiece {
	slab, first := i/l.parts()*l.each, i%l.parts()*l.span
	return slabPiece{from: slab, to: min(slab+l.each, l.slabs), first: first, span: min(l.span, l.capacity-first)}
}

// words returns the size of the keys, and of the values, of a piece.
func (l cacheLayout) words(i int) int {
	p := l.piece(i)
	return (p.to - p.from) * p.span * l.quads * l.quadWords
}

// A cache is the memory of a [pass.Cache].
type cache struct {
	cfg          pass.CacheConfig
	layout       cacheLayout
	keys, values []*memory // one of each for each piece
}

// NewCache implements backend.Stream.
func (s *stream) NewCache(cfg pass.CacheConfig) (backend.Memory, error) {
	layout, err := layCache(cfg, s.d.limits)
	if err != nil {
		return nil, err
	}
	h := &cache{cfg: cfg, layout: layout}
	for i := range layout.pieces() {
		for _, list := range []*[]*memory{&h.keys, &h.values} {
			m, err := s.d.alloc("cache", layout.words(i))
			if err != nil {
				h.Free()
				return nil, s.d.first(err)
			}
			*list = append(*list, m)
		}
	}
	return h, nil
}

// Free implements backend.Memory.
func (h *cache) Free() {
	for _, list := range [][]*memory{h.keys, h.values} {
		for _, m := range list {
			m.Free()
		}
	}
}

// piece returns a piece with its operands.
func (h *cache) piece(i int, write bool) slabPiece {
	p := h.layout.piece(i)
	p.keys = operand{memory: h.keys[i], end: h.keys[i].words, write: write}
	p.values = operand{memory: h.values[i], end: h.values[i].words, write: write}
	return p
}

// appendRows compiles an Append: a dispatch for each piece that its rows may belong to.
func (c *compiler) appendRows(op pass.Append, cost pass.Cost) error {
	h := c.plan.Cache(op.Cache).(*cache)
	width := h.cfg.Heads * h.cfg.HeadDim
	f := field{op.Batch, op.Rows, width}
	if f.empty() {
		return nil
	}
	at := c.index(op.At, op.Batch, op.Rows, h.cfg.Capacity)
	rows := pass.Span{To: op.Rows}
	windows, ok := runs(pass.Span{To: op.Batch}, func(s pass.Span) bool {
		return c.holds(op.K.At(s.From*op.K.BatchStride), s.Len(), rows, width) && c.holds(op.V.At(s.From*op.V.BatchStride), s.Len(), rows, width)
	})
	if !ok {
		return c.tooMuch(fmt.Sprintf("%d rows", op.Rows))
	}
	for _, items := range windows {
		k, v := c.lines(op.K, op.Batch, op.Rows, width, false), c.lines(op.V, op.Batch, op.Rows, width, false)
		if len(windows) > 1 {
			k, v = c.windowOfItems(op.K, items, rows, width, false), c.windowOfItems(op.V, items, rows, width, false)
		}
		if err := c.appendItems(op, h, items, k, v, at, share(cost, items.Len(), op.Batch)); err != nil {
			return err
		}
	}
	return nil
}

// appendItems emits the dispatches for the rows of some items.
func (c *compiler) appendItems(op pass.Append, h *cache, items pass.Span, k, v lines, at indexed, cost pass.Cost) error {
	width := h.cfg.Heads * h.cfg.HeadDim
	f := field{items.Len(), op.Rows, width}
	pieces := h.layout.pieces()
	for i := range pieces {
		p := h.piece(i, true)
		if p.from >= items.To*h.cfg.Heads || p.to <= items.From*h.cfg.Heads || at.kind == "none" && (at.added >= p.first+p.span || at.added+op.Rows <= p.first) {
			continue
		}
		n := numbered{kernel{shader: "cache", entry: "append", values: shaders.Values{
			"Type": h.cfg.Type.String(), "Indexed": at.kind == "device",
		}}, []operand{k.operand, v.operand, p.keys, p.values}}
		n.bind("AtBinding", at.kind == "device", at.o)
		n.status(c, at.numbers)
		if n.values["Beyond"] = statusNarrow; h.cfg.Type == pass.F16 && at.kind != "device" {
			n.bind("StatusBinding", true, c.status())
		}
		words := append(append(k.words(), v.words()...), at.words()...)
		words = append(words, uint32(at.added), uint32(h.cfg.Heads), uint32(p.from), uint32(p.to), uint32(p.first), uint32(p.span), uint32(items.From))
		// Here a unit is always four elements; vectors says how they are read.
		if err := c.visitQuads(op.Name(), n, f, k.inFours() && v.inFours(), words, share(cost, 1, pieces)); err != nil {
			return err
		}
	}
	return nil
}

// visitQuads emits a kernel of which every invocation takes four elements at a time.
func (c *compiler) visitQuads(label string, k numbered, f field, vectors bool, words []uint32, cost pass.Cost) error {
	k.values["Vectors"], k.values["Entry"] = vectors, k.entry
	units := f.batch * f.rows * f.cols / 4
	const size = 64
	most := int(c.limits.MaxWorkgroups)
	groups := min(roundUp(units, size)/size, most*most)
	words = append([]uint32{uint32(units), uint32(f.cols / 4), uint32(f.rows)}, words...)
	return c.emit(label, k.kernel, k.operands, words, [3]int{groups, 1, 1}, cost)
}

// attend compiles an Attend.
func (c *compiler) attend(op pass.Attend, cost pass.Cost) error {
	h := c.plan.Cache(op.Cache).(*cache)
	if op.Batch == 0 || op.Queries == 0 {
		return nil
	}
	g := h.cfg
	width := g.Heads * g.HeadDim
	if n, ok := op.Keys.Const(); ok && n == 0 {
		return c.zeros(op.Name(), op.O, field{op.Batch, op.Queries, width}, cost)
	}
	a := attention{
		c: c, label: op.Name(), source: g.Type.String(), batch: op.Batch, queries: op.Queries, heads: g.Heads, dim: g.HeadDim,
		scale: op.Scale, most: g.Capacity, cost: cost,
		views:   attentionViews{q: op.Q, o: op.O},
		lengths: numbers{kind: "none"}, keyNumbers: c.index(op.Keys, op.Batch, 0, g.Capacity),
	}
	if op.Causal {
		a.mask = pass.Causal
	}
	if n, ok := op.Keys.Const(); ok {
		a.keys, a.most = n, n
	}
	var pieces []slabPiece
	for i := range h.layout.pieces() {
		if p := h.piece(i, false); p.first < max(a.most, 1) {
			pieces = append(pieces, p)
		}
	}
	if op.Queries <= fewQueries || h.layout.parts() > 1 {
		return a.split(pieces)
	}
	return a.tiled(pieces)
}
