package cpu_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// logSoftmax is the definition, with the largest value taken out.
func logSoftmax(row []float64) []float64 {
	top, total := math.Inf(-1), 0.0
	for _, v := range row {
		top = max(top, v)
	}
	for _, v := range row {
		total += math.Exp(v - top)
	}
	for i, v := range row {
		row[i] = v - top - math.Log(total)
	}
	return row
}

func softmax(row []float64) []float64 {
	for i, v := range logSoftmax(row) {
		row[i] = math.Exp(v)
	}
	return row
}

func TestSoftmax(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, s := range shapes {
		for _, size := range []float32{1, 30, 1e4} {
			x := random(r.rng, s.len())
			for i := range x {
				x[i] *= size
			}
			in, y, log := r.floats(s.batch, s.rows, s.cols, x), r.output(s.batch, s.rows, s.cols), r.output(s.batch, s.rows, s.cols)
			r.do(
				pass.Softmax{X: in.View, Y: y.View, Batch: s.batch, Rows: s.rows, Cols: s.cols},
				pass.LogSoftmax{X: in.View, Y: log.View, Batch: s.batch, Rows: s.rows, Cols: s.cols},
			)
			r.close(rowwise(x, s.cols, softmax), y.values(), s, size)
			r.close(rowwise(x, s.cols, logSoftmax), log.values(), s, size)
		}
	}
}

func TestSoftmaxSpecialValues(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	x := r.floats(1, 8, 3, []float32{
		-inf, -inf, -inf,
		-inf, 1, 1,
		1, nan, 2,
		-inf, nan, -inf,
		nan, nan, nan,
		inf, 1, -inf,
		3e38, 3e38, -3e38,
		-3e38, -3e38, -3e38,
	})
	y := r.output(1, 8, 3)
	none, low, half, ln2, ln3 := math.NaN(), math.Inf(-1), 0.5, math.Log(2), math.Log(3)
	r.do(pass.Softmax{X: x.View, Y: y.View, Rows: 8, Cols: 3})
	want := []float64{
		0, 0, 0,
		0, half, half,
		none, none, none,
		none, none, none,
		none, none, none,
		none, none, none,
		half, half, 0,
		1. / 3, 1. / 3, 1. / 3,
	}
	r.close(want, y.values())
	r.do(pass.LogSoftmax{X: x.View, Y: y.View, Rows: 8, Cols: 3})
	got := y.values()
	require.True(t, math.IsInf(float64(got[20]), -1), "−6e38 is beyond float32")
	got[20] = -inf
	r.close([]float64{
		low, low, low,
		low, -ln2, -ln2,
		none, none, none,
		none, none, none,
		none, none, none,
		none, none, none,
		-ln2, -ln2, low,
		-ln3, -ln3, -ln3,
	}, got)
}

func TestArgmax(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, s := range shapes {
		x := random(r.rng, s.len())
		var want []uint32
		for i := 0; i < len(x); i += s.cols {
			best := 0
			for j := range s.cols {
				if x[i+j] > x[i+best] {
					best = j
				}
			}
			want = append(want, uint32(best))
		}
		ids := r.words(s.batch, s.rows, 1, make([]uint32, s.batch*s.rows)...)
		r.do(pass.Argmax{X: r.floats(s.batch, s.rows, s.cols, x).View, IDs: ids.View, Batch: s.batch, Rows: s.rows, Cols: s.cols})
		require.Equal(t, want, ids.result(), "%v", s)
	}
}

func TestArgmaxOfTiesAndNaN(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	x := r.floats(1, 5, 3, []float32{1, 2, 2, nan, -inf, -1, nan, nan, nan, -inf, -inf, -inf, nan, inf, inf})
	ids := r.words(1, 5, 1, 9, 9, 9, 9, 9)
	r.do(pass.Argmax{X: x.View, IDs: ids.View, Rows: 5, Cols: 3})
	require.Equal(t, []uint32{1, 2, 0, 0, 1}, ids.result())
}

func TestArgmaxToARow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	x := r.floats(2, 1, 2, []float32{0, 1, 1, 0})
	for _, c := range []struct {
		to   pass.Index
		want []uint32
	}{
		{pass.Const(2), []uint32{9, 9, 1, 9, 9, 0}},
		{pass.IndexEach(r.numbers(1, 0)), []uint32{9, 1, 9, 0, 9, 9}},
		{pass.IndexIn(r.numbers(1)).Plus(1), []uint32{9, 9, 1, 9, 9, 0}},
	} {
		ids := r.words(2, 3, 1, 9, 9, 9, 9, 9, 9)
		op := pass.Argmax{X: x.View, IDs: ids.View, Batch: 2, Rows: 1, Cols: 2, ToRow: c.to, IDRows: 3}
		r.do(op)
		require.Equal(t, c.want, ids.result())
		op.ToRow = pass.IndexEach(r.numbers(0, 2)).Plus(1)
		r.fails(op, "ToRow", "item 1", "0 to 2", "given 3")
	}
}
