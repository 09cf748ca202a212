package gpu

// Extra is memory of one program beside its plan: what kernels of the same op hand to
// each other, and numbers that are fixed in the recording but too many for a uniform
// block. The program allocates it and uploads the fixed words once.
type extra struct {
	scratch []int    // elements of each scratch buffer, undefined before a kernel writes them
	fixed   []uint32 // one read-only buffer
	lent    []bool   // scratch buffers that the op being compiled uses
	kept    []bool   // those of them that the ops before and after it use too
}

// release lets the next op use all scratch buffers that are not kept: ops run one after
// the other.
func (e *extra) release() { copy(e.lent, e.kept) }

// lend returns the number of a scratch buffer of at least n elements that the op being
// compiled does not use yet.
func (e *extra) lend(n int) int {
	best := -1
	for i, have := range e.scratch {
		if !e.lent[i] && (best < 0 || fitsBetter(have, e.scratch[best], n)) {
			best = i
		}
	}
	if best < 0 {
		best = len(e.scratch)
		e.scratch, e.lent, e.kept = append(e.scratch, 0), append(e.lent, false), append(e.kept, false)
	}
	e.scratch[best] = max(e.scratch[best], n)
	e.lent[best] = true
	return best + 1
}

// fitsBetter reports whether a buffer of a elements suits a wish for n better than one
// of b: the smallest that is large enough, else the largest.
func fitsBetter(a, b, n int) bool {
	if a >= n && b >= n {
		return a < b
	}
	return a > b
}

// scratch returns n elements that live as long as the op being compiled.
func (c *compiler) scratch(n int) operand {
	return operand{scratch: c.extra.lend(n), end: n}
}

// giveBack lets the rest of the op use scratch memory again.
func (c *compiler) giveBack(o operand) { c.extra.lent[o.scratch-1] = false }

// fixed returns the given words, which kernels may read.
func (c *compiler) fixed(words []uint32) operand {
	e := &c.extra
	for len(e.fixed) != c.align(len(e.fixed)) {
		e.fixed = append(e.fixed, 0)
	}
	first := len(e.fixed)
	e.fixed = append(e.fixed, words...)
	return operand{fixed: true, first: first, end: len(e.fixed)}
}

// part returns the elements [first, end) of an operand and where in the binding the
// first of them is.
func (c *compiler) part(o operand, first, end int, write bool) (operand, uint32) {
	first, end = o.first+first, o.first+end
	o.first, o.end, o.write = c.align(first), max(end, first+1), write
	return o, uint32(first - o.first)
}
