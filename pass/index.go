package pass

import "slices"

// An Index is a count that may change from one run to the next: a position, a
// number of rows. It is a constant, or it lies in a U32 buffer on the device, one
// value for the whole batch or one for each item, so that a recording is replayed
// for the next step unchanged. The zero Index is the constant 0.
type Index struct {
	constant int
	view     View
	each     bool
}

// Const returns the index that is always n.
func Const(n int) Index { return Index{constant: n} }

// IndexIn returns the index that lies in the first element of v (U32), for all items
// of the batch.
func IndexIn(v View) Index { return Index{view: v} }

// IndexEach returns the index that for item b lies in element b of v (U32).
func IndexEach(v View) Index { return Index{view: v, each: true} }

// Plus returns the index that is n more.
func (x Index) Plus(n int) Index { x.constant += n; return x }

// Const returns the value of a constant index and whether the index is one.
func (x Index) Const() (n int, ok bool) { return x.constant, x.view.IsZero() }

// Addend returns what is added to the value on the device; see [Index.Plus].
func (x Index) Addend() int { return x.constant }

// View returns where a device index lies, and whether each item has its own.
func (x Index) View() (v View, each bool) { return x.view, x.each }

func (x Index) check(c *checker, name string, batch int) {
	if n, ok := x.Const(); ok {
		c.atLeast(name, n, 0)
		return
	}
	if n := int64(x.constant); n < 0 || n > 1<<31 {
		c.failf("%s: want 0 to 2^31 added to the value on the device, given %d", name, n)
	}
	n := 1
	if x.each {
		n = batch
	}
	c.read(name, U32, x.view, 1, 1, n)
}

// within checks that count rows from a constant index on lie within limit.
func (x Index) within(c *checker, name string, count, limit int) {
	n, ok := x.Const()
	if !ok || c.err != nil {
		return
	}
	var e extent
	if end := e.add(max(n, 0), max(count, 0)); e.over || end > limit {
		c.failf("%s: want %d rows from %d on within %d", name, count, n, limit)
	}
}

// Items is one number for each item of a batch: a length, or a row of state. The
// numbers are fixed in the recording, or lie in a U32 buffer on the device. What the
// zero Items stands for is said by the field that holds it.
type Items struct {
	fixed []int
	view  View
}

// Fixed returns the given numbers, one for each item of the batch.
func Fixed(n ...int) Items { return Items{fixed: slices.Clone(n)} }

// ItemsIn returns the numbers that lie in v (U32), item b in element b.
func ItemsIn(v View) Items { return Items{view: v} }

// IsZero reports whether nothing was given.
func (l Items) IsZero() bool { return l.fixed == nil && l.view.IsZero() }

// Fixed returns the numbers that are fixed in the recording, or nil. The slice must
// not be changed.
func (l Items) Fixed() []int { return l.fixed }

// View returns where the numbers lie on the device; the zero View if they do not.
func (l Items) View() View { return l.view }

// check requires one number from 0 to most for each item; distinct ones if asked.
func (l Items) check(c *checker, name string, batch, most int, distinct bool) {
	if !l.view.IsZero() {
		c.read(name, U32, l.view, 1, 1, batch)
		return
	}
	if l.fixed == nil {
		return
	}
	if len(l.fixed) != batch {
		c.failf("%s: want one for each of %d items, given %d", name, batch, len(l.fixed))
		return
	}
	for b, n := range l.fixed {
		if n < 0 || n > most {
			c.failf("%s: item %d: want 0 to %d, given %d", name, b, most, n)
			return
		}
		if distinct && slices.Contains(l.fixed[:b], n) {
			c.failf("%s: item %d: row %d is given twice", name, b, n)
			return
		}
	}
}

// part returns the numbers of items from up to, but not including, to.
func (l Items) part(from, to int) Items {
	if !l.view.IsZero() {
		l.view.Offset += from
		return l
	}
	if l.fixed != nil {
		l.fixed = l.fixed[from:to:to]
	}
	return l
}

// A Span is a range of rows or columns, To not included. The zero Span is all.
type Span struct{ From, To int }

// Resolve returns the span within n, with the zero Span made explicit.
func (s Span) Resolve(n int) Span {
	if s == (Span{}) {
		return Span{0, n}
	}
	return s
}

// Len returns the number of rows or columns of a resolved span.
func (s Span) Len() int { return s.To - s.From }

func (s Span) check(c *checker, name string, n int) Span {
	r := s.Resolve(n)
	if r.From < 0 || r.To < r.From || r.To > n {
		c.failf("%s: want a range within 0 to %d, given %d to %d", name, n, s.From, s.To)
	}
	return r
}
