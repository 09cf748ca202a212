package passtest

import (
	"slices"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// fuzzNumbers are lengths, rows or an index that lie on the device.
type fuzzNumbers struct {
	name  string // of the op's field
	words []uint32
	one   bool // an index for the whole batch
	from  numberSource
	pad   int // words before them in their buffer
	// at, if not nil, is where they lie, and now is what holds them as the op finds them.
	at, now *fuzzValue
}

// A numberSource is how numbers come to the device.
type numberSource int

const (
	fromInput   numberSource = iota
	fromCopy                 // of an input
	fromFill                 // one for each number
	fromAdvance              // of what was filled
	fromState                // that the host wrote
	numberSources
)

func (n *fuzzNumbers) tensor() cases.Tensor {
	t := cases.Tensor{Name: n.name, Type: pass.U32, Shape: []int{len(n.words)}, Words: n.words}
	if n.one {
		t.Shape = []int{}
	}
	return t
}

// onDevice adds numbers to the step that is planned next.
func (f *fuzzer) onDevice(name string, one bool, words ...uint32) {
	f.numbers = append(f.numbers, &fuzzNumbers{name: name, one: one, words: words, from: numberSource(f.random.IntN(int(numberSources))), pad: f.random.IntN(4)})
}

// items returns numbers, one for each item, that lie in the recording or on the device,
// or none.
func (f *fuzzer) items(name string, batch int, number func(b int) int) pass.Items {
	where := f.random.IntN(3)
	if where == 0 {
		return pass.Items{}
	}
	fixed := make([]int, batch)
	words := make([]uint32, batch)
	for b := range fixed {
		fixed[b] = number(b)
		words[b] = uint32(fixed[b])
	}
	if where == 1 {
		return pass.Fixed(fixed...)
	}
	f.onDevice(name, false, words...)
	return pass.Items{}
}

// lengths returns a random length of each item of a value, or none.
func (f *fuzzer) lengths(x *fuzzValue) pass.Items {
	return f.items("Lengths", x.batch, func(int) int { return f.random.IntN(x.rows + 1) })
}

// index returns an index from 0 to most: a constant, or the constant that is added to one
// on the device.
func (f *fuzzer) index(name string, batch, most int) pass.Index {
	where := f.random.IntN(3)
	if where == 0 {
		return pass.Const(f.random.IntN(most + 1))
	}
	addend := f.random.IntN(most + 1)
	words := make([]uint32, 1)
	if where == 2 {
		words = make([]uint32, batch)
	}
	for i := range words {
		words[i] = uint32(f.random.IntN(most - addend + 1))
	}
	f.onDevice(name, where == 1, words...)
	return pass.Const(addend)
}

// place records how the numbers come to the device, and returns where they lie.
func (r *fuzzRecord) place(n *fuzzNumbers) pass.View {
	if n.at != nil {
		return r.at(n.at)
	}
	count := len(n.words)
	whole := slices.Repeat([]uint32{farWord}, n.pad+count+1)
	copy(whole[n.pad:], n.words)
	input := func() pass.View {
		in := r.p.Input(pass.U32, len(whole))
		r.binds = append(r.binds, in.U32(whole))
		return in.At(n.pad)
	}
	filled := func(less uint32) pass.View {
		b := r.p.Temp(pass.U32, len(whole))
		for i, w := range n.words {
			r.p.Do(pass.Fill{To: b.At(n.pad + i), Rows: 1, Cols: 1, Word: w - less})
		}
		return b.At(n.pad)
	}
	switch n.from {
	case fromCopy:
		from, to := input(), r.p.Temp(pass.U32, count+n.pad)
		r.p.Do(pass.Copy{From: from, To: to.At(n.pad), Rows: count, Cols: 1})
		return to.At(n.pad)
	case fromFill:
		return filled(0)
	case fromAdvance:
		by := slices.Min(n.words)
		at := filled(by)
		r.p.Do(pass.Advance{Index: at, By: int(by), Batch: count})
		return at
	case fromState:
		return r.state(pass.U32, whole).At(n.pad)
	}
	return input()
}
