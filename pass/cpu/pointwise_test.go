package cpu_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

func TestAdd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, s := range shapes {
		for i := range 4 {
			op := pass.Add{Batch: s.batch, Rows: s.rows, Cols: s.cols, OverBatch: i&1 != 0, OverRows: i&2 != 0}
			batch, rows := s.batch, s.rows
			if op.OverBatch {
				batch = 1
			}
			if op.OverRows {
				rows = min(rows, 1)
			}
			a, b := random(r.rng, s.len()), random(r.rng, batch*rows*s.cols)
			want := []float32{}
			for i, v := range a {
				item, row := i/s.cols/s.rows%batch, i/s.cols%s.rows%rows
				want = append(want, v+b[(item*rows+row)*s.cols+i%s.cols])
			}
			in, out := r.floats(s.batch, s.rows, s.cols, a), r.output(s.batch, s.rows, s.cols)
			op.A, op.B, op.Y = in.View, r.floats(batch, rows, s.cols, b).View, out.View
			r.do(op)
			require.Equal(t, want, out.values(), "%v %d", s, i)
			op.Y = in.View
			r.do(op)
			require.Equal(t, want, in.values(), "%v %d in place", s, i)
		}
	}
}

func TestScale(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, s := range shapes {
		x := random(r.rng, s.len())
		want := []float32{}
		for _, v := range x {
			want = append(want, -0.3*v)
		}
		in, out := r.floats(s.batch, s.rows, s.cols, x), r.output(s.batch, s.rows, s.cols)
		op := pass.Scale{X: in.View, Y: out.View, Batch: s.batch, Rows: s.rows, Cols: s.cols, Factor: -0.3}
		r.do(op)
		require.Equal(t, want, out.values(), "%v", s)
		op.Y = in.View
		r.do(op)
		require.Equal(t, want, in.values(), "%v in place", s)
	}
}

func TestGates(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for _, s := range shapes {
		x := random(r.rng, 2*s.len())
		for i := range x {
			x[i] *= 5
		}
		gated := func(f func(a, b float64) float64) []float64 {
			return rowwise(x, 2*s.cols, func(row []float64) []float64 {
				y := make([]float64, s.cols)
				for i := range y {
					y[i] = f(row[i], row[s.cols+i])
				}
				return y
			})
		}
		check := func(want []float64, op func(x, y pass.View) pass.Op) {
			t.Helper()
			in, out := r.floats(s.batch, s.rows, 2*s.cols, x), r.output(s.batch, s.rows, s.cols)
			r.do(op(in.View, out.View))
			r.close(want, out.values(), s)
			r.do(op(in.View, in.View))
			in.cols = s.cols // the second half stays
			require.Equal(t, out.result(), in.result(), "%v in place", s)
		}
		check(gated(func(a, b float64) float64 { return a * sigmoid(b) }), func(x, y pass.View) pass.Op {
			return pass.GLU{X: x, Y: y, Batch: s.batch, Rows: s.rows, Cols: s.cols}
		})
		check(gated(func(a, b float64) float64 { return a * b * sigmoid(b) }), func(x, y pass.View) pass.Op {
			return pass.SwiGLU{X: x, Y: y, Batch: s.batch, Rows: s.rows, Cols: s.cols}
		})
		check(gated(func(a, b float64) float64 { return a * sigmoid(a) * b }), func(x, y pass.View) pass.Op {
			return pass.SwiGLU{X: x, Y: y, Batch: s.batch, Rows: s.rows, Cols: s.cols, GateFirst: true}
		})
	}
}

// A small sigmoid and a large factor have a normal product.
func TestGatesOfExtremeValues(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	gates := []float32{-100, -1e9, -inf, 1e9, nan, 0}
	x := r.floats(1, 1, 12, append([]float32{3e38, 3e38, 3e38, 3e38, 1, nan}, gates...))
	y := r.output(1, 1, 6)
	none := math.NaN()
	r.do(pass.GLU{X: x.View, Y: y.View, Rows: 1, Cols: 6})
	r.close([]float64{3e38 * math.Exp(-100), 0, 0, 3e38, none, none}, y.values())
	require.InEpsilon(t, 3e38*math.Exp(-100), y.values()[0], 1e-6)
	r.do(pass.SwiGLU{X: x.View, Y: y.View, Rows: 1, Cols: 6})
	require.InEpsilon(t, -100*3e38*math.Exp(-100), y.values()[0], 1e-6)
	require.Zero(t, y.values()[1])
	require.Zero(t, y.values()[2])
	require.True(t, math.IsNaN(float64(y.values()[4])))
	require.True(t, math.IsNaN(float64(y.values()[5])))
}
