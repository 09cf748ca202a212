package cpu_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// exact requires the tolerance of exact math: relative error of the whole, and largest
// error. Where NaN is wanted nothing else will do.
func (r *rig) exact(want []float64, got []float32, where ...any) {
	r.Helper()
	require.Len(r, got, len(want), where...)
	off, size, most, largest := 0.0, 0.0, 0.0, 1.0
	for i, w := range want {
		if math.IsNaN(w) {
			require.True(r, math.IsNaN(float64(got[i])), "%v: element %d: want NaN, got %v", where, i, got[i])
			continue
		}
		d := float64(got[i]) - w
		off, size = off+d*d, size+w*w
		most, largest = max(most, math.Abs(d)), max(largest, math.Abs(w))
	}
	require.True(r, math.Sqrt(off) <= 5e-6*math.Sqrt(size), "off by %v of %v: %v", math.Sqrt(off), math.Sqrt(size), where)
	require.True(r, most <= 2e-5*largest, "an element is off by %v: %v", most, where)
}

// An attentionCase is what an attention is asked for.
type attentionCase struct {
	batch, queries, keys, heads, dim int
	scale                            float64
	visible                          func(b, i, j int) bool // that key j is seen by query i
	q, k, v, q2, p                   []float32              // dense
}

// want evaluates the definition. Rows of queries beyond lengths are zero.
func (c attentionCase) want(lengths func(b int) int) []float64 {
	width := c.heads * c.dim
	out := make([]float64, c.batch*c.queries*width)
	for b := range c.batch {
		for i := range lengths(b) {
			for h := range c.heads {
				q := (b*c.queries+i)*width + h*c.dim
				scores := make([]float64, c.keys)
				most := math.Inf(-1)
				for j := range scores {
					if !c.visible(b, i, j) {
						continue
					}
					k := (b*c.keys+j)*width + h*c.dim
					for d := range c.dim {
						scores[j] += float64(c.q[q+d]) * float64(c.k[k+d])
						if c.q2 != nil {
							scores[j] += float64(c.q2[q+d]) * float64(c.p[(j-i+c.keys-1)*width+h*c.dim+d])
						}
					}
					scores[j] *= c.scale
					most = math.Max(most, scores[j])
				}
				sum := 0.0
				for j := range scores {
					if !c.visible(b, i, j) {
						continue
					}
					w := math.Exp(scores[j] - most)
					sum += w
					for d := range c.dim {
						out[q+d] += w * float64(c.v[(b*c.keys+j)*width+h*c.dim+d])
					}
				}
				for d := range c.dim {
					if out[q+d] != 0 {
						out[q+d] /= sum
					}
				}
			}
		}
	}
	return out
}

func (r *rig) attentionCase(batch, queries, keys, heads, dim int) attentionCase {
	return attentionCase{
		batch: batch, queries: queries, keys: keys, heads: heads, dim: dim,
		scale:   float64(float32(1 / math.Sqrt(float64(dim)))),
		visible: func(int, int, int) bool { return true },
		q:       random(r.rng, batch*queries*heads*dim),
		k:       random(r.rng, batch*keys*heads*dim),
		v:       random(r.rng, batch*keys*heads*dim),
	}
}

// op puts the case on the device.
func (r *rig) attention(c attentionCase) (pass.Attention, *area) {
	width := c.heads * c.dim
	o := r.output(c.batch, c.queries, width)
	op := pass.Attention{
		Q: r.floats(c.batch, c.queries, width, c.q).View, O: o.View,
		K: r.floats(c.batch, c.keys, width, c.k).View, V: r.floats(c.batch, c.keys, width, c.v).View,
		Batch: c.batch, Queries: c.queries, Keys: c.keys, Heads: c.heads, HeadDim: c.dim,
	}
	if c.q2 != nil {
		op.Q2 = r.floats(c.batch, c.queries, width, c.q2).View
		op.Positions = r.floats(1, 2*c.keys-1, width, c.p).View
	}
	return op, o
}

func whole(n int) func(int) int { return func(int) int { return n } }

