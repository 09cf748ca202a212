package cases

import (
	"fmt"
	"math"
	"slices"

	"github.com/tandem-gpu/tandem/pass"
)

// A Layout says how tensors lie in their buffers.
type Layout uint8

const (
	// Dense: each tensor fills its buffer.
	Dense Layout = iota
	// Awkward: odd offsets, padded rows and padded items, nothing aligned.
	Awkward
	// Interleaved: the items of a batch lie within a row: [row][item][col].
	Interleaved
)

// Layouts lists all layouts.
func Layouts() []Layout { return []Layout{Dense, Awkward, Interleaved} }

// String returns "dense", "awkward" or "interleaved".
func (l Layout) String() string {
	return [...]string{"dense", "awkward", "interleaved"}[min(l, Interleaved)]
}

// Placed is a case laid out in buffers.
type Placed struct {
	Case    Case
	Checked pass.Checked // of Case.Resolve
	Buffers []Buffer
}

// A Buffer is what one buffer holds before the op. Around the elements of its argument
// lies poison: words that would spoil any result, and that must be there unchanged
// afterwards. An output holds random bits, NaN among them, unless the case says what it
// holds.
type Buffer struct {
	Name   string // of the argument; the input, if it has one in common with an output
	Access pass.Access
	Type   pass.DType
	View   pass.View // without a buffer
	Words  []uint32
	shape  [3]int
	output string // the output that ends up here
	out    [3]int // its shape
}

// Place lays out a case. The seed chooses poison and random bits.
func Place(c Case, l Layout, seed uint64) (*Placed, error) {
	checked, err := c.Resolve()
	if err != nil {
		return nil, err
	}
	k, err := kindOf(c.Op.Name())
	if err != nil {
		return nil, err
	}
	p := &Placed{Case: c, Checked: checked}
	for i, a := range checked.Args {
		if in, ok := c.Same[a.Name]; ok {
			j := slices.IndexFunc(p.Buffers, func(b Buffer) bool { return b.Name == in })
			p.Buffers[j].output, p.Buffers[j].out = a.Name, [3]int{a.Batch, a.Rows, a.Cols}
			p.Buffers[j].Access = pass.Update
			if v := &p.Buffers[j]; v.View.RowStride == 0 { // explicit, for an output of fewer columns
				v.View.RowStride, v.View.BatchStride = v.shape[2], v.shape[1]*v.shape[2]
			}
			continue
		}
		b := Buffer{Name: a.Name, Access: a.Access, Type: a.View.Buffer.Type(), shape: [3]int{a.Batch, a.Rows, a.Cols}}
		if a.Access&pass.Write != 0 {
			b.output, b.out = a.Name, b.shape
		}
		b.lay(l, 2*i+1)
		b.poison(fmt.Sprintf("%s/%s/%v", c.Name, a.Name, l), seed)
		held, ok := find(c.Inputs, a.Name)
		switch {
		case ok:
			b.fill(held.Words)
		case slices.Contains(k.keeps, a.Name):
			b.fill(make([]uint32, a.Batch*a.Rows*a.Cols))
		default:
			b.fill(garbage(c.Name+a.Name, seed+1, a.Batch*a.Rows*a.Cols))
		}
		p.Buffers = append(p.Buffers, b)
	}
	return p, nil
}

// lay chooses offset, strides and length; odd is odd.
func (b *Buffer) lay(l Layout, odd int) {
	batch, rows, cols := b.shape[0], b.shape[1], b.shape[2]
	n, tail := 0, 0
	switch l {
	case Awkward:
		b.View.RowStride = cols + odd
		b.View.BatchStride = max(rows-1, 0)*b.View.RowStride + cols + odd + 2
		b.View.Offset, tail = odd+2, odd+4
	case Interleaved:
		b.View.BatchStride = cols + odd
		b.View.RowStride = max(batch, 1)*b.View.BatchStride + odd
		b.View.Offset, tail = odd, odd
	}
	if batch > 0 && rows > 0 && cols > 0 {
		dense := pass.View{RowStride: cols, BatchStride: rows * cols}
		v := b.View
		if l == Dense {
			v = dense
		}
		n = (batch-1)*v.BatchStride + (rows-1)*v.RowStride + cols
	}
	b.Words = make([]uint32, b.View.Offset+n+tail)
}

