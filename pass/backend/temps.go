package backend

import (
	"cmp"
	"slices"

	"github.com/tandem-gpu/tandem/pass"
)

// overlaps reports whether two temporaries are needed at the same step.
func (t Temp) overlaps(u Temp) bool { return t.First <= u.Last && u.First <= t.Last }

// Pack places the temporaries in one row of memory, such that those needed at the
// same step do not overlap. It returns the offset of each, a multiple of align
// elements, and the length of the row. Large ones are placed first, each at the lowest
// offset that is free: the greedy order that comes close to the largest set alive.
func (p *Plan) Pack(align int) (offsets []int, length int) {
	offsets = make([]int, len(p.Temps))
	var placed []int
	for _, i := range p.bySize() {
		t := p.Temps[i]
		at := 0
		for _, j := range placed { // sorted by offset
			u := p.Temps[j]
			if !t.overlaps(u) || offsets[j]+u.Len <= at {
				continue
			}
			if at+t.Len <= offsets[j] {
				break
			}
			at = (offsets[j] + u.Len + align - 1) / align * align
		}
		offsets[i] = at
		length = max(length, at+t.Len)
		k, _ := slices.BinarySearchFunc(placed, at, func(j, at int) int { return cmp.Compare(offsets[j], at) })
		placed = slices.Insert(placed, k, i)
	}
	return offsets, length
}

// Colour gives each temporary a whole buffer, such that those needed at the same step
// have different ones: for devices that track the use of whole buffers. It returns the
// buffer of each (−1 if it has no elements) and the length of every buffer in elements.
// Large ones choose first, so that a buffer is as large as its first user.
func (p *Plan) Colour() (colours, lengths []int) {
	colours = make([]int, len(p.Temps))
	var users [][]int
	for _, i := range p.bySize() {
		t := p.Temps[i]
		if t.Len == 0 {
			colours[i] = -1
			continue
		}
		colour := slices.IndexFunc(users, func(others []int) bool {
			return !slices.ContainsFunc(others, func(j int) bool { return t.overlaps(p.Temps[j]) })
		})
		if colour < 0 {
			colour = len(users)
			users = append(users, nil)
			lengths = append(lengths, t.Len)
		}
		colours[i] = colour
		users[colour] = append(users[colour], i)
	}
	return colours, lengths
}

// Alive returns the largest number of elements of temporaries needed at one step.
func (p *Plan) Alive() int {
	most := 0
	for step := -1; step <= len(p.Steps); step++ {
		sum := 0
		for _, t := range p.Temps {
			if t.First <= step && step <= t.Last {
				sum += t.Len
			}
		}
		most = max(most, sum)
	}
	return most
}

// bySize returns the temporaries, largest first.
func (p *Plan) bySize() []int {
	order := make([]int, len(p.Temps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.Temps[b].Len, p.Temps[a].Len) })
	return order
}

// Cost returns the sum over all steps.
func (p *Plan) Cost() pass.Cost {
	var sum pass.Cost
	for _, s := range p.Steps {
		sum = sum.Add(s.Cost)
	}
	return sum
}
