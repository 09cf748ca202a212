package guard

import (
	"fmt"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
)

const resolveAlignment = 256

// Dispatch checks a command of OpDispatch and finds its objects. It allocates nothing
// when there is nothing to complain about.
func (b *Book[B, P, G, Q]) Dispatch(c *driver.Command) (*Pipeline[P], *Group[B, G], error) {
	p, err := b.pipelines.get(uint64(c.Pipeline))
	if err != nil {
		return nil, nil, fmt.Errorf("dispatch: %w", err)
	}
	g, err := b.groups.get(uint64(c.Group))
	if err == nil {
		err = b.checkDispatch(c, p, g)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("dispatch of pipeline %q: %w", p.Label, err)
	}
	return p, g, nil
}

func (b *Book[B, P, G, Q]) checkDispatch(c *driver.Command, p *Pipeline[P], g *Group[B, G]) error {
	if g.layout != p.Layout {
		return invalid("bindings: wanted %v, the bind group has %v", p.Bindings, g.kinds)
	}
	if n := b.limits.MaxWorkgroups; c.X == 0 || c.Y == 0 || c.Z == 0 || c.X > n || c.Y > n || c.Z > n {
		return invalid("workgroups: wanted 1 to %d in each dimension, given %d, %d, %d", n, c.X, c.Y, c.Z)
	}
	if int(c.Dynamic) != p.Dynamic {
		return invalid("dynamic offsets: wanted %d, given %d", p.Dynamic, c.Dynamic)
	}
	for i, o := range g.Buffers {
		if o.destroyed {
			return invalid("binding %d: %v is destroyed", i, o)
		}
		if o.Mapped {
			return invalid("binding %d: %v is being read or written", i, o)
		}
	}
	if p.Dynamic != 0 {
		return b.checkOffsets(c, g)
	}
	return nil
}

func (b *Book[B, P, G, Q]) checkOffsets(c *driver.Command, g *Group[B, G]) error {
	n := 0
	for i, kind := range g.kinds {
		if kind != driver.UniformDynamic {
			continue
		}
		offset, at, o := c.Offsets[n], &g.Bindings[i], g.Buffers[i]
		n++
		if align := b.limits.UniformOffsetAlignment; align != 0 && offset%align != 0 {
			return invalid("binding %d: dynamic offset: wanted a multiple of %d, given %d", i, align, offset)
		}
		if err := o.within(at.Offset+uint64(offset), at.Size); err != nil {
			return fmt.Errorf("binding %d: dynamic offset %d: %w", i, offset, err)
		}
	}
	return nil
}

// Copy checks a command of OpCopy and finds its buffers.
func (b *Book[B, P, G, Q]) Copy(c *driver.Command) (src, dst *Buffer[B], err error) {
	if c.Src == c.Dst {
		err = invalid("source and target are one buffer")
	} else if c.Size == 0 {
		err = invalid("size is 0")
	} else if src, err = b.use(c.Src, driver.CopySrc, c.SrcOffset, c.Size); err == nil {
		dst, err = b.use(c.Dst, driver.CopyDst, c.DstOffset, c.Size)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("copy: %w", err)
	}
	return src, dst, nil
}

// Clear checks a command of OpClear and finds its buffer.
func (b *Book[B, P, G, Q]) Clear(c *driver.Command) (dst *Buffer[B], err error) {
	if c.Size == 0 {
		err = invalid("size is 0")
	} else {
		dst, err = b.use(c.Dst, driver.CopyDst, c.DstOffset, c.Size)
	}
	if err != nil {
		return nil, fmt.Errorf("clear: %w", err)
	}
	return dst, nil
}

// Timestamp checks a command of OpTimestamp and finds its query set.
func (b *Book[B, P, G, Q]) Timestamp(c *driver.Command) (*QuerySet[Q], error) {
	q, err := b.queries.get(uint64(c.Query))
	if err == nil && c.QueryIndex >= q.Count {
		err = invalid("index: wanted below %d, given %d", q.Count, c.QueryIndex)
	}
	if err != nil {
		return nil, fmt.Errorf("timestamp: %w", err)
	}
	return q, nil
}

// Resolve checks a command of OpResolve and finds its query set and buffer.
func (b *Book[B, P, G, Q]) Resolve(c *driver.Command) (q *QuerySet[Q], dst *Buffer[B], err error) {
	q, err = b.queries.get(uint64(c.Query))
	switch {
	case err != nil:
	case c.QueryCount == 0 || c.QueryIndex > q.Count || c.QueryCount > q.Count-c.QueryIndex:
		err = invalid("range of %d stamps at %d is outside of %d", c.QueryCount, c.QueryIndex, q.Count)
	case c.DstOffset%resolveAlignment != 0:
		err = invalid("offset: wanted a multiple of %d, given %d", resolveAlignment, c.DstOffset)
	default:
		dst, err = b.use(c.Dst, driver.Resolve, c.DstOffset, uint64(c.QueryCount)*8)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("resolve timestamps: %w", err)
	}
	return q, dst, nil
}

// UnknownOp is the error for a command whose Op is none.
func UnknownOp(c *driver.Command) error {
	return invalid("operation %d is unknown", c.Op)
}
