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
	before := sets(len(launches)) // all that come before, directly or not
	flat := make([]int, 0, len(launches)+len(launches)/4)
	var h hazards
	for i := range launches {
		first := len(flat)
		direct := h.next(i, launches[i].touches)
		if len(direct) > 1 {
			slices.SortFunc(direct, func(a, b int) int { return cmp.Compare(b, a) }) // latest first
		}
		for _, k := range direct {
			if before[i].has(k) {
				continue
			}
			flat = append(flat, k)
			before[i].add(k)
			before[i].join(before[k])
		}
		if after := flat[first:len(flat):len(flat)]; len(after) > 0 {
			slices.Reverse(after)
			all[i] = after
		}
	}
	return all
}

// hazards knows for every range of memory who wrote it last and who has read it since.
type hazards struct {
	spans []use // sorted, apart from each other
	after []int // what next returned last
}

type use struct {
	from, to driver.Pointer
	writer   int // −1: nobody
	readers  []int
}

// next returns what launch i must wait for, until the next call, and notes what it touches.
func (h *hazards) next(i int, touches []touch) []int {
	h.after = h.after[:0]
	for _, t := range touches {
		spans := h.of(t.from, t.to)
		for k := range spans {
			u := &spans[k]
			if u.writer >= 0 && u.writer != i {
				h.after = append(h.after, u.writer)
			}
			if t.write {
				for _, r := range u.readers {
					if r != i {
						h.after = append(h.after, r)
					}
				}
			}
		}
	}
	for _, t := range touches {
		spans := h.of(t.from, t.to)
		for k := range spans {
			u := &spans[k]
			if t.write {
				u.writer, u.readers = i, u.readers[:0]
			} else if n := len(u.readers); n == 0 || u.readers[n-1] != i {
				u.readers = append(u.readers, i)
			}
		}
	}
	return h.after
}

// of returns the spans of a range, which begin and end with it.
func (h *hazards) of(from, to driver.Pointer) []use {
	k := h.find(from)
	if k < len(h.spans) && h.spans[k].from == from && h.spans[k].to == to {
		return h.spans[k : k+1]
	}
	h.split(from)
	h.split(to)
	h.cover(from, to)
	first := h.find(from)
	return h.spans[first : h.find(to-1)+1]
}

// find returns the index of the first span that ends behind at.
func (h *hazards) find(at driver.Pointer) int {
	low, high := 0, len(h.spans)
	for low < high {
		if k := (low + high) / 2; h.spans[k].to <= at {
			low = k + 1
		} else {
			high = k
		}
	}
	return low
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
	first.readers = slices.Clone(u.readers)
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

// sets returns n empty ones, number i of which holds numbers below i.
func sets(n int) []set {
	words := func(i int) int { return (i + 63) / 64 }
	total := 0
	for i := range n {
		total += words(i)
	}
	room := make(set, total)
	all := make([]set, n)
	for i := range all {
		all[i], room = room[:words(i):words(i)], room[words(i):]
	}
	return all
}

func (s set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) has(i int) bool { return s[i/64]>>(i%64)&1 == 1 }
func (s set) join(t set) {
	for i, w := range t {
		s[i] |= w
	}
}
