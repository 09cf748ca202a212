package cpu_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

func TestRope(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const batch, positions = 2, 50
	for _, c := range []struct{ rows, heads, head, rot int }{{0, 1, 2, 2}, {1, 1, 2, 2}, {3, 2, 7, 4}, {40, 3, 8, 8}, {2, 0, 4, 4}, {5, 70, 36, 32}} {
		weights := pass.RopeWeights{Positions: positions, Rot: c.rot, Base: 1000}
		table := r.load(weights)
		for _, style := range []pass.RopeStyle{pass.RopeHalves, pass.RopeInterleaved} {
			for _, p := range []struct {
				index pass.Index
				of    [batch]int
			}{
				{pass.Index{}, [batch]int{}},
				{pass.Const(9), [batch]int{9, 9}},
				{pass.IndexIn(r.numbers(8)), [batch]int{8, 8}},
				{pass.IndexEach(r.numbers(0, 7)).Plus(3), [batch]int{3, 10}},
			} {
				x := random(r.rng, batch*c.rows*c.heads*c.head)
				want := make([]float64, len(x))
				for i, v := range x {
					want[i] = float64(v)
				}
				for i := 0; i < batch*c.rows*c.heads; i++ {
					row := i / c.heads
					angles := make([]float32, c.rot)
					weights.Row(angles, p.of[row/c.rows]+row%c.rows)
					for j := range c.rot / 2 {
						first, second := i*c.head+j, i*c.head+j+c.rot/2
						if style == pass.RopeInterleaved {
							first, second = i*c.head+2*j, i*c.head+2*j+1
						}
						a, b, cos, sin := want[first], want[second], float64(angles[j]), float64(angles[c.rot/2+j])
						want[first], want[second] = a*cos-b*sin, b*cos+a*sin
					}
				}
				in := r.floats(batch, c.rows, c.heads*c.head, x)
				r.do(pass.Rope{X: in.View, Table: table, Batch: batch, Rows: c.rows, Heads: c.heads, HeadDim: c.head, Pos: p.index, Style: style})
				r.close(want, in.values(), c, style)
			}
		}
	}
}

func TestRopeBeyondItsTable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	table := r.load(pass.RopeWeights{Positions: 4, Rot: 2, Base: 10})
	x := r.floats(2, 3, 2, random(r.rng, 12))
	op := pass.Rope{X: x.View, Table: table, Batch: 2, Rows: 3, Heads: 1, HeadDim: 2}
	op.Pos = pass.IndexEach(r.numbers(1, 2))
	r.fails(op, "Pos", "item 1", "0 to 1", "given 2")
	op.Pos = pass.IndexIn(r.numbers(0)).Plus(2)
	r.fails(op, "Pos", "item 0", "0 to 1", "given 2")
	op.Pos = pass.IndexIn(r.numbers(math.MaxUint32)).Plus(1)
	r.fails(op, "given 4294967296")

	// No position is right for more rows than there are positions.
	five := r.floats(1, 5, 2, random(r.rng, 10))
	r.fails(pass.Rope{X: five.View, Table: table, Rows: 5, Heads: 1, HeadDim: 2, Pos: pass.IndexIn(r.numbers(0))}, "Pos", "given 0")
	require.Equal(t, five.words[3:5], five.result()[:2], "nothing is turned")
}
