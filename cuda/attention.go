package cuda

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// fewQueries is how many queries count as few: they are computed from keys and values as
// they are, in FP32.
const fewQueries = 8

// unlimited is how far a mask reaches that does not end.
const unlimited = 1 << 30

// mostPositions bounds queries and keys, which kernels count in 32 bits.
const mostPositions = 1 << 29

// attention compiles an Attention.
func (c *compiler) attention(op pass.Attention, cost pass.Cost) error {
	width := op.Heads * op.HeadDim
	if op.Keys == 0 {
		return c.zeros(op.O, op.Batch, op.Queries, width, cost)
	}
	mapped := c.mappable(op.Q, op.Batch, op.Queries, width) && c.mappable(op.K, op.Batch, op.Keys, width) &&
		c.mappable(op.V, op.Batch, op.Keys, width) && c.mappable(op.O, op.Batch, op.Queries, width)
	a := attention{
		c: c, mapped: mapped, batch: op.Batch, queries: op.Queries, heads: op.Heads, dim: op.HeadDim, most: op.Keys,
		scale: op.Scale, mask: op.Mask, cost: cost,
		q: op.Q, o: op.O, q2: op.Q2, positions: op.Positions, relative: !op.Q2.IsZero(),
		lengths: op.Lengths, keyLengths: op.KeyLengths, keyNumbers: pass.Const(op.Keys),
		source: func(k *call) keyRows {
			x, y := k.read(op.K, op.Batch, op.Keys, width), k.read(op.V, op.Batch, op.Keys, width)
			return keyRows{
				keys:   keyPlace{kernels.U32(x.P), x.Row, int64(op.HeadDim), x.Batch},
				values: keyPlace{kernels.U32(y.P), y.Row, int64(op.HeadDim), y.Batch},
			}
		},
	}
	return a.compile()
}

// zeros fills a view with zeros.
func (c *compiler) zeros(v pass.View, batch, rows, cols int, cost pass.Cost) error {
	return c.fill(pass.Fill{To: v, Batch: batch, Rows: rows, Cols: cols}, cost)
}

// An attention is an Attention or an Attend on its way to launches.
type attention struct {
	c              *compiler
	batch, queries int
	heads, dim     int
	most           int // keys of an item at most
	scale          float32
	mask           pass.Mask
	moving         bool // the last query stands at the item's last key
	halves         bool // keys and values are F16
	mapped         bool // queries, keys and values are F32 and mappable, and so is the output
	relative       bool
	q, o           pass.View
	q2, positions  pass.View
	lengths        pass.Items
	keyLengths     pass.Items
	keyNumbers     pass.Index
	source         func(k *call) keyRows // notes that keys and values are read
	cost           pass.Cost
}

// keyRows is where keys and values lie.
type keyRows struct{ keys, values keyPlace }

type keyPlace struct {
	at              kernels.U32
	row, head, item int64
}

// compile emits the launches.
func (a *attention) compile() error {
	if a.batch == 0 || a.queries == 0 {
		return nil
	}
	if max(a.queries, a.most) > mostPositions {
		return fmt.Errorf("%d queries and %d keys: want at most %d: %w", a.queries, a.most, mostPositions, pass.ErrUnsupported)
	}
	rule, ways := a.ways()
	boundary := fmt.Sprintf("attention %s %d×%d×%d %d×%d", a.c.mathName(), a.batch, a.queries, a.most, a.heads, a.dim)
	if a.relative {
		boundary += " relative"
	}
	way, why := a.c.choose(boundary, rule, ways...)
	switch way {
	case "split":
		return a.split(why)
	case "wgmma-direct":
		return a.direct(why)
	case "mma":
		return a.packed(kernels.FlashFor(a.tier(), a.c.fast, a.relative), false, why)
	}
	return a.packed(a.wide(way), true, why)
}

// ways returns how it can be computed, the best first, and the rule behind the order.
func (a *attention) ways() (rule string, ways []string) {
	if a.queries <= fewQueries && !a.relative {
		return "few queries read keys and values once", []string{"split"}
	}
	// Blocks for queries go through all keys, as long for few as for many; split is as fast as
	// its work is little. An H200 takes 0.066 µs a key for one, and 85 ps a query, key and head for
	// the other.
	const little, long = 640, 256
	few := !a.c.fast && !a.relative && a.batch*a.queries*a.heads <= little && a.most >= long
	if a.c.fast {
		for _, way := range []string{"wgmma-turns", "wgmma"} {
			if a.c.has(a.wide(way).Name) {
				ways = append(ways, way)
			}
		}
		if direct, better := a.directFor(); better {
			ways = append([]string{"wgmma-direct"}, ways...)
		} else if direct.Name != "" {
			ways = append(ways, "wgmma-direct")
		}
	}
	if a.c.has(kernels.FlashFor(a.tier(), a.c.fast, a.relative).Name) {
		ways = append(ways, "mma")
	}
	if few {
		return "few queries share the keys in parts", append([]string{"split"}, ways...)
	}
	ways = append(ways, "split")
	switch ways[0] {
	case "wgmma-direct":
		rule = "halves on matrix units, made where they are used: packing takes longer"
	case "split":
		rule = "no kernel for halves in the shared memory there is"
	default:
		rule = "halves on matrix units"
	}
	return rule, ways
}

