package cpu

import (
	"math"
	"unsafe"

	"github.com/tandem-gpu/tandem/pass"
)

// Geometry of the work of a task: the scores of some queries with some keys are made at
// once, then their share of the output, so that memory does not grow with the product
// of both.
const (
	queryBlock = 64
	keyBlock   = 128 // a multiple of lanes
)

// A panelSource hands out keys and values in the panels that dot8 takes.
type panelSource interface {
	// panels returns keys [from, to) of a head of an item in panels of eight keys, with
	// a row for each dimension; and their values in panels of eight dimensions, with a
	// row for each key, stride rows apart. from is a multiple of keyBlock. They may lie
	// in room.
	panels(b, head, from, to int, room []panelRow) (keys, values []panelRow, stride int)
}

// attention computes a [pass.Attention] or a [pass.Attend] with a running softmax (Milakov
// and Gimelshein, Online normalizer calculation for softmax, 2018; Dao et al.,
// FlashAttention, 2022). The keys that a query sees are a range under every mask; sums go
// over that range alone, so that what a query does not see may be anything, and the
// blocks of keys begin at the same places for all queries. A task is a block of queries
// of a head of an item.
type attention struct {
	name             string
	described        string // where keys and values come from, for dumps
	q, o             view
	q2, positions    view // given with relative positions
	source           panelSource
	batch, heads     int
	dim              int
	queries, keys    int
	scale            float64
	mask             pass.Mask
	lengths, seen    items // queries and keys of each item
	moving           bool  // the last query stands at the last of the keys seen, not of all
	share            bool
	firstBlock, last int // blocks of queries in hand
	space            []float32
}

func (p *program) attention(a pass.Attention, cost pass.Cost) []kernel {
	k := &attention{
		name: "attention",
		q:    p.view(a.Q), o: p.view(a.O), q2: p.view(a.Q2), positions: p.view(a.Positions),
		source: &viewedPanels{p.view(a.K), p.view(a.V), a.HeadDim},
		batch:  a.Batch, heads: a.Heads, dim: a.HeadDim,
		queries: a.Queries, keys: a.Keys,
		scale:   float64(a.Scale),
		mask:    a.Mask,
		lengths: p.items("attention", "Lengths", a.Lengths, a.Batch, func(int) int { return a.Queries }),
		seen:    p.items("attention", "KeyLengths", a.KeyLengths, a.Batch, func(int) int { return a.Keys }),
		share:   cost.FLOP > worthSharing,
	}
	if a.Mask.Kind() == pass.MaskBand {
		left, right := a.Mask.Band()
		k.mask = pass.Band(min(left, a.Keys+a.Queries), min(right, a.Keys+a.Queries))
	}
	if k.q2.given() {
		k.described = ", relative positions"
	}
	return k.pieces(p, cost)
}

// An attentionPart is an op over some blocks of queries, a piece of its own.
type attentionPart struct {
	*attention
	blocks pass.Span
}

func (a *attention) pieces(p *program, cost pass.Cost) []kernel {
	var all []kernel
	for _, s := range p.spans(cost, (a.queries+queryBlock-1)/queryBlock) {
		all = append(all, attentionPart{a, s})
	}
	return all
}

// spans cuts [0, n) into ranges so that, of an op of the given cost, each takes no
// longer than a piece may. There is at least one.
func (p *program) spans(cost pass.Cost, n int) []pass.Span {
	rate := p.stream.h.Rate()
	want := math.Ceil(max(cost.FLOP/rate.FLOP, cost.Bytes/rate.Bytes) / longest)
	count := max(int(min(want, float64(n))), 1)
	spans := make([]pass.Span, count)
	for i := range spans {
		spans[i] = pass.Span{From: i * n / count, To: (i + 1) * n / count}
	}
	return spans
}

func (a *attention) variant() string { return "64 queries, 128 keys at once" + a.described }

// An attentionSpace is the scratch of a task.
type attentionSpace struct {
	room     []panelRow // for keys and values
	relative []panelRow // positions
	scores   []float32  // [query][key]
	out      []float32  // [query][dimension], not divided by the sum of weights
}

