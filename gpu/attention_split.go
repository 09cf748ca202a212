package gpu

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// splitKeys is how many keys a workgroup takes for few queries; see attention_split.wgsl.
const splitKeys = 256

// fewQueries is how many queries count as few.
const fewQueries = 8

// A splitTile is the geometry of the kernel for few queries.
type splitTile struct{ few, threads int }

// workgroupBytes returns the workgroup memory that the kernel needs.
func (t splitTile) workgroupBytes(dim int) int {
	return t.few*(4*dim+4*splitKeys+2*4*16) + 16*t.threads
}

// splitTile chooses the geometry.
func (a *attention) splitTile() splitTile {
	limits := a.c.limits
	t := splitTile{1, 256}
	for t.threads > int(min(limits.MaxInvocations, limits.MaxWorkgroupSizeX)) {
		t.threads /= 2
	}
	for t.few < min(a.queries, fewQueries) && 32*t.few <= t.threads {
		more := t
		more.few *= 2
		if more.workgroupBytes(a.dim) > int(limits.MaxWorkgroupStorage) {
			break
		}
		t = more
	}
	return t
}

// A portion is a run of slabs and of queries that scratch memory has room for.
type portion struct{ slabs, queries pass.Span }

// split emits the kernels for few queries: one that takes stretches of keys, and one
// that joins what it found, as often as scratch memory is too small for all.
func (a *attention) split(pieces []slabPiece) error {
	t := a.splitTile()
	slabs, splits := a.batch*a.heads, max(roundUp(a.most, splitKeys)/splitKeys, 1)
	limits := a.c.limits
	most := int(min(limits.MaxStorageBindingSize, limits.MaxBufferSize)/16) / (a.dim/4 + 1) / splits // rows
	eachQueries := a.queries
	if splits > 1 {
		eachQueries = min(a.queries, most)
	}
	if eachQueries == 0 {
		return fmt.Errorf("what is found in %d keys exceeds the device's %d bytes for one binding: %w", a.most, limits.MaxStorageBindingSize, pass.ErrUnsupported)
	}
	eachSlabs := slabs
	if splits > 1 {
		eachSlabs = min(slabs, max(most/eachQueries, 1))
	}
	regions, err := a.regions(t.few, func(r region) bool { return a.holdsQueries(r, t.few) })
	if err != nil {
		return err
	}
	for _, r := range regions {
		a.bindQueries(r, t.few)
		slabs := r.slabs(a.heads)
		for s := slabs.From; s < slabs.To; s += eachSlabs {
			for q := r.queries.From; q < r.queries.To; q += eachQueries {
				w := portion{pass.Span{From: s, To: min(s+eachSlabs, slabs.To)}, pass.Span{From: q, To: min(q+eachQueries, r.queries.To)}}
				if err := a.portion(w, r, pieces, t, splits); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (a *attention) portion(w portion, r region, pieces []slabPiece, t splitTile, splits int) error {
	cost := share(a.cost, w.slabs.Len()*w.queries.Len(), a.batch*a.heads*a.queries)
	out := a.o.operand
	if splits > 1 {
		out = a.c.scratch(w.slabs.Len() * w.queries.Len() * splits * (a.dim + 4))
		out.write = true
		defer a.c.giveBack(out)
	}
	for _, p := range pieces {
		slabs := pass.Span{From: max(p.from, w.slabs.From), To: min(p.to, w.slabs.To)}
		if slabs.Len() <= 0 {
			continue
		}
		a.bindKeys(r.items, pass.Span{From: p.first, To: p.first + p.span})
		k := a.kernel("attention_split", "split", p)
		k.values["Direct"], k.values["Few"], k.values["Threads"], k.values["HeadQuads"] = splits == 1, t.few, t.threads, a.dim/4
		k.values["Groups"] = min(t.threads/(a.dim/4), splitKeys)
		k.bind("OutBinding", true, out)
		a.numbers(&k)
		here := min(max(roundUp(p.span, splitKeys)/splitKeys, 1), splits-p.first/splitKeys)
		groups := roundUp(w.queries.Len(), t.few) / t.few
		left, right, _ := a.band()
		words := append(append(a.words(), uint32(left), uint32(right)), a.where(p)...)
		words = append(words, uint32(groups), uint32(here), uint32(splits), uint32(w.slabs.From))
		back := []uint32{uint32(slabs.From), uint32(w.queries.From), uint32(w.queries.Len())}
		part := share(cost, slabs.Len()*here, w.slabs.Len()*splits)
		if err := a.c.tiles(a.label, k, words, slabs.Len()*groups*here, back, part); err != nil {
			return err
		}
	}
	if splits == 1 {
		return nil
	}
	return a.join(w, out, splits)
}

// join emits the kernel that joins stretches of keys.
func (a *attention) join(w portion, found operand, splits int) error {
	found.write = false
	k := numbered{kernel{shader: "attention_join", entry: "join", values: shaders.Values{
		"Quads": a.o.inFours(), "Lengths": a.lengths.kind,
	}}, []operand{found}}
	k.bind("OutBinding", true, a.o.operand)
	k.bind("LengthsBinding", a.lengths.kind != "none", a.lengths.o)
	k.status(a.c, a.lengths)
	rows := w.slabs.Len() * w.queries.Len()
	units := rows * a.dim / 4
	words := []uint32{uint32(units), uint32(a.dim / 4), uint32(a.queries), uint32(splits), uint32(a.heads)}
	words = append(append(words, a.o.words()...), uint32(w.slabs.From), uint32(w.queries.From), uint32(w.queries.Len()), a.lengths.shift)
	most := int(a.c.limits.MaxWorkgroups)
	groups := min(roundUp(units, 64)/64, most*most)
	return a.c.emit(a.label, k.kernel, k.operands, words, [3]int{groups, 1, 1}, pass.Cost{Bytes: 4 * float64(rows*splits*(a.dim+4))})
}
