package cuda

import (
	"cmp"
	"slices"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
)

// dependencies returns for each launch those before it that must be done first: what
// writes memory that it reads or writes, and what reads memory that it writes. Launches
// that others already wait for are left out.
func dependencies(launches []launch) [][]int {
	all := make([][]int, len(launches))
	before := make([]set, len(launches)) // all that come before, directly or not
	var h hazards
	for i := range launches {
		before[i] = newSet(i)
		direct := h.next(i, launches[i].touches)
		slices.SortFunc(direct, func(a, b int) int { return cmp.Compare(b, a) }) // latest first
		for _, k := range slices.Compact(direct) {
			if before[i].has(k) {
				continue
			}
			all[i] = append(all[i], k)
			before[i].add(k)
			before[i].join(before[k])
		}
		slices.Sort(all[i])
	}
	return all
}

// hazards knows for every range of memory who wrote it last and who has read it since.
type hazards struct{ spans []use } // sorted, apart from each other

type use struct {
	from, to driver.Pointer
	writer   int // −1: nobody
	readers  []int
}

// next returns what launch i must wait for, and notes what it touches.
func (h *hazards) next(i int, touches []touch) []int {
	var after []int
	for _, t := range touches {
		h.split(t.from)
		h.split(t.to)
		h.cover(t.from, t.to)
		for k := h.find(t.from); k < len(h.spans) && h.spans[k].from < t.to; k++ {
			u := &h.spans[k]
			if u.writer >= 0 && u.writer != i {
				after = append(after, u.writer)
			}
			if t.write {
				for _, r := range u.readers {
					if r != i {
						after = append(after, r)
					}
				}
			}
		}
	}
	for _, t := range touches {
		for k := h.find(t.from); k < len(h.spans) && h.spans[k].from < t.to; k++ {
			u := &h.spans[k]
			if t.write {
				u.writer, u.readers = i, nil
			} else if !slices.Contains(u.readers, i) {
				u.readers = append(u.readers[:len(u.readers):len(u.readers)], i)
			}
		}
	}
	return after
}

// find returns the index of the first span that ends behind at.
func (h *hazards) find(at driver.Pointer) int {
	k, _ := slices.BinarySearchFunc(h.spans, at, func(u use, at driver.Pointer) int {
		if u.to <= at {
			return -1
		}
		return 1
	})
	return k
}

// split makes at a border of the span that it lies in.
func (h *hazards) split(at driver.Pointer) {
	k := h.find(at)
	if k == len(h.spans) || h.spans[k].from >= at {
		return
	}
	u := h.spans[k]
	first := u
	first.to = at
	u.from = at
	h.spans[k] = u
	h.spans = slices.Insert(h.spans, k, first)
}

// cover adds spans where there are none within a range.
func (h *hazards) cover(from, to driver.Pointer) {
	for k := h.find(from); from < to; k++ {
		end := to
		if k < len(h.spans) {
			end = min(end, h.spans[k].from)
		}
		if from < end {
			h.spans = slices.Insert(h.spans, k, use{from: from, to: end, writer: -1})
		}
		from = max(end, h.spans[k].to)
	}
}

// A set of numbers below some n.
type set []uint64

func newSet(n int) set { return make(set, (n+63)/64) }

func (s set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) has(i int) bool { return s[i/64]>>(i%64)&1 == 1 }
func (s set) join(t set) {
	for i, w := range t {
		s[i] |= w
	}
}