// layout returns the sizes of a task's scratch.
func (a *attention) layout() (room, relative, scores, out int) {
	rows := min(a.queries, queryBlock)
	keys := min(panelsOf(a.keys)*lanes, keyBlock)
	room = (panelsOf(keys)*a.dim + panelsOf(a.dim)*keys) * lanes
	if a.q2.given() {
		relative = panelsOf(keys+rows) * a.dim * lanes
	}
	return room, relative, rows * keys, rows * a.dim
}

func (a *attention) scratch(slots int) int {
	if !a.share {
		slots = 1
	}
	room, relative, scores, out := a.layout()
	return slots * (room + relative + scores + out)
}

// slot returns the scratch of the task in a slot.
func (a *attention) slot(i int) (s attentionSpace) {
	room, relative, scores, out := a.layout()
	space := a.space[i*(room+relative+scores+out):]
	s.room, space = panelRows(space[:room]), space[room:]
	s.relative, space = panelRows(space[:relative]), space[relative:]
	s.scores, s.out = space[:scores], space[scores:scores+out]
	return s
}

// panelRows returns floats, a multiple of eight, as rows of panels.
func panelRows(f []float32) []panelRow {
	return unsafe.Slice((*panelRow)(unsafe.Pointer(unsafe.SliceData(f))), len(f)/lanes)
}

func (a attentionPart) run(t *team) error {
	if a.blocks.From == 0 {
		if err := a.lengths.read(a.queries); err != nil {
			return err
		}
		if err := a.seen.read(a.keys); err != nil {
			return err
		}
	}
	a.firstBlock, a.last = a.blocks.From, a.blocks.To
	a.space = t.scratch
	return t.do(a.batch*a.heads*a.blocks.Len(), a.share, a.attention)
}

// visible returns the range of keys that query i of item b sees.
func (a *attention) visible(b, i int) (from, to int) {
	to = a.seen.of(b)
	p := i + a.keys - a.queries
	if a.moving {
		p = i + to - a.queries
	}
	switch a.mask.Kind() {
	case pass.MaskCausal:
		to = min(to, p+1)
	case pass.MaskBand:
		left, right := a.mask.Band()
		from, to = max(p-left, 0), min(to, p+right+1)
	}
	return from, max(to, from)
}

// A queryState is what is known of a query after some blocks of keys.
type queryState struct {
	from, to int     // keys that it sees
	most     float64 // largest score
	sum      float64 // of exp(score − most)
	keep     float64 // factor of what was summed with an earlier largest score
}

func (a *attention) task(i, slot int) {
	blocks := a.last - a.firstBlock
	i, block := i/blocks, a.firstBlock+i%blocks
	b, head := i/a.heads, i%a.heads
	first := block * queryBlock
	rowsEnd := min(first+queryBlock, a.queries)
	end := max(first, min(rowsEnd, a.lengths.values[b]))

	var states [queryBlock]queryState
	queries := states[:end-first]
	from, to := math.MaxInt, 0
	for r := range queries {
		q := &queries[r]
		q.from, q.to = a.visible(b, first+r)
		q.most = math.Inf(-1)
		if q.from < q.to {
			from, to = min(from, q.from), max(to, q.to)
		}
	}
	space := a.slot(slot)
	clear(space.out)
	for k := from / keyBlock * keyBlock; k < to; k += keyBlock {
		a.block(b, head, first, k, min(k+keyBlock, to), queries, space)
	}
	for r := first; r < rowsEnd; r++ {
		o := a.o.row(b, r, (head+1)*a.dim)[head*a.dim:]
		if r >= end || queries[r-first].sum == 0 {
			clear(o)
			continue
		}
		out, scale := space.out[(r-first)*a.dim:], 1/queries[r-first].sum
		for d := range o {
			o[d] = float32(float64(out[d]) * scale)
		}
	}
}

