package pass

import (
	"fmt"
	"math"
	"math/bits"
)

// A checker collects what an op declares, and the first mistake.
type checker struct {
	op     string
	err    error
	args   list[Arg]
	params list[ParamUse]
	caches list[CacheUse]
	cost   Cost
	shared [][2]string // pairs of arguments that may be the same view
}

// check checks one op, and puts into to what it is.
func (c *checker) check(op Op, to *Checked) error {
	if op == nil {
		c.op = "op"
		c.failf("want an op, given nil")
		return c.err
	}
	c.op = op.Name()
	op = op.describe(c)
	c.checkAliasing()
	if c.err != nil {
		return c.err
	}
	to.Op, to.Args, to.Params, to.Caches, to.Cost = op, c.args.take(), c.params.take(), c.caches.take(), c.cost
	return nil
}

// reset makes the checker ready for the next op.
func (c *checker) reset() {
	c.op, c.err, c.cost, c.shared = "", nil, Cost{}, c.shared[:0]
	c.args.drop()
	c.params.drop()
	c.caches.drop()
}

func (c *checker) failf(format string, a ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("pass: %s: %s: %w", c.op, fmt.Sprintf(format, a...), ErrInvalid)
	}
}

func (c *checker) atLeast(name string, n, least int) {
	if n < least {
		c.failf("%s: want at least %d, given %d", name, least, n)
	}
}

// batch returns the number of items; 0 stands for one.
func (c *checker) batch(n int) int {
	c.atLeast("Batch", n, 0)
	return max(n, 1)
}

// mul returns a·b, which must fit an int.
func (c *checker) mul(name string, a, b int) int {
	if a < 0 || b < 0 {
		return 0 // reported by the check of the field
	}
	var e extent
	n := e.mul(a, b)
	if e.over {
		c.failf("%s: want a product that fits an int, given %d and %d", name, a, b)
	}
	return n
}

// read, write and update declare an argument of batch × rows × cols elements and
// return its view with explicit strides.
func (c *checker) read(name string, t DType, v View, batch, rows, cols int) View {
	return c.arg(name, Read, t, v, batch, rows, cols)
}

func (c *checker) write(name string, t DType, v View, batch, rows, cols int) View {
	return c.arg(name, Write, t, v, batch, rows, cols)
}

func (c *checker) update(name string, t DType, v View, batch, rows, cols int) View {
	return c.arg(name, Update, t, v, batch, rows, cols)
}

func (c *checker) arg(name string, access Access, t DType, v View, batch, rows, cols int) View {
	if c.err != nil {
		return v
	}
	if v.Buffer.IsZero() {
		c.failf("%s: want a view of %v, given none", name, t)
		return v
	}
	if v.Buffer.Type() != t {
		c.failf("%s: want type %v, given %v", name, t, v.Buffer.Type())
		return v
	}
	if batch < 0 || rows < 0 || cols < 0 {
		return v // the field that is negative has been reported, or will be
	}
	if v.Offset < 0 || v.RowStride < 0 || v.BatchStride < 0 {
		c.failf("%s: want offset and strides of at least 0, given offset %d, row stride %d, batch stride %d", name, v.Offset, v.RowStride, v.BatchStride)
		return v
	}
	var m extent
	if v.RowStride == 0 {
		v.RowStride = cols
	}
	if v.BatchStride == 0 {
		v.BatchStride = m.mul(rows, v.RowStride)
	}
	if batch > 0 && rows > 0 && cols > 0 {
		row := m.add(m.mul(rows-1, v.RowStride), cols)
		item := m.add(m.mul(batch-1, v.BatchStride), cols)
		end := m.add(v.Offset, m.add(m.mul(batch-1, v.BatchStride), row))
		if m.over || end > v.Buffer.Len() {
			c.failf("%s: want %d×%d×%d elements (row stride %d, batch stride %d) from %d within %d, given up to %s",
				name, batch, rows, cols, v.RowStride, v.BatchStride, v.Offset, v.Buffer.Len(), m.format(end))
			return v
		}
		rowsApart := rows == 1 || v.RowStride >= cols
		itemsApart := batch == 1 || v.BatchStride >= row
		itemsWithin := rowsApartFrom(rows, v.RowStride, item) && (batch == 1 || v.BatchStride >= cols)
		if access&Write != 0 && !(rowsApart && itemsApart) && !itemsWithin {
			c.failf("%s: want rows that do not overlap, given %d×%d×%d elements with row stride %d, batch stride %d",
				name, batch, rows, cols, v.RowStride, v.BatchStride)
			return v
		}
	}
	*c.args.add() = Arg{name, access, v, batch, rows, cols}
	return v
}

// rowsApartFrom reports whether whole batches fit between two rows: [time][batch][channel].
func rowsApartFrom(rows, stride, item int) bool { return rows == 1 || stride >= item }

// mayShare allows two arguments to be the very same view: an in-place form.
func (c *checker) mayShare(a, b string) { c.shared = append(c.shared, [2]string{a, b}) }

// checkAliasing requires that no output shares its buffer with another argument,
// but for the in-place forms. Buffers count as a whole, because WebGPU tracks the use
// of whole buffers.
func (c *checker) checkAliasing() {
	if c.err != nil {
		return
	}
	for i := range c.args.all {
		a := &c.args.all[i]
		for j := range i {
			b := &c.args.all[j]
			if (a.Access|b.Access)&Write == 0 || a.View.Buffer != b.View.Buffer {
				continue
			}
			if c.allowed(a.Name, b.Name) && a.View == b.View {
				continue
			}
			c.failf("%s and %s: want different buffers for an output and another argument, given %v for both", b.Name, a.Name, a.View.Buffer)
			return
		}
	}
}

func (c *checker) allowed(a, b string) bool {
	for _, p := range c.shared {
		if p == [2]string{a, b} || p == [2]string{b, a} {
			return true
		}
	}
	return false
}

// param declares a param and returns its shape, which must be of type S.
func param[S ParamShape](c *checker, name string, p Param) S {
	s, ok := p.Shape().(S)
	if !ok {
		c.failf("%s: want %T, given %v", name, s, p)
		return s
	}
	*c.params.add() = ParamUse{p, name}
	return s
}

// cache declares a cache for batch items and returns what it holds.
func (c *checker) cache(name string, h Cache, access Access, batch int) CacheConfig {
	g := h.Config()
	if h.IsZero() {
		c.failf("%s: want a cache, given none", name)
		return g
	}
	if batch > g.Batch {
		c.failf("%s: want room for %d items, given %d", name, batch, g.Batch)
	}
	*c.caches.add() = CacheUse{h, name, access}
	return g
}

// done sets the cost: FLOP, plus the bytes of all arguments and the given bytes of
// params.
func (c *checker) done(flop float64, params int64) {
	c.cost.FLOP = flop
	c.cost.Bytes = float64(params)
	for i := range c.args.all {
		a := &c.args.all[i]
		n := 4 * float64(a.Batch) * float64(a.Rows) * float64(a.Cols)
		c.cost.Bytes += n
		if a.Access == Update {
			c.cost.Bytes += n
		}
	}
}

// An extent computes with element counts and remembers an overflow.
type extent struct{ over bool }

func (e *extent) mul(a, b int) int {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt {
		e.over = true
		return 0
	}
	return int(lo)
}

func (e *extent) add(a, b int) int {
	if a > math.MaxInt-b {
		e.over = true
		return 0
	}
	return a + b
}

func (e *extent) format(n int) string {
	if e.over {
		return "more than an int holds"
	}
	return fmt.Sprint(n)
}
