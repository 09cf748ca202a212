package guard

import (
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
)

// CheckGroup says whether the bindings fit the pipeline, and returns it with the
// buffers.
func (b *Book[B, P, G, Q]) CheckGroup(id driver.PipelineID, bindings []driver.Binding) (*Pipeline[P], []*Buffer[B], error) {
	p, err := b.pipelines.get(uint64(id))
	if err != nil {
		return nil, nil, fmt.Errorf("driver: create bind group: %w", err)
	}
	fail := func(err error) (*Pipeline[P], []*Buffer[B], error) {
		return nil, nil, fmt.Errorf("driver: create bind group for pipeline %q: %w", p.Label, err)
	}
	if len(bindings) != len(p.Bindings) {
		return fail(invalid("bindings: wanted %d, given %d", len(p.Bindings), len(bindings)))
	}
	buffers := make([]*Buffer[B], len(bindings))
	for i, g := range bindings {
		if buffers[i], err = b.checkBinding(p.Bindings[i], g); err != nil {
			return fail(fmt.Errorf("binding %d: %w", i, err))
		}
	}
	for i := range bindings {
		for j := range i {
			if clash(p.Bindings[i], p.Bindings[j], bindings[i], bindings[j]) {
				return fail(invalid("bindings %d (%v) and %d (%v) write and use one %v",
					j, p.Bindings[j], i, p.Bindings[i], buffers[i]))
			}
		}
	}
	return p, buffers, nil
}

// checkBinding checks one binding by itself.
func (b *Book[B, P, G, Q]) checkBinding(kind driver.BindingKind, g driver.Binding) (*Buffer[B], error) {
	usage, align, limit := driver.Storage, b.limits.StorageOffsetAlignment, b.limits.MaxStorageBindingSize
	if kind == driver.UniformBlock || kind == driver.UniformDynamic {
		usage, align, limit = driver.Uniform, b.limits.UniformOffsetAlignment, b.limits.MaxUniformBindingSize
	}
	o, err := b.buffers.get(uint64(g.Buffer))
	switch {
	case err != nil:
		return nil, err
	case o.Usage&usage == 0:
		return nil, invalid("%v: wanted usage %v", o, usage)
	case align != 0 && g.Offset%uint64(align) != 0:
		return nil, invalid("%v: offset: wanted a multiple of %d, given %d", o, align, g.Offset)
	case g.Size == 0 || g.Size%copyAlignment != 0:
		return nil, invalid("%v: size: wanted a multiple of %d above 0, given %d", o, copyAlignment, g.Size)
	case g.Size > limit:
		return nil, invalid("%v: size: wanted at most %d (limit for %v), given %d", o, limit, kind, g.Size)
	}
	return o, o.within(g.Offset, g.Size)
}

// clash reports whether two bindings may not be in one dispatch. The device judges
// reads against writes by whole buffers, and two writes by their ranges.
func clash(k, l driver.BindingKind, g, h driver.Binding) bool {
	if g.Buffer != h.Buffer || k != driver.StorageReadWrite && l != driver.StorageReadWrite {
		return false
	}
	return k != l || g.Offset < h.Offset+h.Size && h.Offset < g.Offset+g.Size
}

// AddGroup enters a bind group with what CheckGroup returned.
func (b *Book[B, P, G, Q]) AddGroup(p *Pipeline[P], bindings []driver.Binding, buffers []*Buffer[B], native G) (driver.BindGroupID, error) {
	id, err := b.groups.add(&Group[B, G]{
		Native: native, Bindings: slices.Clone(bindings), Buffers: buffers, kinds: p.Bindings, layout: p.Layout,
	})
	if err != nil {
		return 0, err
	}
	b.counts.groups++
	return driver.BindGroupID(id), nil
}

// RemoveGroup takes the bind group out of the books; the caller frees Native.
func (b *Book[B, P, G, Q]) RemoveGroup(id driver.BindGroupID) (*Group[B, G], error) {
	g, err := b.groups.get(uint64(id))
	if err != nil {
		return nil, fmt.Errorf("driver: destroy bind group: %w", err)
	}
	b.groups.remove(uint64(id))
	b.counts.groups--
	return g, nil
}
