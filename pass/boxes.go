package pass

import "unsafe"

// boxes are memory for ops that a Checker returns, a row for each type: an interface points
// to its value, which would be a piece of memory for every op.
type boxes map[unsafe.Pointer]*row

// A row is values of one type. They are told apart by where they lie.
type row struct {
	like     Op // one of the type
	at       unsafe.Pointer
	len      int
	used     int // of len
	taken    int // since rewind
	expected int
}

// leastBoxes is how many values a row has room for at least.
const leastBoxes = 16

// keep returns an op as describe has made it, in the memory of a Checker if it is one's.
func keep[T Op](c *checker, op T) Op {
	if c.boxes == nil {
		return op
	}
	var none any = (*T)(nil)
	kind := (*[2]unsafe.Pointer)(unsafe.Pointer(&none))[0] // no two types have the same
	r := c.boxes[kind]
	if r == nil {
		r = &row{like: op}
		c.boxes[kind] = r
	}
	if unsafe.Sizeof(op) <= unsafe.Sizeof(kind) { // which an interface may hold itself
		return op
	}
	if r.used == r.len {
		values := make([]T, max(leastBoxes, r.expected))
		r.at, r.len, r.used = unsafe.Pointer(unsafe.SliceData(values)), len(values), 0
	}
	to := (*T)(unsafe.Add(r.at, uintptr(r.used)*unsafe.Sizeof(op)))
	*to = op
	r.used++
	r.taken++
	kept := r.like
	(*[2]unsafe.Pointer)(unsafe.Pointer(&kept))[1] = unsafe.Pointer(to)
	return kept
}

// rewind takes all values back: as many have room in one piece from then on.
func (b boxes) rewind() {
	for _, r := range b {
		if r.taken > r.len {
			r.at, r.len, r.expected = nil, 0, r.taken
		}
		r.used, r.taken = 0, 0
	}
}