// wide returns the kernel of warpgroups for a way; it may have no name.
func (a *attention) wide(way string) kernels.Entry {
	switch {
	case !a.relative:
		return kernels.WideFor(a.tier(), way == "wgmma-turns")
	case way == "wgmma-turns":
		return kernels.WideRelativeFor(a.tier())
	}
	return kernels.Entry{}
}

// tier returns the head dimension that kernels are made for.
func (a *attention) tier() int {
	for _, d := range []int{64, 128} {
		if a.dim <= d {
			return d
		}
	}
	return 256
}

// band returns how far before and after its position a query sees.
func (a *attention) band() (left, right int32) {
	switch a.mask.Kind() {
	case pass.MaskCausal:
		return unlimited, 0
	case pass.MaskBand:
		l, r := a.mask.Band()
		return int32(min(l, unlimited)), int32(min(r, unlimited))
	}
	return unlimited, unlimited
}

// factor returns what makes exponents of two of scores.
func (a *attention) factor() float32 { return float32(float64(a.scale) * math.Log2E) }

// numbers notes the use of the numbers of queries and keys.
func (a *attention) numbers(k *call) (lengths, keyLengths kernels.Items, keyNumbers kernels.Index) {
	return k.items(a.lengths, a.batch, a.queries), k.items(a.keyLengths, a.batch, a.most), k.index(a.keyNumbers, a.batch, 0, a.most)
}

// blocks returns how many blocks of keys a head has, in pairs.
func (a *attention) blocks() int { return 2 * ceilDiv(a.most, 2*kernels.AttentionBlock) }

// flash returns the arguments of a kernel for many queries, but for what it has keys and
// values in; tiles are those of a head.
func (a *attention) flash(k *call, tiles int) kernels.Attention {
	rows, width := a.source(k), a.heads*a.dim
	args := kernels.Attention{
		Q: k.read(a.q, a.batch, a.queries, width), O: k.write(a.o, a.batch, a.queries, width),
		V: rows.values.at, VRow: rows.values.row, VHead: rows.values.head, VItem: rows.values.item,
		K: rows.keys.at, KRow: rows.keys.row, KHead: rows.keys.head, KItem: rows.keys.item,
		Most: uint32(a.most), Queries: uint32(a.queries), Heads: uint32(a.heads), Dim: uint32(a.dim),
		Blocks: uint32(a.blocks()), Tiles: uint32(tiles), Works: uint32(a.batch * a.heads * tiles),
		Moving: flag(a.moving), HalfValues: flag(a.halves), Scale: a.factor(),
	}
	args.Left, args.Right = a.band()
	args.Lengths, args.KeyLengths, args.KeyNumbers = a.numbers(k)
	return args
}

// packed emits the kernels for many queries: those that pack keys and values, and relative
// positions, as halves, and the one that computes; wide says that it is one of warpgroups.
func (a *attention) packed(entry kernels.Entry, wide bool, why string) error {
	c, d := a.c, a.tier()
	pack := kernels.PackName(d, a.halves, !c.fast)
	if wide {
		pack = kernels.PackRowsName(d, a.halves)
	}
	parts := 2
	if c.fast {
		parts = 1
	}
	slabs, blocks := a.batch*a.heads, a.blocks()
	block := kernels.AttentionBlock * d * 2 * parts // bytes
	keys, values := c.temporary(slabs*blocks*block), c.temporary(slabs*blocks*block)
	keyFactors, valueFactors := c.temporary(4*slabs*blocks), c.temporary(4*slabs*blocks)
	width := a.heads * a.dim

	k := c.call(pack).because("keys and values as halves")
	rows := a.source(k)
	packing := kernels.AttentionPack{
		K: rows.keys.at, KRow: rows.keys.row, KHead: rows.keys.head, KItem: rows.keys.item,
		V: rows.values.at, VRow: rows.values.row, VHead: rows.values.head, VItem: rows.values.item,
		Keys: kernels.F16(k.to(keys)), Values: kernels.F16(k.to(values)),
		KeyFactors: kernels.F32(k.to(keyFactors)), ValueFactors: kernels.F32(k.to(valueFactors)),
		Most: uint32(a.most), Heads: uint32(a.heads), Dim: uint32(a.dim), Blocks: uint32(blocks),
	}
	_, packing.KeyLengths, packing.KeyNumbers = a.numbers(k)
	moved := pass.Cost{Bytes: float64(a.batch) * float64(a.most) * float64(width) * float64(8+4*parts)}
	positionsMoved := pass.Cost{Bytes: 2 * float64(a.most) * float64(width) * float64(4+2*parts)}
	works := 2 * slabs * blocks
	packing.Works = uint32(works)
	var positions, positionFactors region
	if a.relative {
		positions, positionFactors = c.temporary(2*a.heads*blocks*block), c.temporary(4*2*a.heads*blocks)
	}
	if a.relative && wide {
		packing.P = k.read(a.positions, 1, 2*a.most-1, width)
		packing.Packed, packing.PositionFactors = kernels.F16(k.to(positions)), kernels.F32(k.to(positionFactors))
		works += 2 * a.heads * blocks
		moved.Bytes += positionsMoved.Bytes
	}
	if err := run(k, packing, grid{works, 1, 1}, 0, moved); err != nil {
		return err
	}
	if a.relative && !wide {
		k := c.call(kernels.PositionsName(d, !c.fast)).because("relative positions as halves")
		args := kernels.AttentionPositions{
			P:      k.read(a.positions, 1, 2*a.most-1, width),
			Packed: kernels.F16(k.to(positions)), Factors: kernels.F32(k.to(positionFactors)),
			Heads: uint32(a.heads), Dim: uint32(a.dim), Keys: uint32(a.most), Blocks: uint32(2 * blocks),
		}
		if err := run(k, args, grid{2 * a.heads * blocks, 1, 1}, 0, positionsMoved); err != nil {
			return err
		}
	}

	tiles := ceilDiv(a.queries, entry.Tile[0])
	k = c.call(entry.Name).because("%s", why)
	args := a.flash(k, tiles)
	args.Keys, args.Values = kernels.F16(k.from(keys)), kernels.F16(k.from(values))
	args.KeyFactors, args.ValueFactors = kernels.F32(k.from(keyFactors)), kernels.F32(k.from(valueFactors))
	if a.relative {
		args.Q2 = k.read(a.q2, a.batch, a.queries, width)
		args.Positions, args.PositionFactors = kernels.F16(k.from(positions)), kernels.F32(k.from(positionFactors))
	}
	works = slabs * tiles
	if wide && !a.relative && a.mask.Kind() == pass.MaskNone { // all have as many keys
		works = max(min(works, c.d.attributes.sms), ceilDiv(works, kernels.WideWorks))
	}
	return run(k, args, grid{works, 1, 1}, entry.Shared, a.cost)
}

