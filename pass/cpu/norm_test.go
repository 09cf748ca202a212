package cpu_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// meanVariance returns the mean and the biased variance.
func meanVariance(x []float64) (mean, variance float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	return mean, variance
}

// normWeights makes weights for n channels, and what they do to a channel.
func (r *rig) normWeights(n int, bias bool) (pass.Param, func(x float64, channel int) float64) {
	w := pass.NormWeights{Gain: random(r.rng, n)}
	if bias {
		w.Bias = random(r.rng, n)
	}
	return r.load(w), func(x float64, channel int) float64 {
		x *= float64(w.Gain[channel])
		if bias {
			x += float64(w.Bias[channel])
		}
		return x
	}
}

func TestLayerNorm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, s := range shapes {
		w, affine := r.normWeights(s.cols, i%2 == 0)
		for _, offset := range []float32{0, 1e4} {
			x := random(r.rng, s.len())
			for i := range x {
				x[i] += offset
			}
			want := rowwise(x, s.cols, func(row []float64) []float64 {
				mean, variance := meanVariance(row)
				for i, v := range row {
					row[i] = affine((v-mean)/math.Sqrt(variance+float64(float32(1e-3))), i)
				}
				return row
			})
			in, out := r.floats(s.batch, s.rows, s.cols, x), r.output(s.batch, s.rows, s.cols)
			op := pass.LayerNorm{X: in.View, W: w, Y: out.View, Batch: s.batch, Rows: s.rows, Cols: s.cols, Eps: 1e-3}
			r.do(op)
			r.close(want, out.values(), s, offset)
			op.Y = in.View
			r.do(op)
			require.Equal(t, out.result(), in.result(), "%v in place", s)
		}
	}
}

// The second output has the bits of Rope over the first.
func TestLayerNormRotated(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const batch, rows, heads, head = 2, 3, 3, 10
	w, _ := r.normWeights(heads*head, true)
	table := r.load(pass.RopeWeights{Positions: 9, Rot: 6, Base: 100})
	for _, pos := range []pass.Index{{}, pass.Const(6), pass.IndexEach(r.numbers(6, 1)), pass.IndexIn(r.numbers(3)).Plus(2)} {
		x, y, turned := r.floats(batch, rows, heads*head, random(r.rng, batch*rows*heads*head)), r.output(batch, rows, heads*head), r.output(batch, rows, heads*head)
		r.do(
			pass.LayerNorm{X: x.View, W: w, Y: y.View, Batch: batch, Rows: rows, Cols: heads * head, Rotated: turned.View, Table: table, Pos: pos, Heads: heads},
			pass.LayerNorm{X: x.View, W: w, Y: x.View, Batch: batch, Rows: rows, Cols: heads * head},
			pass.Rope{X: x.View, Table: table, Batch: batch, Rows: rows, Heads: heads, HeadDim: head, Pos: pos},
		)
		require.Equal(t, x.result(), turned.result())
		require.NotEqual(t, y.result(), turned.result())
	}
	x, y, turned := r.output(batch, rows, 10), r.output(batch, rows, 10), r.output(batch, rows, 10)
	ten, _ := r.normWeights(10, false)
	r.fails(pass.LayerNorm{X: x.View, W: ten, Y: y.View, Batch: batch, Rows: rows, Cols: 10, Rotated: turned.View, Table: table, Pos: pass.IndexEach(r.numbers(6, 7)), Heads: 1},
		"Pos", "item 1", "0 to 6", "given 7")
}

// A row's NaN stays in the row; values whose squares are beyond float32 do not overflow.
func TestNormsOfExtremeRows(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	x := r.floats(1, 3, 4, []float32{1, nan, 2, 3, 3e38, -3e38, 3e38, -3e38, 1e-30, 0, -1e-30, 0})
	y := r.output(1, 3, 4)
	w := r.load(pass.NormWeights{Gain: []float32{1, 1, 1, 1}})
	none := math.NaN()
	r.do(pass.LayerNorm{X: x.View, W: w, Y: y.View, Rows: 3, Cols: 4})
	small := 1e-30 / math.Sqrt(1e-5)
	r.close([]float64{none, none, none, none, 1, -1, 1, -1, small, 0, -small, 0}, y.values())
	r.do(pass.L2Norm{X: x.View, Y: y.View, Rows: 3, Cols: 4})
	r.close([]float64{none, none, none, none, 0.5, -0.5, 0.5, -0.5, 1e-18, 0, -1e-18, 0}, y.values())
	r.do(pass.L2Norm{X: x.View, Y: y.View, Rows: 3, Cols: 4, Eps: 1e-35})
	require.InDelta(t, math.Sqrt(0.5), y.values()[8], 1e-6)
}

