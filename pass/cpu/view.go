package cpu

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// A view is a [pass.View] of a checked op, resolved: rows of elements in memory that
// is bound while the op runs. Views without elements must not be asked for rows.
type view struct {
	m             *memory
	at            int
	stride, batch int
}

// view resolves v; the zero view gives one without memory.
func (p *program) view(v pass.View) view {
	if v.IsZero() {
		return view{}
	}
	return view{p.memory(p.plan.Place(v.Buffer)), v.Offset, v.RowStride, v.BatchStride}
}

func (v *view) given() bool { return v.m != nil }

// row returns n elements of row r of item b.
func (v *view) row(b, r, n int) []float32 {
	at := v.at + b*v.batch + r*v.stride
	return v.m.floats[at : at+n : at+n]
}

// words is row for elements of any type.
func (v *view) words(b, r, n int) []uint32 {
	at := v.at + b*v.batch + r*v.stride
	return v.m.words[at : at+n : at+n]
}

// items are [pass.Items], one number for each item of the batch.
type items struct {
	op, name string
	values   []int
	from     view  // where they are read from; not given: they are fixed
	plus     int64 // added to what is read
}

// items resolves l, which stands for otherwise(b) if it is zero.
func (p *program) items(op, name string, l pass.Items, batch int, otherwise func(b int) int) items {
	s := items{op: op, name: name, values: l.Fixed(), from: p.view(l.View())}
	if s.values == nil {
		s.values = make([]int, batch)
		for b := range s.values {
			s.values[b] = otherwise(b)
		}
	}
	return s
}

// read takes the numbers from the device, and checks that they are at most most, which
// is below 0 where no number is right.
func (s *items) read(most int) error {
	if !s.from.given() || len(s.values) == 0 {
		return nil
	}
	for b, word := range s.from.words(0, 0, len(s.values)) {
		n := int64(word) + s.plus
		if n > int64(most) {
			return fmt.Errorf("%s: %s: item %d: want 0 to %d, given %d: %w", s.op, s.name, b, most, n, pass.ErrInvalid)
		}
		s.values[b] = int(n)
	}
	return nil
}

// index resolves x to one number for each item of the batch.
func (p *program) index(op, name string, x pass.Index, batch int) items {
	n, _ := x.Const()
	v, each := x.View()
	s := p.items(op, name, pass.Items{}, batch, func(int) int { return n })
	s.from, s.plus = p.view(v), int64(x.Addend())
	if !each && s.from.given() {
		s.values = s.values[:1]
	}
	return s
}

// of returns the number of item b.
func (s *items) of(b int) int { return s.values[min(b, len(s.values)-1)] }