// block takes the queries from first on through keys [from, to).
func (a *attention) block(b, head, first, from, to int, queries []queryState, s attentionSpace) {
	keys, values, stride := a.source.panels(b, head, from, to, s.room)
	width := len(s.scores) / min(a.queries, queryBlock)
	for p := range panelsOf(to - from) {
		panel, at := keys[p*a.dim:(p+1)*a.dim], from+p*lanes
		for r := range queries {
			if q := &queries[r]; q.from >= at+lanes || q.to <= at {
				continue
			}
			var acc [lanes]float64
			dot8(&acc, a.q.row(b, first+r, (head+1)*a.dim)[head*a.dim:], panel)
			scores := (*[lanes]float32)(s.scores[r*width+p*lanes:])
			for j, v := range acc {
				scores[j] = float32(v)
			}
		}
	}
	if a.q2.given() {
		a.relate(b, head, first, from, to, queries, s)
	}
	for r := range queries {
		q := &queries[r]
		q.weigh(s.scores[r*width:], from, to, a.scale)
	}
	for p := range panelsOf(a.dim) {
		panel := values[p*stride:]
		for r := range queries {
			q := &queries[r]
			lo, hi := max(q.from, from)-from, min(q.to, to)-from
			if lo >= hi {
				continue
			}
			var acc [lanes]float64
			dot8(&acc, s.scores[r*width+lo:r*width+hi], panel[lo:hi])
			out := s.out[r*a.dim+p*lanes : r*a.dim+min((p+1)*lanes, a.dim)]
			for j := range out {
				out[j] = float32(float64(out[j])*q.keep + acc[j])
			}
		}
	}
}

// weigh turns the scores of keys [from, to), as far as the query sees them, into
// weights.
func (q *queryState) weigh(scores []float32, from, to int, scale float64) {
	lo, hi := max(q.from, from)-from, min(q.to, to)-from
	if lo >= hi {
		return
	}
	scores = scores[lo:hi]
	most := q.most
	for _, s := range scores {
		if v := float64(s) * scale; v > most { // not so for NaN
			most = v
		}
	}
	base := most
	if math.IsInf(most, -1) {
		base = 0 // scores of −∞ have no weight, as in Softmax
	}
	q.keep = 1
	if most != q.most {
		q.keep = exp(q.most - base)
		q.sum *= q.keep
		q.most = most
	}
	sum := 0.0
	for i, s := range scores {
		w := float32(exp(float64(s)*scale - base))
		scores[i] = w
		sum += float64(w)
	}
	q.sum += sum
}

// relate adds the scores of relative positions: Positions row j − i + keys − 1 for
// query i and key j. The rows that a block needs are one range, in panels of eight; a
// query takes of them a range of its own.
func (a *attention) relate(b, head, first, from, to int, queries []queryState, s attentionSpace) {
	n, width := len(queries), len(s.scores)/min(a.queries, queryBlock)
	base := from - (first + n - 1) + a.keys - 1
	count := to - from + n - 1
	pack(s.relative, &a.positions, 0, base, base+count, head, a.dim)
	for p := range panelsOf(count) {
		panel := s.relative[p*a.dim : (p+1)*a.dim]
		for r := range queries {
			q := &queries[r]
			shift := n - 1 - r // of the query's first key in the range
			at := p*lanes - shift
			lo, hi := max(at, q.from-from, 0), min(at+lanes, q.to-from, to-from)
			if lo >= hi {
				continue
			}
			var acc [lanes]float64
			dot8(&acc, a.q2.row(b, first+r, (head+1)*a.dim)[head*a.dim:], panel)
			scores := s.scores[r*width:]
			for j := lo; j < hi; j++ {
				scores[j] += float32(acc[j-at])
			}
		}
	}
}

// viewedPanels makes panels of rows in views.
type viewedPanels struct {
	k, v view
	dim  int
}

func (s *viewedPanels) panels(b, head, from, to int, room []panelRow) (keys, values []panelRow, stride int) {
	n := panelsOf(to-from) * s.dim
	keys, values, stride = room[:n], room[n:], to-from
	pack(keys, &s.k, b, from, to, head, s.dim)
	for j := from; j < to; j++ {
		row := s.v.row(b, j, (head+1)*s.dim)[head*s.dim:]
		for p := range panelsOf(s.dim) {
			copy(values[p*stride+j-from][:], row[p*lanes:])
		}
	}
	return keys, values, stride
}

// pack puts rows [from, to) of a head into panels of eight rows. What is beyond them in
// the last panel stays undefined.
func pack(panels []panelRow, v *view, b, from, to, head, dim int) {
	for r := from; r < to; r++ {
		row := v.row(b, r, (head+1)*dim)[head*dim:]
		panel, lane := panels[(r-from)/lanes*dim:][:dim], (r-from)%lanes
		for d := range panel {
			panel[d][lane] = row[d]
		}
	}
}