func TestGroupNorm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, s := range shapes {
		w, affine := r.normWeights(s.cols, true)
		x := random(r.rng, s.len())
		for i := range x {
			x[i] += 1e4
		}
		for b := range s.batch { // beyond the length nothing is read
			for i := max(s.rows-b, 0) * s.cols; i < s.rows*s.cols; i++ {
				x[b*s.rows*s.cols+i] = nan
			}
		}
		want := make([]float64, s.len())
		lengths := make([]int, s.batch)
		words := make([]uint32, s.batch)
		for b := range s.batch {
			lengths[b] = max(s.rows-b, 0)
			words[b] = uint32(lengths[b])
			item := want[b*s.rows*s.cols:][:lengths[b]*s.cols]
			for i := range item {
				item[i] = float64(x[b*s.rows*s.cols+i])
			}
			mean, variance := meanVariance(item)
			for i, v := range item {
				item[i] = affine((v-mean)/math.Sqrt(variance+float64(float32(1e-5))), i%s.cols)
			}
		}
		in := r.floats(s.batch, s.rows, s.cols, x)
		op := pass.GroupNorm{X: in.View, W: w, Batch: s.batch, Rows: s.rows, Cols: s.cols}
		for _, l := range []pass.Items{pass.Fixed(lengths...), pass.ItemsIn(r.numbers(words...))} {
			out := r.output(s.batch, s.rows, s.cols)
			op.Y, op.Lengths = out.View, l
			r.do(op)
			r.close(want, out.values(), s)
		}
		op.Y = in.View
		r.do(op)
		r.close(want, in.values(), s, "in place")
	}
	x := r.floats(2, 3, 1, make([]float32, 6))
	one, _ := r.normWeights(1, false)
	r.fails(pass.GroupNorm{X: x.View, W: one, Y: x.View, Batch: 2, Rows: 3, Cols: 1, Lengths: pass.ItemsIn(r.numbers(3, 4))}, "Lengths", "item 1", "0 to 3", "given 4")
	r.do(pass.GroupNorm{X: x.View, W: one, Y: x.View, Batch: 2, Rows: 3, Cols: 1, Lengths: pass.Fixed(0, 3)})
}

func TestPoolNorm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, s := range shapes {
		w, affine := r.normWeights(s.cols, s.cols%2 == 0)
		x := random(r.rng, s.len())
		for i := range x {
			x[i] += 3
		}
		for _, pool := range []int{1, 2, 3} {
			for _, abs := range []bool{false, true} {
				op := pass.PoolNorm{W: w, Batch: s.batch, Rows: s.rows, Cols: s.cols, Abs: abs, Pool: pool, Epilogue: pass.Leaky(0.5)}
				lengths := make([]int, s.batch)
				words := make([]uint32, s.batch)
				for b := range lengths {
					lengths[b] = max(s.rows-b*pool, 0)
					words[b] = uint32(lengths[b])
				}
				in := append([]float32(nil), x...)
				if pool > 1 && s.rows >= pool {
					in[(pool-1)*s.cols] = nan // does not count
				}
				want := make([]float64, 0, s.len())
				rows := s.rows / pool
				for b := range s.batch {
					item := make([]float64, rows*s.cols)
					n := lengths[b] / pool
					for c := range s.cols {
						pooled := make([]float64, n)
						for i := range pooled {
							pooled[i] = math.Inf(-1)
							for j := range pool {
								v := float64(in[(b*s.rows+i*pool+j)*s.cols+c])
								if abs {
									v = math.Abs(v)
								}
								if v > pooled[i] {
									pooled[i] = v
								}
							}
						}
						mean, variance := meanVariance(pooled)
						for i, v := range pooled {
							v = affine((v-mean)/math.Sqrt(variance+float64(float32(1e-5))), c)
							if v < 0 {
								v *= 0.5
							}
							item[i*s.cols+c] = v
						}
					}
					want = append(want, item...)
				}
				op.X = r.floats(s.batch, s.rows, s.cols, in).View
				for _, l := range []pass.Items{pass.Fixed(lengths...), pass.ItemsIn(r.numbers(words...))} {
					out := r.output(s.batch, rows, s.cols)
					op.Y, op.Lengths = out.View, l
					r.do(op)
					r.close(want, out.values(), s, pool, abs)
				}
			}
		}
	}
	x, y := r.floats(2, 3, 1, make([]float32, 6)), r.output(2, 3, 1)
	one, _ := r.normWeights(1, false)
	r.fails(pass.PoolNorm{X: x.View, W: one, Y: y.View, Batch: 2, Rows: 3, Cols: 1, Lengths: pass.ItemsIn(r.numbers(9, 3))}, "Lengths", "item 0", "0 to 3", "given 9")
}

func TestL2Norm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, s := range shapes {
		x := random(r.rng, s.len())
		want := rowwise(x, s.cols, func(row []float64) []float64 {
			length := 0.0
			for _, v := range row {
				length = math.Hypot(length, v)
			}
			for i := range row {
				row[i] /= length
			}
			return row
		})
		out := r.output(s.batch, s.rows, s.cols)
		r.do(pass.L2Norm{X: r.floats(s.batch, s.rows, s.cols, x).View, Y: out.View, Batch: s.batch, Rows: s.rows, Cols: s.cols})
		r.close(want, out.values(), s)
	}
}
