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
	placed := p.timeline()
	var beside []int
	for _, i := range p.bySize() {
		t := p.Temps[i]
		if t.Len == 0 {
			continue
		}
		beside = placed.beside(t, beside[:0])
		slices.SortFunc(beside, func(a, b int) int { return cmp.Compare(offsets[a], offsets[b]) })
		at := 0
		for _, j := range beside {
			end := offsets[j] + p.Temps[j].Len
			if end <= at {
				continue
			}
			if at+t.Len <= offsets[j] {
				break
			}
			at = (end + align - 1) / align * align
		}
		offsets[i] = at
		length = max(length, at+t.Len)
		placed.add(i)
	}
	return offsets, length
}

// epoch is how many steps make an entry of a timeline: more than most temporaries live.
const epoch = 16

// A timeline finds the temporaries that are needed at the same time as another without
// going through all of them: most live for a few steps of many.
type timeline struct {
	temps []Temp
	at    [][]int // those that are needed in each epoch
}

// epochs returns the first and the last epoch in which a temporary is needed.
func (l *timeline) epochs(t Temp) (first, last int) {
	most := len(l.at) - 1
	return min(max(t.First, 0)/epoch, most), min(max(t.Last, 0)/epoch, most)
}

func (p *Plan) timeline() timeline {
	return timeline{temps: p.Temps, at: make([][]int, len(p.Steps)/epoch+1)}
}

func (l *timeline) add(i int) {
	first, last := l.epochs(l.temps[i])
	for e := first; e <= last; e++ {
		l.at[e] = append(l.at[e], i)
	}
}

// beside appends those that are needed at the same time as t, once each.
func (l *timeline) beside(t Temp, to []int) []int {
	first, last := l.epochs(t)
	for e := first; e <= last; e++ {
		for _, i := range l.at[e] {
			u := l.temps[i]
			if !t.overlaps(u) {
				continue
			}
			if from, _ := l.epochs(u); e == max(from, first) { // else it was met before
				to = append(to, i)
			}
		}
	}
	return to
}

// Colour gives each temporary a whole buffer, such that those needed at the same step
// have different ones: for devices that track the use of whole buffers. It returns the
// buffer of each (−1 if it has no elements) and the length of every buffer in elements.
// Large ones choose first, so that a buffer is as large as its first user.
func (p *Plan) Colour() (colours, lengths []int) {
	colours = make([]int, len(p.Temps))
	placed := p.timeline()
	var beside, taken []int // taken: for each buffer the last that could not have it
	for _, i := range p.bySize() {
		t := p.Temps[i]
		if t.Len == 0 {
			colours[i] = -1
			continue
		}
		beside = placed.beside(t, beside[:0])
		for _, j := range beside {
			taken[colours[j]] = i
		}
		colour := slices.IndexFunc(taken, func(by int) bool { return by != i })
		if colour < 0 {
			colour = len(taken)
			taken = append(taken, i)
			lengths = append(lengths, t.Len)
		}
		colours[i] = colour
		placed.add(i)
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
