package pass

import "math"

// A Mask says which keys a query may see. The zero Mask is all.
type Mask struct {
	kind        MaskKind
	left, right int
}

// A MaskKind is the rule of a [Mask]. With n queries and m keys, query i stands at
// position p = i + m − n.
type MaskKind uint8

// The rules.
const (
	MaskNone   MaskKind = iota // every key
	MaskCausal                 // keys j ≤ p
	MaskBand                   // keys p − left ≤ j ≤ p + right
)

// Causal lets a query see the keys up to its own position.
var Causal = Mask{kind: MaskCausal}

// Band lets a query see the keys from left before to right after its own position,
// both included.
func Band(left, right int) Mask { return Mask{MaskBand, left, right} }

// Kind returns the rule.
func (m Mask) Kind() MaskKind { return m.kind }

// Band returns how far a band reaches.
func (m Mask) Band() (left, right int) { return m.left, m.right }

// Attention mixes values by how well queries match keys, for each item and head:
//
//	O[i] = Σⱼ softmaxⱼ(Scale·(Q[i]·K[j]) + mask)·V[j]
//
// Q, K, V and O are rows of Heads·HeadDim elements, so that one buffer of rows
// [q | k | v] serves three of them. A query that sees no key gives zeros. Memory is
// linear in the number of keys.
//
// With Q2 and Positions (Transformer-XL, as many queries as keys), row r of Positions
// holds the relative position Keys − 1 − r, and the score is
// Scale·(Q[i]·K[j] + Q2[i]·Positions[j − i + Keys − 1]).
//
// KeyLengths cuts off each item's keys, Lengths its queries: rows at or beyond are not
// read, and zero in O.
type Attention struct {
	Q, O       View    // [Batch][Queries][Heads·HeadDim]
	K, V       View    // [Batch][Keys][Heads·HeadDim]
	Q2         View    // as Q; with Positions, or neither
	Positions  View    // [2·Keys − 1][Heads·HeadDim], for all items
	Batch      int     // 0: one item
	Queries    int     // 0: nothing is done
	Keys       int     // 0: O is zero
	Heads      int     // at least 1
	HeadDim    int     // a multiple of 4, at most 256
	Scale      float32 // 0: 1/sqrt(HeadDim)
	Mask       Mask
	Lengths    Items // queries of each item; zero: Queries
	KeyLengths Items // keys of each item; zero: Keys
	Exact      bool  // no rounded operands, in a Fast recording too
}

// Name implements Op.
func (Attention) Name() string { return "attention" }

func (a Attention) describe(c *checker) Op {
	a.Batch = c.batch(a.Batch)
	c.atLeast("Queries", a.Queries, 0)
	c.atLeast("Keys", a.Keys, 0)
	width := c.heads(a.Heads, a.HeadDim)
	a.Scale = c.scale(a.Scale, a.HeadDim)
	if a.Mask.kind > MaskBand || a.Mask.left < 0 || a.Mask.right < 0 {
		c.failf("Mask: want none, causal or a band of at least 0 on each side, given %+v", a.Mask)
	}
	a.Lengths.check(c, "Lengths", a.Batch, a.Queries, false)
	a.KeyLengths.check(c, "KeyLengths", a.Batch, a.Keys, false)
	a.Q = c.read("Q", F32, a.Q, a.Batch, a.Queries, width)
	a.K = c.read("K", F32, a.K, a.Batch, a.Keys, width)
	a.V = c.read("V", F32, a.V, a.Batch, a.Keys, width)
	products := 2.0
	if a.Q2.IsZero() != a.Positions.IsZero() {
		c.failf("Q2, Positions: want both or neither")
	} else if !a.Q2.IsZero() {
		if a.Queries != a.Keys {
			c.failf("Queries: want as many as the %d keys with relative positions, given %d", a.Keys, a.Queries)
		}
		a.Q2 = c.read("Q2", F32, a.Q2, a.Batch, a.Queries, width)
		a.Positions = c.read("Positions", F32, a.Positions, 1, max(c.mul("Keys", 2, a.Keys)-1, 0), width)
		products = 3
	}
	a.O = c.write("O", F32, a.O, a.Batch, a.Queries, width)
	c.done(2*products*float64(a.Batch)*float64(a.Queries)*float64(a.Keys)*float64(width), 0)
	return a
}

// heads checks the heads of attention and returns the length of a row.
func (c *checker) heads(heads, dim int) int {
	c.atLeast("Heads", heads, 1)
	if dim < 4 || dim > 256 || dim%4 != 0 {
		c.failf("HeadDim: want a multiple of 4 from 4 to 256, given %d", dim)
	}
	return c.mul("Heads, HeadDim", heads, dim)
}

// scale returns the factor of scores; 0 stands for 1/sqrt(dim).
func (c *checker) scale(s float32, dim int) float32 {
	if s != s || math.IsInf(float64(s), 0) {
		c.failf("Scale: want a finite number, given %v", s)
	}
	if s == 0 && dim > 0 {
		return float32(1 / math.Sqrt(float64(dim)))
	}
	return s
}

// Cuts implements Op. Queries are not cut, because the position of a query depends on
// how many there are; a backend does so inside.
func (a Attention) Cuts() []Cut {
	return []Cut{{AxisBatch, a.Batch, 1}, {AxisHeads, a.Heads, 1}}
}

func (a Attention) part(axis Axis, from, to int) Op {
	if axis == AxisHeads {
		by := from * a.HeadDim
		a.Q, a.K, a.V, a.O, a.Heads = a.Q.At(by), a.K.At(by), a.V.At(by), a.O.At(by), to-from
		if !a.Q2.IsZero() {
			a.Q2, a.Positions = a.Q2.At(by), a.Positions.At(by)
		}
		return a
	}
	a.Q, a.K, a.V, a.O, a.Batch = a.Q.item(from), a.K.item(from), a.V.item(from), a.O.item(from), to-from
	if !a.Q2.IsZero() {
		a.Q2 = a.Q2.item(from)
	}
	a.Lengths, a.KeyLengths = a.Lengths.part(from, to), a.KeyLengths.part(from, to)
	return a
}