func TestAttention(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, s := range [][5]int{
		{1, 1, 1, 1, 4}, {2, 3, 5, 2, 8}, {1, 65, 37, 3, 36}, {2, 37, 130, 1, 40}, {1, 9, 129, 2, 52}, {1, 64, 128, 1, 64},
		{1, 2, 300, 1, 256}, {1, 33, 257, 1, 252}, {2, 0, 3, 1, 4}, {1, 3, 0, 1, 4},
	} {
		c := r.attentionCase(s[0], s[1], s[2], s[3], s[4])
		op, o := r.attention(c)
		r.do(op)
		r.exact(c.want(whole(c.queries)), o.values(), s)
		op.Scale = -0.3
		c.scale = float64(op.Scale)
		r.do(op)
		r.exact(c.want(whole(c.queries)), o.values(), s, "scale")
	}
}

// The tolerance holds for as many keys as there may be, with scores that grow along
// them so that the largest changes all the time, and with one that outweighs all.
func TestAttentionOverManyKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, keys := range []int{255, 256, 1500, 2049, 4100} {
		c := r.attentionCase(1, 3, keys, 1, 64)
		for j := range keys {
			for d := range 64 {
				c.k[j*64+d] += c.q[d] * float32(j) / float32(keys)
				c.q[128+d] = 0 // all keys weigh the same
			}
		}
		op, o := r.attention(c)
		r.do(op)
		r.exact(c.want(whole(3)), o.values(), keys)
	}
}

func TestAttentionMasks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, s := range [][2]int{{1, 1}, {70, 70}, {5, 140}, {140, 5}, {200, 300}, {66, 64}} {
		queries, keys := s[0], s[1]
		for _, m := range []struct {
			mask        pass.Mask
			left, right int
		}{
			{pass.Mask{}, 1 << 20, 1 << 20}, {pass.Causal, 1 << 20, 0}, {pass.Band(0, 0), 0, 0}, {pass.Band(3, 70), 3, 70},
			{pass.Band(130, 0), 130, 0}, {pass.Band(0, math.MaxInt), 0, 1 << 20}, {pass.Band(math.MaxInt, math.MaxInt), 1 << 20, 1 << 20},
		} {
			c := r.attentionCase(2, queries, keys, 2, 12)
			lengths, keyLengths := []int{queries, queries / 2}, []int{max(keys-3, 0), keys}
			c.visible = func(b, i, j int) bool {
				p := i + keys - queries
				return j < keyLengths[b] && j >= p-m.left && j <= p+m.right
			}
			want := c.want(func(b int) int { return lengths[b] })
			// Rows beyond the lengths are not read.
			for b := range 2 {
				for i := (b*keys + keyLengths[b]) * 24; i < (b+1)*keys*24; i++ {
					c.k[i], c.v[i] = nan, nan
				}
				for i := (b*queries + lengths[b]) * 24; i < (b+1)*queries*24; i++ {
					c.q[i] = nan
				}
			}
			op, o := r.attention(c)
			op.Mask = m.mask
			op.Lengths, op.KeyLengths = pass.Fixed(lengths...), pass.Fixed(keyLengths...)
			r.do(op)
			r.exact(want, o.values(), s, m.mask)
			op.Lengths = pass.ItemsIn(r.numbers(uint32(lengths[0]), uint32(lengths[1])))
			op.KeyLengths = pass.ItemsIn(r.numbers(uint32(keyLengths[0]), uint32(keyLengths[1])))
			first := o.result()
			r.do(op)
			require.Equal(t, first, o.result())
		}
	}
	c := r.attentionCase(2, 3, 4, 1, 4)
	op, _ := r.attention(c)
	op.Lengths = pass.ItemsIn(r.numbers(3, 4))
	r.fails(op, "Lengths", "item 1", "0 to 3", "given 4")
	op.Lengths, op.KeyLengths = pass.Items{}, pass.ItemsIn(r.numbers(5, 4))
	r.fails(op, "KeyLengths", "item 0", "0 to 4", "given 5")
}

// What a query does not see does not reach it, even as NaN in a block that others see.
func TestAttentionDoesNotMixWhatIsMasked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.attentionCase(1, 20, 20, 1, 8)
	c.visible = func(_, i, j int) bool { return j <= i && j >= i-5 }
	c.k[9*8+3], c.v[11*8] = nan, nan
	want := c.want(whole(20))
	op, o := r.attention(c)
	op.Mask = pass.Band(5, 0)
	r.do(op)
	got := o.values()
	for i := range 20 {
		for d := range 8 {
			bad := i >= 9 && i <= 14 || d == 0 && i >= 11 && i <= 16
			require.Equal(t, bad, math.IsNaN(float64(got[i*8+d])), "row %d, column %d", i, d)
			if bad {
				want[i*8+d] = math.NaN()
			}
		}
	}
	r.exact(want, got)
}

