package gpu

import "github.com/tandem-gpu/tandem/pass"

// attentionViews are the arguments of an attention. Those that it does not have are zero.
type attentionViews struct{ q, o, k, v, q2, positions pass.View }

// A region is a run of items and of their queries that can be bound: all of them, or some
// queries of one item.
type region struct{ items, queries pass.Span }

// slabs returns the slabs of the items.
func (r region) slabs(heads int) pass.Span {
	return pass.Span{From: r.items.From * heads, To: r.items.To * heads}
}

// regions cuts the queries into regions that fit. They begin at multiples of a number of
// queries.
func (a *attention) regions(each int, fit func(region) bool) ([]region, error) {
	all := region{pass.Span{To: a.batch}, pass.Span{To: a.queries}}
	if fit(all) {
		return []region{all}, nil
	}
	var list []region
	for item := range a.batch {
		at := func(s pass.Span) region {
			return region{pass.Span{From: item, To: item + 1}, pass.Span{From: s.From * each, To: min(s.To*each, a.queries)}}
		}
		spans, ok := runs(pass.Span{To: roundUp(a.queries, each) / each}, func(s pass.Span) bool { return fit(at(s)) })
		if !ok {
			return nil, a.c.tooMuch("what a tile of queries takes")
		}
		for _, s := range spans {
			list = append(list, at(s))
		}
	}
	return list, nil
}

// stretches cuts the keys, of which few queries take splitKeys at a time, into pieces
// that can be bound.
func (a *attention) stretches() ([]slabPiece, error) {
	items := pass.Span{To: a.batch}
	keys := func(s pass.Span) pass.Span {
		return pass.Span{From: s.From * splitKeys, To: min(s.To*splitKeys, a.keys)}
	}
	list, ok := runs(pass.Span{To: roundUp(a.keys, splitKeys) / splitKeys}, func(s pass.Span) bool { return a.holdsKeys(items, keys(s)) })
	if !ok {
		return nil, a.c.tooMuch("what a stretch of keys takes")
	}
	var pieces []slabPiece
	for _, s := range list {
		k := keys(s)
		pieces = append(pieces, slabPiece{to: a.batch * a.heads, first: k.From, span: k.Len()})
	}
	return pieces, nil
}

// holds reports whether some rows of some items can be bound.
func (a *attention) holds(v pass.View, items, rows pass.Span) bool {
	return v.IsZero() || a.c.holds(v.At(items.From*v.BatchStride), items.Len(), rows, a.heads*a.dim)
}

// window binds rows of items, of all that there are.
func (a *attention) window(v pass.View, items, rows, all pass.Span, write bool) lines {
	if v.IsZero() {
		return lines{}
	}
	if items.From == 0 && rows == all {
		return a.c.lines(v, items.Len(), rows.Len(), a.heads*a.dim, write)
	}
	return a.c.windowOfItems(v, items, rows, a.heads*a.dim, write)
}

// reads returns the queries that a region's workgroups read, which may be so many more.
func (a *attention) reads(r region, more int) pass.Span {
	return pass.Span{From: r.queries.From, To: min(r.queries.To+more, a.queries)}
}

func (a *attention) holdsQueries(r region, more int) bool {
	v := a.views
	return a.holds(v.q, r.items, a.reads(r, more)) && a.holds(v.q2, r.items, r.queries) && a.holds(v.o, r.items, r.queries)
}

func (a *attention) bindQueries(r region, more int) {
	v, all := a.views, pass.Span{To: a.queries}
	a.q = a.window(v.q, r.items, a.reads(r, more), all, false)
	a.q2 = a.window(v.q2, r.items, r.queries, all, false)
	a.o = a.window(v.o, r.items, r.queries, all, true)
}

func (a *attention) holdsKeys(items, keys pass.Span) bool {
	return a.holds(a.views.k, items, keys) && a.holds(a.views.v, items, keys)
}

func (a *attention) bindKeys(items, keys pass.Span) {
	all := pass.Span{To: a.keys}
	a.k = a.window(a.views.k, items, keys, all, false)
	a.v = a.window(a.views.v, items, keys, all, false)
}
