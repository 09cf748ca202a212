package cpu_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/tandem-gpu/tandem/pass"
)

// A cache holds what was appended at the index of each item, rounded to its type, and
// queries see the positions up to an index, whether that is fixed or on the device.
func TestCache(t *testing.T) {
	t.Parallel()
	for _, typ := range []pass.DType{pass.F32, pass.F16} {
		r := newRig(t)
		const batch, heads, dim, capacity = 2, 2, 20, 150
		cache, err := r.ses.NewCache(pass.CacheConfig{Heads: heads, HeadDim: dim, Capacity: capacity, Batch: batch + 1, Type: typ})
		require.NoError(t, err)
		keys, values := make([]float32, batch*capacity*heads*dim), make([]float32, batch*capacity*heads*dim)
		put := func(dst, src []float32, rows int, at func(b int) int) {
			for b := range batch {
				for i, v := range src[b*rows*heads*dim : (b+1)*rows*heads*dim] {
					if typ == pass.F16 {
						v = float16.Fromfloat32(v).Float32()
					}
					dst[(b*capacity+at(b))*heads*dim+i] = v
				}
			}
		}
		// Each step appends some rows, and looks at what is there with as many queries.
		used := []int{0, 0}
		for step, s := range []struct {
			rows   int
			causal bool
			each   bool
		}{{70, true, false}, {1, false, false}, {3, false, true}, {64, true, true}, {1, true, false}, {0, true, true}} {
			k, v := random(r.rng, batch*s.rows*heads*dim), random(r.rng, batch*s.rows*heads*dim)
			at, seen := pass.Const(used[0]), pass.Const(used[0]+s.rows)
			switch {
			case s.each:
				at = pass.IndexEach(r.numbers(uint32(used[0]), uint32(used[1])))
				seen = at.Plus(s.rows)
			case step > 2:
				used[1] = used[0]
				at = pass.IndexIn(r.numbers(uint32(used[0])))
				seen = pass.IndexIn(r.numbers(uint32(used[0] - 1))).Plus(s.rows + 1)
			}
			put(keys, k, s.rows, func(b int) int { return used[b] })
			put(values, v, s.rows, func(b int) int { return used[b] })
			q, o := random(r.rng, batch*s.rows*heads*dim), r.output(batch, s.rows, heads*dim)
			r.do(
				pass.Append{K: r.floats(batch, s.rows, heads*dim, k).View, V: r.floats(batch, s.rows, heads*dim, v).View, Cache: cache, Batch: batch, Rows: s.rows, At: at},
				pass.Attend{Q: r.floats(batch, s.rows, heads*dim, q).View, O: o.View, Cache: cache, Batch: batch, Queries: s.rows, Keys: seen, Causal: s.causal},
			)
			c := attentionCase{
				batch: batch, queries: s.rows, keys: capacity, heads: heads, dim: dim, scale: 1 / math.Sqrt(dim), q: q, k: keys, v: values,
				visible: func(b, i, j int) bool { return j < used[b]+s.rows && (!s.causal || j <= i+used[b]) },
			}
			r.exact(c.want(whole(s.rows)), o.values(), typ, step)
			used[0], used[1] = used[0]+s.rows, used[1]+s.rows
			if step == 2 { // the second item begins again
				used[1] -= 50
			}
		}
	}
}

// With more queries than keys, causal queries before the first key give zeros.
func TestAttendBeforeTheFirstKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cache, err := r.ses.NewCache(pass.CacheConfig{Heads: 1, HeadDim: 4, Capacity: 9})
	require.NoError(t, err)
	v := r.floats(1, 2, 4, []float32{1, 2, 3, 4, 1, 2, 3, 4})
	o := r.output(1, 3, 4)
	ask := pass.Attend{Q: r.floats(1, 3, 4, random(r.rng, 12)).View, O: o.View, Cache: cache, Queries: 3, Keys: pass.Const(2), Causal: true}
	r.do(pass.Append{K: v.View, V: v.View, Cache: cache, Rows: 2}, ask)
	require.Equal(t, []float32{0, 0, 0, 0, 1, 2, 3, 4, 1, 2, 3, 4}, o.values())
	ask.Keys = pass.Const(0)
	r.do(ask)
	require.Equal(t, make([]float32, 12), o.values())
}

