package cuda

import (
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// A rowsKey names rows of F32 elements. Views that have the same rows have the same key,
// however they are divided into items.
type rowsKey struct {
	place             backend.Place
	first, row, batch int // offset and strides, in elements
	items, rows, cols int // how many
}

// rowsKey returns the name of the rows of an argument.
func (c *compiler) rowsKey(a pass.Arg) rowsKey {
	k := rowsKey{c.plan.Place(a.View.Buffer), a.View.Offset, a.View.RowStride, a.View.BatchStride, a.Batch, a.Rows, a.Cols}
	if k.items > 1 && (k.rows == 1 || k.batch == k.rows*k.row) {
		if k.rows == 1 {
			k.row = k.batch
		}
		k.items, k.rows = 1, k.items*k.rows
	}
	if k.items == 1 {
		k.batch = 0
	}
	if k.items*k.rows == 1 {
		k.row = 0
	}
	return k
}

// preparedRows are rows that are there as a left operand of products as well.
type preparedRows struct {
	key  rowsKey
	span pass.Span // elements of the buffer from the first to the last row
	p    prepared
}

// left returns rows of F32 as the left operand of products: as the step before left them
// that prepared or wrote them, if nothing was written there since.
func (c *compiler) left(a pass.Arg) (prepared, error) {
	key := c.rowsKey(a)
	for i := range c.halves {
		h := &c.halves[i]
		if h.key != key || !c.fast && h.p.low.bytes == 0 {
			continue
		}
		p := h.p
		p.rows = a.Rows // of this op's items
		if c.fast {
			p.low = region{}
		}
		for _, r := range []region{p.high, p.low, p.scales} {
			c.keep(r)
		}
		p.note = fmt.Sprintf("rows as op %d left them", p.high.step)
		return p, nil
	}
	p, err := c.prepare(rowsOf(func(k *call) kernels.View { return k.read(a.View, a.Batch, a.Rows, a.Cols) }, a.Batch, a.Rows, a.Cols))
	if err != nil {
		return p, err
	}
	first, end := a.Range()
	c.halves = append(c.halves, preparedRows{key, pass.Span{From: first, To: end}, p})
	return p, nil
}

// forget drops what is no longer what the buffers hold once the step is done, and what no
// step will read.
func (c *compiler) forget(step pass.Checked) {
	if len(c.halves) == 0 {
		return
	}
	c.halves = slices.DeleteFunc(c.halves, func(h preparedRows) bool {
		if !h.key.place.State && c.plan.Temps[h.key.place.Index].Last < c.index {
			return true
		}
		return slices.ContainsFunc(step.Args, func(a pass.Arg) bool {
			if a.Access&pass.Write == 0 || c.plan.Place(a.View.Buffer) != h.key.place {
				return false
			}
			first, end := a.Range()
			return first < h.span.To && h.span.From < end
		})
	})
}
