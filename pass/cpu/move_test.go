package cpu_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// orders returns all permutations of 0, 1, 2, 3.
func orders() [][4]int {
	var all [][4]int
	for n := range 256 {
		o := [4]int{n & 3, n >> 2 & 3, n >> 4 & 3, n >> 6}
		seen := 0
		for _, axis := range o {
			seen |= 1 << axis
		}
		if seen == 15 {
			all = append(all, o)
		}
	}
	return all
}

func TestPermute(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.Len(t, orders(), 24)
	for _, d := range [][4]int{{1, 1, 1, 1}, {2, 3, 4, 5}, {1, 1, 300, 70}, {2, 70, 3, 33}, {2, 0, 3, 4}} {
		x := random(r.rng, d[0]*d[1]*d[2]*d[3])
		if len(x) > 0 {
			x[len(x)-1] = nan // passes like any other
		}
		in := r.floats(d[0], d[1]*d[2], d[3], x)
		for _, order := range orders() {
			op := pass.Permute{X: in.View, Dims: d, Order: order}
			e := op.Out()
			want := make([]uint32, len(x))
			for i, v := range x {
				at := [4]int{i / d[3] / d[2] / d[1], i / d[3] / d[2] % d[1], i / d[3] % d[2], i % d[3]}
				to := 0
				for j, axis := range order {
					to = to*e[j] + at[axis]
				}
				want[to] = math.Float32bits(v)
			}
			out := r.output(e[0], e[1]*e[2], e[3])
			op.Y = out.View
			r.do(op)
			require.True(t, slices.Equal(want, out.result()), "%v by %v", d, order)
		}
	}
}

func TestCopyByIndicesWithAnAddend(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	from := r.floats(2, 3, 2, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	to := r.floats(2, 2, 2, make([]float32, 8))
	op := pass.Copy{From: from.View, To: to.View, Batch: 2, Rows: 1, Cols: 2, FromRows: 3, ToRows: 2,
		FromRow: pass.IndexEach(r.numbers(0, 1)).Plus(1), ToRow: pass.IndexIn(r.numbers(0)).Plus(1)}
	r.do(op)
	require.Equal(t, []float32{0, 0, 3, 4, 0, 0, 11, 12}, to.values())
	op.FromRow = pass.IndexEach(r.numbers(0, 2)).Plus(1)
	r.fails(op, "FromRow", "item 1", "0 to 2", "given 3")
	op.Rows = 0
	r.do(op)
}

func TestAdvance(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.words(4, 3, 1, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7)
	index, done := r.words(1, 4, 1, 0, 1, 1, 7), r.words(1, 4, 1, 0, 0, 0, 1)
	op := pass.Advance{Index: index.View, By: 1, IDs: ids.View, IDRows: 3, Plus: 1, Stop: []uint32{9, 7}, Done: done.View, Batch: 4}
	r.do(op)
	require.Equal(t, []uint32{1, 1, 1, 7}, index.result(), "7 stops items 1 and 2; item 3 had stopped, wherever it stands")
	require.Equal(t, []uint32{0, 1, 1, 1}, done.result())
	r.do(op)
	require.Equal(t, []uint32{1, 1, 1, 7}, index.result())
	require.Equal(t, []uint32{1, 1, 1, 1}, done.result())

	index, done = r.words(1, 2, 1, 1, 2), r.words(1, 2, 1, 0, 0)
	op = pass.Advance{Index: index.View, By: 1, IDs: ids.View, IDRows: 3, Plus: 1, Stop: []uint32{9}, Done: done.View, Batch: 2}
	r.fails(op, "Index", "item 1", "3")

	index = r.words(1, 2, 1, 4, math.MaxUint32-2)
	op = pass.Advance{Index: index.View, By: 2, Batch: 2}
	r.do(op)
	require.Equal(t, []uint32{6, math.MaxUint32}, index.result())
	r.fails(op, "Index", "item 1", "4294967297")
}

// A loop of argmax and lookup runs on the device until its stop id.
func TestAdvanceEndsALoop(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	// Row i of the table points to i+1; the last, to itself.
	const n = 5
	next := make([]float32, n*n)
	for i := range n {
		next[i*n+min(i+1, n-1)] = 1
	}
	table := r.load(pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("next", next, n, n)}})
	const batch, room = 2, 10
	ids := r.words(batch, room, 1, append(append([]uint32{0}, make([]uint32, room-1)...), append([]uint32{2}, make([]uint32, room-1)...)...)...)
	index, done := r.words(1, 1, batch, 0, 0), r.words(1, 1, batch, 0, 0)
	row := r.output(batch, 1, n)
	var ops []pass.Op
	for range 7 {
		ops = append(ops,
			pass.Embed{IDs: ids.View, Table: table, Out: row.View, Batch: batch, Rows: 1, IDRow: pass.IndexEach(index.View), IDRows: room},
			pass.Argmax{X: row.View, IDs: ids.View, Batch: batch, Rows: 1, Cols: n, ToRow: pass.IndexEach(index.View).Plus(1), IDRows: room},
			pass.Advance{Index: index.Rows(1), By: 1, IDs: ids.View, IDRows: room, Plus: 1, Stop: []uint32{n - 1}, Done: done.Rows(1), Batch: batch})
	}
	r.do(ops...)
	require.Equal(t, []uint32{0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0}, ids.result())
	require.Equal(t, []uint32{3, 1}, index.result())
	require.Equal(t, []uint32{1, 1}, done.result())
}