func TestCacheCapacity(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cache, err := r.ses.NewCache(pass.CacheConfig{Heads: 1, HeadDim: 4, Capacity: 9, Batch: 2})
	require.NoError(t, err)
	x, o := r.floats(2, 2, 4, make([]float32, 16)), r.output(2, 2, 4)
	add := pass.Append{K: x.View, V: x.View, Cache: cache, Batch: 2, Rows: 2}
	for _, at := range []pass.Index{pass.IndexEach(r.numbers(7, 8)), pass.IndexIn(r.numbers(8)), pass.IndexIn(r.numbers(math.MaxUint32)).Plus(1)} {
		add.At = at
		r.fails(add, "At", "0 to 7", "2 rows", "capacity of 9")
	}
	add.At = pass.IndexIn(r.numbers(7))
	r.do(add)
	add.Rows, add.At = 0, pass.IndexIn(r.numbers(99))
	r.do(add) // nothing is done
	ask := pass.Attend{Q: x.View, O: o.View, Cache: cache, Batch: 2, Queries: 2, Keys: pass.IndexEach(r.numbers(9, 10))}
	r.fails(ask, "Keys", "item 1", "0 to 9", "given 10")

	tall, err := r.ses.NewCache(pass.CacheConfig{Heads: 1, HeadDim: 4, Capacity: 1, Batch: 2})
	require.NoError(t, err)
	add = pass.Append{K: x.View, V: x.View, Cache: tall, Batch: 2, Rows: 2, At: pass.IndexIn(r.numbers(0))}
	r.fails(add, "At", "capacity of 1")
}

// A value that F16 does not have must not become an infinity in silence; one that rounds
// to the largest, and infinities that are given, are stored.
func TestF16CacheRange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cache, err := r.ses.NewCache(pass.CacheConfig{Heads: 1, HeadDim: 4, Capacity: 9, Type: pass.F16})
	require.NoError(t, err)
	zero := r.floats(1, 1, 4, make([]float32, 4))
	try := func(v float32) pass.Append {
		return pass.Append{K: zero.View, V: r.floats(1, 1, 4, []float32{0, v, nan, 3}).View, Cache: cache, Rows: 1}
	}
	r.fails(try(-65520), "V", "item 0, row 0", "F16", "65520")
	bad := try(0)
	bad.K = r.floats(1, 1, 4, []float32{1e30, 0, 0, 0}).View
	r.fails(bad, "K", "F16")
	o := r.output(1, 1, 4)
	ask := pass.Attend{Q: zero.View, O: o.View, Cache: cache, Queries: 1, Keys: pass.Const(1)}
	for given, want := range map[float32]float32{65519: 65504, inf: inf, 2049: 2048, 2051: 2052, 3e-8: 5.9604645e-8} {
		r.do(try(given), ask)
		got := o.values()
		require.Equal(t, want, got[1])
		require.True(t, got[2] != got[2])
		require.Equal(t, float32(3), got[3])
	}
}

// A cache counts as memory of the device, and gives it back.
func TestCacheMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.ses.NewCache(pass.CacheConfig{Heads: 1 << 10, HeadDim: 256, Capacity: 1 << 20})
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
	cache, err := r.ses.NewCache(pass.CacheConfig{Heads: 3, HeadDim: 12, Capacity: 9})
	require.NoError(t, err)
	require.NoError(t, r.ses.FreeCache(cache))
	_, err = r.ses.Record(context.Background(), pass.RecordOptions{}, func(p pass.Pass) {
		x := p.Input(pass.F32, 36)
		p.Do(pass.Append{K: x.View(), V: x.View(), Cache: cache, Rows: 1})
	})
	require.ErrorIs(t, err, pass.ErrClosed)
}