// Scores of −∞ have no weight; a query that has no others gives zeros.
func TestAttentionOfInfiniteScores(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.output(1, 2, 4)
	r.do(pass.Attention{
		Q:       r.floats(1, 2, 4, []float32{1, 0.5, 1, 1, 1, 1, 1, 1}).View,
		K:       r.floats(1, 2, 4, []float32{-inf, -inf, -inf, -inf, 0, 0, 0, 0}).View,
		V:       r.floats(1, 2, 4, []float32{5, 6, 7, 8, 1, 2, 3, 4}).View,
		O:       o.View,
		Queries: 2, Keys: 2, Heads: 1, HeadDim: 4, Mask: pass.Causal,
	})
	require.Equal(t, []float32{0, 0, 0, 0, 1, 2, 3, 4}, o.values())
}

// What an op leaves in scratch does not reach the next.
func TestAttentionAfterNaN(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.attentionCase(1, 5, 9, 1, 8)
	op, o := r.attention(c)
	bad := c
	bad.v = make([]float32, len(c.v))
	for i := range bad.v {
		bad.v[i] = nan
	}
	first, _ := r.attention(bad)
	r.do(first, op)
	r.exact(c.want(whole(5)), o.values())
}

func TestAttentionRelativePositions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, s := range [][3]int{{1, 1, 4}, {7, 2, 40}, {37, 3, 40}, {64, 1, 128}, {65, 2, 8}, {130, 1, 64}, {200, 1, 12}} {
		n, heads, dim := s[0], s[1], s[2]
		c := r.attentionCase(2, n, n, heads, dim)
		c.q2, c.p = random(r.rng, 2*n*heads*dim), random(r.rng, (2*n-1)*heads*dim)
		op, o := r.attention(c)
		r.do(op)
		r.exact(c.want(whole(n)), o.values(), s)

		op.Mask = pass.Band(9, 4)
		op.Lengths, op.KeyLengths = pass.Fixed(n, n-n/3), pass.Fixed(n, n-n/3)
		c.visible = func(b, i, j int) bool { return j >= i-9 && j <= i+4 && j < n-b*(n/3) }
		r.do(op)
		r.exact(c.want(func(b int) int { return n - b*(n/3) }), o.values(), s, "band")
	}
}

// Pieces of an op, and of rows stacked as [q | k | v], give the same bits.
func TestAttentionInPieces(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const n, heads, dim = 500, 2, 64
	stacked := r.floats(1, n, 3*heads*dim, random(r.rng, n*3*heads*dim))
	o := r.output(1, n, heads*dim)
	op := pass.Attention{
		Q: stacked.View, K: stacked.At(heads * dim), V: stacked.At(2 * heads * dim), O: o.View,
		Queries: n, Keys: n, Heads: heads, HeadDim: dim, Mask: pass.Causal,
	}
	r.do(op)
	want := o.result()
	one := r.output(1, n, heads*dim)
	for h := range heads {
		part := op
		part.Heads = 1
		part.Q, part.K, part.V, part.O = op.Q.At(h*dim), op.K.At(h*dim), op.V.At(h*dim), one.At(h*dim)
		r.do(part)
	}
	require.Equal(t, want, one.result())
}

func BenchmarkAttention(b *testing.B) {
	r := newRig(b)
	for _, s := range [][4]int{{1500, 1500, 6, 64}, {1, 1500, 8, 64}} {
		b.Run(fmt.Sprint(s), func(b *testing.B) {
			op, _ := r.attention(r.attentionCase(1, s[0], s[1], s[2], s[3]))
			rec, err := r.ses.Record(b.Context(), pass.RecordOptions{}, func(p pass.Pass) { p.Do(op) })
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				run, err := rec.Run(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				run.Close()
			}
			b.ReportMetric(2*float64(b.N)*float64(s[0]*s[1]*s[2]*s[3])/float64(b.Elapsed().Nanoseconds()), "GMAC/s")
		})
	}
}
