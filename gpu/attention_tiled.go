package gpu

import (
	"github.com/tandem-gpu/tandem/pass"
)

// tiled emits the kernels for many queries. A piece has all keys of its slabs.
func (a *attention) tiled(pieces []slabPiece) error {
	t := chooseAttentionTile(a.dim, a.queries, a.batch*a.heads, a.relative, a.c.limits)
	// A region that has its keys in more runs than its last tile has is cut further: what
	// is found in runs has to be joined.
	regions, err := a.regions(t.queries(), func(r region) bool {
		if !a.holdsQueries(r, 0) {
			return false
		}
		last := r
		last.queries.From = (r.queries.To - 1) / t.queries() * t.queries()
		found, ok := a.keyRuns(r, t)
		least, _ := a.keyRuns(last, t)
		return ok && len(found) <= max(len(least), 1) && (len(found) == 1 || a.c.fitsScratch(r.queries.Len()*a.found(len(found))))
	})
	if err != nil {
		return err
	}
	for _, r := range regions {
		if err := a.tiledRegion(r, pieces, t); err != nil {
			return err
		}
	}
	return nil
}

// found returns how many elements are found for a query in runs of keys.
func (a *attention) found(runs int) int { return runs * (a.dim + 4) }

// keyRuns cuts the keys that a region sees into runs of tiles that can be bound.
func (a *attention) keyRuns(r region, t attentionTile) ([]pass.Span, bool) {
	tiles := pass.Span{To: roundUp(a.most, t.keys()) / t.keys()}
	if _, _, banded := a.band(); banded && a.source == "rows" && r.queries.Len() < a.queries {
		first, last := a.sees(r.queries)
		tiles.From = min(first/t.keys(), tiles.To-1)
		tiles.To = max(min(last/t.keys()+1, tiles.To), tiles.From+1)
	}
	list, ok := runs(tiles, func(s pass.Span) bool {
		keys := a.tileKeys(s, t)
		return a.holdsKeys(r.items, keys) && (!a.relative || a.holds(a.views.positions, pass.Span{To: 1}, a.near(r.queries, keys)))
	})
	for i := range list {
		list[i] = a.tileKeys(list[i], t)
	}
	return list, ok
}

// tileKeys returns the keys of some tiles.
func (a *attention) tileKeys(tiles pass.Span, t attentionTile) pass.Span {
	return pass.Span{From: tiles.From * t.keys(), To: min(tiles.To*t.keys(), a.most)}
}

// sees returns the first and the last key that a mask lets some queries see; they may lie
// beyond those that there are.
func (a *attention) sees(queries pass.Span) (first, last int) {
	left, right, _ := a.band()
	first = queries.From + a.keys - a.queries - left
	last = queries.To - 1 + a.keys - a.queries + right
	return max(first, 0), max(last, 0)
}

// near returns the rows of the relative positions of some queries and keys.
func (a *attention) near(queries, keys pass.Span) pass.Span {
	return pass.Span{From: max(keys.From-queries.To+a.keys, 0), To: min(keys.To-queries.From+a.keys-1, 2*a.keys-1)}
}

// tiledRegion emits the kernel for the queries of a region: once, or for each run of its
// keys and then what joins what was found.
func (a *attention) tiledRegion(r region, pieces []slabPiece, t attentionTile) error {
	a.bindQueries(r, 0)
	slabs := r.slabs(a.heads)
	keys, _ := a.keyRuns(r, t)
	if len(keys) == 1 {
		return a.tiles(tileRun{slabs: slabs, queries: r.queries, keys: keys[0], out: a.o.operand}, r, pieces, t)
	}
	limit := int(min(a.c.limits.MaxStorageBindingSize, a.c.limits.MaxBufferSize) / 4)
	each := min(max(limit/(r.queries.Len()*a.found(len(keys))), 1), slabs.Len())
	for s := slabs.From; s < slabs.To; s += each {
		w := portion{slabs: pass.Span{From: s, To: min(s+each, slabs.To)}, queries: r.queries}
		found := a.c.scratch(w.slabs.Len() * w.queries.Len() * a.found(len(keys)))
		found.write = true
		for i, k := range keys {
			run := tileRun{slabs: w.slabs, queries: w.queries, keys: k, out: found, run: i, runs: len(keys)}
			if err := a.tiles(run, r, pieces, t); err != nil {
				return err
			}
		}
		if err := a.join(w, found, len(keys)); err != nil {
			return err
		}
		a.c.giveBack(found)
	}
	return nil
}

// A tileRun is a run of slabs, queries and keys for the kernel for many queries.
type tileRun struct {
	slabs, queries, keys pass.Span
	out                  operand
	run, runs            int // of the keys; no runs if they are all, so that out is the output
}

// tiles emits the kernel for many queries.
func (a *attention) tiles(w tileRun, r region, pieces []slabPiece, t attentionTile) error {
	left, right, banded := a.band()
	steps := roundUp(w.keys.Len(), t.keys()) / t.keys()
	if banded {
		steps = min(steps, roundUp(t.queries()+left+right, t.keys())/t.keys()+1)
	}
	a.bindKeys(r.items, w.keys)
	var near pass.Span
	if a.relative {
		near = a.near(w.queries, w.keys)
		a.positions = a.window(a.views.positions, pass.Span{To: 1}, near, pass.Span{To: 2*a.keys - 1}, false)
	}
	queryTiles := roundUp(w.queries.Len(), t.queries()) / t.queries()
	for _, p := range pieces {
		slabs := pass.Span{From: max(p.from, w.slabs.From), To: min(p.to, w.slabs.To)}
		if slabs.Len() <= 0 {
			continue
		}
		k := a.kernel("attention", "attention", p)
		k.values["Relative"], k.values["Partial"] = a.relative, w.runs > 0
		t.values(k.values, a.relative)
		k.bind("OutBinding", true, w.out)
		k.bind("Q2Binding", a.relative, a.q2.operand)
		k.bind("PositionsBinding", a.relative, a.positions.operand)
		a.numbers(&k)
		words := append(a.words(), a.q2.words()...)
		words = append(words, uint32(a.positions.shift), uint32(a.positions.row), uint32(left), uint32(right))
		words = append(append(words, a.where(p)...), uint32(steps), uint32(roundUp(a.dim, t.depth)/t.depth), uint32(queryTiles))
		words = append(words, uint32(w.queries.From), uint32(w.keys.From), uint32(w.keys.To), uint32(near.From), uint32(near.To),
			uint32(w.slabs.From), uint32(w.queries.Len()), uint32(w.runs), uint32(w.run))
		tiles := pass.Span{From: (slabs.From - p.from) * queryTiles, To: (slabs.To - p.from) * queryTiles}
		part := share(a.cost, slabs.Len()*w.queries.Len(), a.batch*a.heads*a.queries)
		if err := a.c.someTiles(a.label, k, words, tiles, nil, share(part, w.keys.Len(), a.most)); err != nil {
			return err
		}
	}
	return nil
}
