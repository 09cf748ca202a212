package gpu

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
)

// A binder makes the bind groups of a program. Dispatches that bind the same share one:
// where their words are in the buffer of all is an offset that a dispatch gives.
type binder struct {
	p       *program
	buffers []*memory
	run     []driver.Command
	marks   []driver.Command
	groups  []driver.BindGroupID
	shared  map[string]driver.BindGroupID
	written []driver.BufferID

	list []driver.Binding // of the dispatch at hand
	key  []byte
}

func (b *binder) undo() {
	for _, g := range b.groups {
		b.p.s.d.check(b.p.s.d.drv.DestroyBindGroup(g))
	}
}

func (b *binder) bind() error {
	b.run = make([]driver.Command, 0, len(b.p.dispatches))
	b.shared = map[string]driver.BindGroupID{}
	for i := range b.p.dispatches {
		c := &b.p.dispatches[i]
		g, err := b.group(c)
		if err != nil {
			return fmt.Errorf("dispatch %d: %s: %w", i, c.label, err)
		}
		b.run = append(b.run, driver.Dispatch(c.kernel.id, g, uint32(c.groups[0]), uint32(c.groups[1]), uint32(c.groups[2]), uint32(i*blockBytes)))
	}
	return b.mark()
}

// group returns a bind group for a dispatch.
func (b *binder) group(c *dispatch) (driver.BindGroupID, error) {
	if err := b.bindings(c); err != nil {
		return 0, err
	}
	b.key = b.key[:0]
	for i, l := range b.list {
		if i > 0 {
			b.key = append(b.key, byte(bindingKind(!c.operands[i-1].write)))
		}
		for _, n := range [...]uint64{uint64(l.Buffer), l.Offset, l.Size} {
			b.key = binary.LittleEndian.AppendUint64(b.key, n)
		}
	}
	if g, ok := b.shared[string(b.key)]; ok {
		return g, nil
	}
	g, err := b.p.s.d.drv.CreateBindGroup(c.kernel.id, b.list)
	if err != nil {
		return 0, err
	}
	b.groups = append(b.groups, g)
	b.shared[string(b.key)] = g
	return g, nil
}

// mark makes the marks that depend on everything that the program writes: a chain, if
// that is more than one dispatch can bind.
func (b *binder) mark() error {
	t := b.p.s.timeline
	for chunk := range slices.Chunk(b.written, t.marked()) {
		if err := b.link(chunk); err != nil {
			return err
		}
	}
	if b.written == nil {
		return b.link(nil)
	}
	return nil
}

func (b *binder) link(written []driver.BufferID) error {
	k, g, err := b.p.s.timeline.after(written)
	if err != nil {
		return err
	}
	b.groups = append(b.groups, g)
	b.marks = append(b.marks, driver.Dispatch(k.id, g, 1, 1, 1))
	return nil
}

// bindings lists what a dispatch binds.
func (b *binder) bindings(c *dispatch) error {
	b.list = append(b.list[:0], driver.Binding{Buffer: b.p.uniforms.id, Size: blockBytes})
	for k, o := range c.operands {
		m := b.memory(o)
		first, end := o.first, o.end
		if m == nil || first >= m.words { // an empty range
			kind, at := spareRead, 0
			if o.write {
				kind, at = spareWrite, k
			}
			var err error
			if m, err = b.p.s.d.spareMemory(kind); err != nil {
				return err
			}
			align := int(b.p.s.d.limits.StorageOffsetAlignment) / 4
			first, end = at*align, at*align+leastWords
		} else if o.write && m != b.p.s.timeline.state && !slices.Contains(b.written, m.id) {
			b.written = append(b.written, m.id)
		}
		b.list = append(b.list, driver.Binding{Buffer: m.id, Offset: 4 * uint64(first), Size: 4 * uint64(roundUp(max(end, first+1)-first, leastWords))})
	}
	return nil
}

// memory returns where an operand lies; nil if it has no elements.
func (b *binder) memory(o operand) *memory {
	switch {
	case o.memory != nil:
		return o.memory
	case o.fixed:
		return b.p.constants
	case o.scratch > 0:
		return b.buffers[b.p.scratch+o.scratch-1]
	}
	return b.p.at(o.place, b.buffers)
}
