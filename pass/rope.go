package pass

import (
	"fmt"
	"math"
)

// RopeWeights are the table of a rotary embedding: for each position p and pair i the
// cosine and sine of p·Base^(−2i/Rot), computed in float64 and rounded once.
type RopeWeights struct {
	Name      string  // for error messages and dumps
	Positions int     // positions 0 … Positions−1
	Rot       int     // turned dimensions of a head; even
	Base      float64 // 10000 in most networks
}

// RopeShape is the geometry of RopeWeights.
type RopeShape struct{ Positions, Rot int }

// String gives the shape for error messages.
func (s RopeShape) String() string { return fmt.Sprintf("rope %d positions × %d", s.Positions, s.Rot) }

func (RopeShape) paramShape() {}

// Shape implements Weights.
func (w RopeWeights) Shape() (ParamShape, error) {
	if w.Positions < 1 || w.Rot < 2 || w.Rot%2 != 0 || int64(w.Positions)*int64(w.Rot) > 1<<31 {
		return nil, fmt.Errorf("pass: rope weights %q: want at least one position and an even number of turned dimensions, given %d and %d: %w", w.Name, w.Positions, w.Rot, ErrInvalid)
	}
	if !(w.Base > 0) || math.IsInf(w.Base, 0) {
		return nil, fmt.Errorf("pass: rope weights %q: base: want a positive number, given %v: %w", w.Name, w.Base, ErrInvalid)
	}
	return RopeShape{w.Positions, w.Rot}, nil
}

func (RopeWeights) weights() {}

// Row fills dst, of Rot values, with the cosines and then the sines of a position.
func (w RopeWeights) Row(dst []float32, position int) {
	half := w.Rot / 2
	for i := range half {
		sin, cos := math.Sincos(float64(position) * math.Pow(w.Base, -2*float64(i)/float64(w.Rot)))
		dst[i], dst[half+i] = float32(cos), float32(sin)
	}
}

// A RopeStyle says which elements of a head make a pair.
type RopeStyle uint8

const (
	// RopeHalves turns the pairs (i, i + Rot/2).
	RopeHalves RopeStyle = iota
	// RopeInterleaved turns the pairs (2i, 2i + 1).
	RopeInterleaved
)

// String returns "halves" or "interleaved".
func (s RopeStyle) String() string {
	if s == RopeInterleaved {
		return "interleaved"
	}
	return "halves"
}

// Rope turns the first Rot dimensions of each head, in place, by the angles of the
// row's position Pos + r: (a, b) → (a·cos − b·sin, b·cos + a·sin). A run whose index
// leads beyond the table fails.
type Rope struct {
	X       View      // [Batch][Rows][Heads·HeadDim], in place
	Table   Param     // RopeWeights
	Batch   int       // 0: one item
	Rows    int       // 0: nothing is done
	Heads   int       // heads to turn, one after the other
	HeadDim int       // at least Rot
	Pos     Index     // position of the first row
	Style   RopeStyle // which elements make a pair
}

// Name implements Op.
func (Rope) Name() string { return "rope" }

func (r Rope) describe(c *checker) Op {
	t := param[RopeShape](c, "Table", r.Table)
	r.Batch = c.batch(r.Batch)
	c.atLeast("Rows", r.Rows, 0)
	c.atLeast("Heads", r.Heads, 0)
	c.atLeast("HeadDim", r.HeadDim, max(t.Rot, 1))
	if r.Style > RopeInterleaved {
		c.failf("Style: want RopeHalves or RopeInterleaved, given %d", r.Style)
	}
	r.Pos.check(c, "Pos", r.Batch)
	r.Pos.within(c, "Pos", r.Rows, t.Positions)
	r.X = c.update("X", F32, r.X, r.Batch, r.Rows, c.mul("Heads, HeadDim", r.Heads, r.HeadDim))
	c.done(3*float64(r.Batch)*float64(r.Rows)*float64(r.Heads)*float64(t.Rot), 0)
	return r
}

// Cuts implements Op.
func (r Rope) Cuts() []Cut { return rowCuts(r.Batch, r.Rows) }

func (r Rope) part(axis Axis, from, to int) Op {
	if axis == AxisBatch {
		r.X, r.Batch, r.Pos = r.X.item(from), to-from, r.Pos.item(from)
	} else {
		r.X, r.Rows, r.Pos = r.X.row(from), to-from, r.Pos.Plus(from)
	}
	return r
}