// splitRows is how many queries split takes at a time, so that its scratch memory does not
// grow with queries and keys alike.
const splitRows = 256

// split emits the kernels for few queries: one that takes pieces of the keys and one that
// joins what it found.
func (a *attention) split(why string) error {
	c := a.c
	few := kernels.SplitQueries[len(kernels.SplitQueries)-1]
	for _, n := range kernels.SplitQueries {
		if n >= a.queries && !a.relative {
			few = n
			break
		}
	}
	slabs, width, pieces := a.batch*a.heads, a.heads*a.dim, ceilDiv(a.most, kernels.SplitKeys)
	rows := a.queries
	var found region
	if pieces > 1 {
		rows = min(rows, splitRows)
		found = c.temporary(4 * rows * slabs * pieces * (4 + a.dim))
	}
	for first := 0; first < a.queries; first += rows {
		n := min(rows, a.queries-first)
		part := float64(n) / float64(a.queries)
		k := c.call(kernels.SplitName(few, a.halves, a.relative)).because("%s", why)
		from := a.source(k)
		args := kernels.AttentionSplit{
			Q: k.read(a.q, a.batch, a.queries, width),
			K: from.keys.at, KRow: from.keys.row, KHead: from.keys.head, KItem: from.keys.item,
			V: from.values.at, VRow: from.values.row, VHead: from.values.head, VItem: from.values.item,
			Most: uint32(a.most), Queries: uint32(a.queries), Heads: uint32(a.heads), Dim: uint32(a.dim),
			First: uint32(first), Rows: uint32(n), Groups: uint32(ceilDiv(n, few)), Pieces: uint32(pieces),
			Moving: flag(a.moving), Scale: a.factor(),
		}
		args.Left, args.Right = a.band()
		args.Lengths, args.KeyLengths, args.KeyNumbers = a.numbers(k)
		if a.relative {
			args.Q2 = k.read(a.q2, a.batch, a.queries, width)
			args.Positions = k.read(a.positions, 1, 2*a.most-1, width)
		}
		if pieces > 1 {
			args.Found = kernels.F32(k.to(found))
		} else {
			args.O = k.write(a.o, a.batch, a.queries, width)
		}
		if err := run(k, args, grid{slabs * ceilDiv(n, few) * pieces, 1, 1}, 0, pass.Cost{FLOP: part * a.cost.FLOP, Bytes: part * a.cost.Bytes}); err != nil {
			return err
		}
		if pieces == 1 {
			continue
		}
		k = c.call("attention_join").because("%d pieces of %d keys", pieces, kernels.SplitKeys)
		join := kernels.AttentionJoin{
			O: k.write(a.o, a.batch, a.queries, width), Found: kernels.F32(k.from(found)),
			Most: uint32(a.most), Heads: uint32(a.heads), Dim: uint32(a.dim),
			First: uint32(first), Rows: uint32(n), Pieces: uint32(pieces),
		}
		join.Lengths, join.KeyLengths, join.KeyNumbers = a.numbers(k)
		if err := run(k, join, grid{slabs * n, 1, 1}, 0, pass.Cost{Bytes: 4 * float64(slabs) * float64(n) * float64(pieces+1) * float64(a.dim)}); err != nil {
			return err
		}
	}
	return nil
}