// poison fills the buffer with NaN of random payloads, or with numbers too large for
// any count.
func (b *Buffer) poison(name string, seed uint64) {
	for i, w := range RecipeWords(name, seed, len(b.Words)) {
		b.Words[i] = w | 0x7FC00000
		if b.Type == pass.U32 {
			b.Words[i] = w | 0xFFF00000
		}
	}
}

// garbage returns random words, of which every third is a NaN as a float32.
func garbage(name string, seed uint64, n int) []uint32 {
	words := RecipeWords(name, seed, n)
	for i := 0; i < n; i += 3 {
		words[i] |= 0x7FC00000
	}
	return words
}

// each calls f with the place of every element of the argument, in order.
func (b *Buffer) each(f func(at int)) { b.eachOf(b.shape, f) }

// eachOf is each for an argument of the given shape that lies here.
func (b *Buffer) eachOf(shape [3]int, f func(at int)) {
	row, item := b.View.RowStride, b.View.BatchStride
	if row == 0 && item == 0 {
		row, item = b.shape[2], b.shape[1]*b.shape[2]
	}
	for i := range shape[0] {
		for r := range shape[1] {
			for j := range shape[2] {
				f(b.View.Offset + i*item + r*row + j)
			}
		}
	}
}

func (b *Buffer) fill(words []uint32) {
	i := 0
	b.each(func(at int) { b.Words[at] = words[i]; i++ })
}

// Op returns the op on real buffers, params and caches, by the names of Buffers and of
// the case's Params and Caches.
func (p *Placed) Op(buffers map[string]pass.Buffer, params map[string]pass.Param, caches map[string]pass.Cache) (pass.Op, error) {
	views := map[string]pass.View{}
	for _, b := range p.Buffers {
		v := b.View
		v.Buffer = buffers[b.Name]
		views[b.Name] = v
	}
	for out, in := range p.Case.Same {
		views[out] = views[in]
	}
	return p.Case.Bind(views, params, caches)
}

// Check compares what a buffer holds after the op: its output with what is wanted, and
// everything else, bit for bit, with what it held before.
func (p *Placed) Check(name string, words []uint32, wanted []Tensor) error {
	for _, b := range p.Buffers {
		if b.Name == name {
			return b.check(words, wanted, p.Case.Limits())
		}
	}
	return invalid("%s: no buffer %q", p.Case.Name, name)
}

func (b *Buffer) check(words []uint32, wanted []Tensor, tol Tolerance) error {
	if len(words) != len(b.Words) {
		return invalid("%s: want %d elements, given %d", b.Name, len(b.Words), len(words))
	}
	rest := slices.Clone(b.Words)
	var got []uint32
	if b.output != "" {
		b.eachOf(b.out, func(at int) {
			got = append(got, words[at])
			rest[at] = words[at]
		})
	}
	for i, w := range rest {
		if words[i] != w {
			what := "an element outside of the view was written"
			if b.output == "" {
				what = "an argument that is only read was written"
			}
			return fmt.Errorf("%s: %s: element %d of the buffer: %#08x (%v) became %#08x (%v)",
				b.Name, what, i, w, math.Float32frombits(w), words[i], math.Float32frombits(words[i]))
		}
	}
	if b.output == "" {
		return nil
	}
	want, ok := find(wanted, b.output)
	if !ok {
		return invalid("%s: no wanted values", b.output)
	}
	return Compare(Tensor{Name: b.output, Type: b.Type, Words: got}, want, tol).Err(tol)
}
