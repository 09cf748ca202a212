package cuda

import (
	"fmt"
	"math"
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

// A future is what becomes of rows that a step writes.
type future struct {
	products []int // steps whose left operand they are, while nothing is written there
	exact    bool  // one of them takes no rounded operands
	others   bool  // something else reads them, or they outlive the recording
}

// future returns what becomes of the rows of the argument that the step being compiled
// writes.
func (c *compiler) future(a pass.Arg) (f future) {
	key := c.rowsKey(a)
	first, end := a.Range()
	span, whole := pass.Span{From: first, To: end}, true
	live := []pass.Span{span} // what has not been written again
	users := c.usersOf(key.place)
	next, _ := slices.BinarySearch(users, c.index+1)
	for _, i := range users[next:] {
		step := &c.plan.Steps[i]
		for _, u := range step.Args {
			if u.Access&pass.Read == 0 || c.plan.Place(u.View.Buffer) != key.place || !meets(live, u) {
				continue
			}
			g, ok := step.Op.(pass.Gemm)
			if !ok || !whole || !c.takesHalves(g, u, key) {
				f.others = true
				continue
			}
			f.products = append(f.products, i)
			f.exact = f.exact || !c.roundable(g)
		}
		for _, u := range step.Args {
			if u.Access&pass.Write == 0 || c.plan.Place(u.View.Buffer) != key.place {
				continue
			}
			whole = whole && !meets([]pass.Span{span}, u)
			if c.rowsKey(u) == key {
				live = nil
			}
			live = without(live, u)
		}
		if len(live) == 0 {
			return f
		}
	}
	for _, o := range c.plan.Outputs {
		f.others = f.others || o.Place == key.place && slices.ContainsFunc(live, func(s pass.Span) bool { return s.From < o.Offset+o.Len && o.Offset < s.To })
	}
	f.others = f.others || key.place.State
	return f
}

// takesHalves reports whether an argument of a product is the rows of that name as its left
// operand, which it takes as halves.
func (c *compiler) takesHalves(g pass.Gemm, u pass.Arg, rows rowsKey) bool {
	return u.Name == "A" && u.Batch*u.Rows > fewRows && c.rowsKey(u) == rows && !c.plan.Param(g.W).(*linearParam).ranging(c.roundable(g))
}

// roundable reports whether a product of the recording may round its operands.
func (c *compiler) roundable(g pass.Gemm) bool { return c.plan.Math == pass.Fast && !g.Exact }

// readAgain reports whether a product behind the step being compiled has the rows as its left
// operand too. That is worth a hint to the cache, no long search: it looks at the next few
// steps that use the buffer.
func (c *compiler) readAgain(a pass.Arg) bool {
	const far = 16
	key := c.rowsKey(a)
	first, end := a.Range()
	span := []pass.Span{{From: first, To: end}}
	users := c.usersOf(key.place)
	next, _ := slices.BinarySearch(users, c.index+1)
	for _, i := range users[next:min(next+far, len(users))] {
		step := &c.plan.Steps[i]
		written := false
		for _, u := range step.Args {
			if c.plan.Place(u.View.Buffer) != key.place {
				continue
			}
			if g, ok := step.Op.(pass.Gemm); ok && c.takesHalves(g, u, key) {
				return true
			}
			written = written || u.Access&pass.Write != 0 && meets(span, u)
		}
		if written {
			return false
		}
	}
	return false
}

// usersOf returns the steps that use a buffer.
func (c *compiler) usersOf(p backend.Place) []int {
	if c.users == nil {
		c.users = users(c.plan)
	}
	return c.users[numberOf(c.plan, p)]
}

// users returns the steps that use each buffer of a plan.
func users(plan *backend.Plan) [][]int {
	buffers := len(plan.Temps) + len(plan.States)
	all, counts, total := make([][]int, buffers), make([]int, buffers), 0
	for i := range plan.Steps {
		for _, a := range plan.Steps[i].Args {
			counts[numberOf(plan, plan.Place(a.View.Buffer))]++
			total++
		}
	}
	room := make([]int, total)
	for b, n := range counts {
		all[b], room = room[:0:n], room[n:]
	}
	for i := range plan.Steps {
		for _, a := range plan.Steps[i].Args {
			u := &all[numberOf(plan, plan.Place(a.View.Buffer))]
			if n := len(*u); n == 0 || (*u)[n-1] != i {
				*u = append(*u, i)
			}
		}
	}
	return all
}

// numberOf numbers the buffers of a plan: temporaries, then states.
func numberOf(plan *backend.Plan, p backend.Place) int {
	if p.State {
		return len(plan.Temps) + p.Index
	}
	return p.Index
}

// meets reports whether an argument has elements, or gaps between its rows, in any of the
// spans.
func meets(spans []pass.Span, a pass.Arg) bool {
	first, end := a.Range()
	return slices.ContainsFunc(spans, func(s pass.Span) bool { return s.From < end && first < s.To })
}

// without returns what an argument that is written leaves of spans: all of them, if its
// rows have gaps.
func without(spans []pass.Span, a pass.Arg) (rest []pass.Span) {
	v := a.View
	if a.Rows > 1 && v.RowStride != a.Cols || a.Batch > 1 && v.BatchStride != a.Rows*a.Cols {
		return spans
	}
	first, end := a.Range()
	for _, s := range spans {
		for _, part := range []pass.Span{{From: s.From, To: min(s.To, first)}, {From: max(s.From, end), To: s.To}} {
			if part.From < part.To {
				rest = append(rest, part)
			}
		}
	}
	return rest
}

// leave returns room for rows that the step being compiled writes as a left operand of
// products, which find it there.
func (c *compiler) leave(a pass.Arg, exact, norms bool) prepared {
	rows := a.Batch * a.Rows
	p := prepared{rows: a.Rows, stride: roundUp(a.Cols, 8), scales: c.temporary(4 * rows)}
	p.high = c.temporary(2 * rows * p.stride)
	if exact {
		p.low = c.temporary(2 * rows * p.stride)
	}
	if norms {
		p.norms = c.temporary(4 * rows)
	}
	first, end := a.Range()
	c.halves = append(c.halves, preparedRows{c.rowsKey(a), pass.Span{From: first, To: end}, p})
	return p
}

// results notes that a launch writes rows whose future is given: as halves, if products read
// them, with norms the lengths too; and as F32, if something else does, or the launch itself
// does again. It returns the parameters, of which what is not wanted is zero, and what Dump
// should tell.
func (k *call) results(y pass.Arg, next future, norms, again bool) (f32 kernels.View, halves kernels.Halves, note string) {
	alone := len(next.products) > 0 && !next.others && !again
	if !alone {
		f32 = k.write(y.View, y.Batch, y.Rows, y.Cols)
	}
	if len(next.products) > 0 {
		halves = k.halves(k.c.leave(y, next.exact, norms && k.c.fast))
		note = "; " + kept(next.products, alone)
	}
	return f32, halves, note
}

// kept says for Dump that there are halves, and which steps read them.
func kept(steps []int, alone bool) string {
	if alone {
		return fmt.Sprintf("halves alone, which only the products of these ops read: %v", steps)
	}
	return fmt.Sprintf("halves too, for the products of ops %v", steps)
}

// halves notes that a launch writes a left operand, and returns the parameter for it.
func (k *call) halves(p prepared) kernels.Halves {
	h := kernels.Halves{High: kernels.F16(k.to(p.high)), Scales: kernels.F32(k.to(p.scales)), Stride: int64(p.stride)}
	if p.low.bytes > 0 {
		h.Low = kernels.F16(k.to(p.low))
	}
	if p.norms.bytes > 0 {
		h.Norms = kernels.F32(k.to(p.norms))
	}
	return h
}

// boundedRows are rows that a product leaves as the left operand of others. No result exceeds
// the length of its row of the left operand, times the length of the longest row of weights,
// plus the largest bias; an epilogue makes it no larger, but for one that is steep.
//
// F16 has thirty binades. Of the bound such a result may lose 2^−39, while rounding operands
// loses 2^−12 of the operands' length; and what is finite stays finite.
type boundedRows struct {
	prepared
	reach, lift, most float32 // see kernels.Tile
	readers           []int   // steps
}

// boundable returns the products that read what another leaves them as halves: if it may
// round its operands, and nothing else reads what it writes, nor one that must not round.
func (c *compiler) boundable(op pass.Gemm) (readers []int) {
	if !c.fast || op.Epilogue.InPlace() || op.Columns.Len()%8 != 0 || op.Columns.To > op.W.Shape().(pass.LinearShape).N {
		return nil
	}
	next := c.future(pass.Arg{View: op.C, Batch: op.Batch, Rows: op.Rows, Cols: op.Columns.Len()})
	if next.exact || next.others {
		return nil
	}
	return next.products
}

// leaveProduct makes a product leave halves to its readers, if the lengths of its rows are
// known. They are of rows whose scale was measured only: bounds of bounds would drift away
// from the values.
func (c *compiler) leaveProduct(m *linearProduct, op pass.Gemm, readers []int) error {
	if len(readers) == 0 || m.left.norms.bytes == 0 {
		return nil
	}
	h := &boundedRows{lift: m.p.lift, most: math.MaxFloat32, readers: readers}
	var err error
	if h.reach, err = m.p.reach(c.ctx); err != nil {
		return err
	}
	switch op.Epilogue.Kind() {
	case pass.KindTanh:
		h.most = 1
	case pass.KindSigmoid:
		h.reach, h.lift, h.most = 0, 1, 1
	case pass.KindLeaky:
		steep := max(op.Epilogue.Alpha(), -op.Epilogue.Alpha(), 1)
		h.reach, h.lift = min(h.reach*steep, h.most), min(h.lift*steep, h.most)
	}
	h.prepared = c.leave(pass.Arg{View: op.C, Batch: op.Batch, Rows: op.Rows, Cols: m.width}, false, false)
	m.halves = h
	return nil
}

// view notes that a launch writes the rows, and returns them as kernels take them.
func (h *boundedRows) view(k *call) kernels.View {
	row := int64(h.stride / 2) // F16, counted as F32
	return kernels.View{P: kernels.F32(k.to(h.high)), Row: row, Batch: int64(h.rows) * row}
}

// note says what Dump should tell of a product's operands and results.
func (m *linearProduct) note() string {
	note := m.left.note
	if m.halves != nil {
		if note != "" {
			note += "; "
		}
		note += kept(m.halves.readers, true)
	}
	return note
}

// left returns rows of F32 as the left operand of products: as the step before left them
// that prepared or wrote them, if nothing was written there since. With norms the lengths of
// rows are wanted too, if they must be prepared.
func (c *compiler) left(a pass.Arg, norms bool) (prepared, error) {
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
		for _, r := range []region{p.high, p.low, p.scales, p.norms} {
			c.keep(r)
		}
		p.note = fmt.Sprintf("rows as op %d left them", p.high.step)
		return p, nil
	}
	rows := rowsOf(func(k *call) kernels.View { return k.read(a.View, a.Batch, a.Rows, a.Cols) }, a.Batch, a.Rows, a.Cols)
	rows.norms = norms
	p, err := c.prepare(rows)
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
	type write struct {
		place      backend.Place
		first, end int
	}
	var writes []write
	for _, a := range step.Args {
		if a.Access&pass.Write != 0 {
			first, end := a.Range()
			writes = append(writes, write{c.plan.Place(a.View.Buffer), first, end})
		}
	}
	c.halves = slices.DeleteFunc(c.halves, func(h preparedRows) bool {
		if !h.key.place.State && c.plan.Temps[h.key.place.Index].Last < c.index {
			return true
		}
		return slices.ContainsFunc(writes, func(w write) bool {
			return w.place == h.key.place && w.first < h.span.To && h.span.From < w.end
		})
	})
}
