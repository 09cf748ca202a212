package gpu

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// attention compiles an Attention.
func (c *compiler) attention(op pass.Attention, cost pass.Cost) error {
	if op.Batch == 0 || op.Queries == 0 {
		return nil
	}
	width := op.Heads * op.HeadDim
	if op.Keys == 0 {
		return c.zeros(op.Name(), op.O, field{op.Batch, op.Queries, width}, cost)
	}
	a := attention{
		c: c, label: op.Name(), source: "rows", batch: op.Batch, queries: op.Queries, heads: op.Heads, dim: op.HeadDim,
		scale: op.Scale, mask: op.Mask, keys: op.Keys, most: op.Keys, cost: cost,
		views:   attentionViews{q: op.Q, o: op.O, k: op.K, v: op.V, q2: op.Q2, positions: op.Positions},
		lengths: c.numbers(op.Lengths, op.Batch, func(int) int { return op.Queries }),
	}
	keys := c.numbers(op.KeyLengths, op.Batch, func(int) int { return op.Keys })
	bindings := 4
	if a.relative = !op.Q2.IsZero(); a.relative {
		bindings += 2
	}
	for _, n := range []numbers{a.lengths, keys} {
		if n.kind != "none" {
			bindings++
		}
	}
	if device := a.lengths.kind == "device" || keys.kind == "device"; device && bindings+1 > int(c.limits.MaxStorageBuffers) {
		var err error
		if a.lengths, err = c.settle(op.Name(), a.lengths, op.Batch, op.Queries); err != nil {
			return err
		}
		if keys, err = c.settle(op.Name(), keys, op.Batch, op.Keys); err != nil {
			return err
		}
	}
	a.keyNumbers = indexed{numbers: keys, each: 1, valid: uint32(op.Keys) + 1}
	if op.Queries <= fewQueries && !a.relative {
		pieces, err := a.stretches()
		if err != nil {
			return err
		}
		return a.split(pieces)
	}
	return a.tiled([]slabPiece{{to: op.Batch * op.Heads, span: op.Keys}})
}

// zeros fills a view with zeros.
func (c *compiler) zeros(label string, v pass.View, f field, cost pass.Cost) error {
	f = f.flat(&v)
	return c.fillLines(label, c.lines(v, f.batch, f.rows, f.cols, true), f, 0, cost)
}

// settle returns numbers that lie on the device as numbers that need no check, at most
// as large as given.
func (c *compiler) settle(label string, n numbers, batch, most int) (numbers, error) {
	if n.kind != "device" {
		return n, nil
	}
	o := c.scratch(batch)
	o.write = true
	k := numbered{kernel{shader: "items", entry: "items", values: shaders.Values{"Lengths": n.kind}}, []operand{o}}
	k.bind("LengthsBinding", true, n.o)
	k.status(c, n)
	groups := min(roundUp(batch, 64)/64, int(c.limits.MaxWorkgroups))
	err := c.emit(label, k.kernel, k.operands, []uint32{uint32(batch), uint32(most), n.shift}, [3]int{groups, 1, 1}, pass.Cost{Bytes: 8 * float64(batch)})
	o.write = false
	return numbers{kind: "fixed", o: o}, err
}

// An attention is an Attention or an Attend on its way to dispatches.
type attention struct {
	c              *compiler
	label          string
	source         string // of keys and values: "rows", or the type of a cache
	batch, queries int
	heads, dim     int
	scale          float32
	mask           pass.Mask
	keys           int // if keyNumbers says nothing else
	most           int // keys at most
	relative       bool
	views          attentionViews
	lengths        numbers // of queries
	keyNumbers     indexed
	cost           pass.Cost

	// What is bound of the views.
	q, o, k, v, q2 lines
	positions      lines
}

// A slabPiece is a run of slabs (an item's heads, item after item) whose keys and values
// lie in one binding each.
type slabPiece struct {
	from, to     int
	first        int // position of the first key
	span         int // keys from there on
	keys, values operand
}

// unlimited is how far a mask reaches that does not end.
const unlimited = 1 << 30

// band returns how far before and after its position a query sees.
func (a *attention) band() (left, right int, banded bool) {
	switch a.mask.Kind() {
	case pass.MaskCausal:
		return unlimited, 0, true
	case pass.MaskBand:
		left, right := a.mask.Band()
		return min(left, unlimited), min(right, unlimited), true
	}
	return unlimited, unlimited, false
}

// factor returns the factor of scores that are to be exponents of two.
func (a *attention) factor() uint32 {
	return math.Float32bits(float32(float64(a.scale) * math.Log2E))
}

// inFours reports whether all rows come in aligned groups of four.
func (a *attention) inFours() bool {
	all := a.q.inFours() && a.o.inFours()
	if a.source == "rows" {
		all = all && a.k.inFours() && a.v.inFours()
	}
	if a.relative {
		all = all && a.q2.inFours() && a.positions.inFours()
	}
	return all
}

// kernel returns a kernel with the operands that all of them have.
func (a *attention) kernel(shader, entry string, p slabPiece) numbered {
	keys, values := p.keys, p.values
	if a.source == "rows" {
		keys, values = a.k.operand, a.v.operand
	}
	_, _, banded := a.band()
	return numbered{kernel{shader: shader, entry: entry, values: shaders.Values{
		"Source": a.source, "Quads": a.inFours(), "Banded": banded, "Lengths": a.lengths.kind, "KeyNumbers": a.keyNumbers.kind,
	}}, []operand{a.q.operand, keys, values}}
}

// numbers binds what says how many queries and keys there are.
func (a *attention) numbers(k *numbered) {
	k.bind("LengthsBinding", a.lengths.kind != "none", a.lengths.o)
	k.bind("KeyNumbersBinding", a.keyNumbers.kind != "none", a.keyNumbers.o)
	k.status(a.c, a.lengths, a.keyNumbers.numbers)
}

// words returns what all kernels begin with: sizes, queries and output, keys and values.
func (a *attention) words() []uint32 {
	words := []uint32{uint32(a.queries), uint32(a.keys), uint32(a.heads), uint32(a.dim), a.factor()}
	for _, l := range []lines{a.q, a.o, a.k, a.v} {
		words = append(words, l.words()...)
	}
	return words
}

// where returns the words that say where keys begin and how many there are.
func (a *attention) where(p slabPiece) []uint32 {
	return []uint32{uint32(p.from), uint32(p.first), uint32(p.span), a.lengths.shift,
		a.keyNumbers.shift, a.keyNumbers.each, a.keyNumbers.valid, uint32(a.keyNumbers.added)}
}
