package cuda

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// A cached is a session with a cache of one item.
type cached struct {
	t *testing.T
	pass.Session
	cache pass.Cache
	width int
}

func newCached(t *testing.T, g pass.CacheConfig) cached {
	dev := hopper(t, Config{})
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	s, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	c, err := s.NewCache(g)
	require.NoError(t, err)
	return cached{t, s, c, g.Heads * g.HeadDim}
}

func (c cached) floats(x []float32) pass.View {
	b, err := c.Alloc(pass.F32, len(x))
	require.NoError(c.t, err)
	require.NoError(c.t, c.Write(c.t.Context(), b.View(), x))
	return b.View()
}

// number returns an index on the device.
func (c cached) number(n uint32) pass.Index {
	x, err := c.Alloc(pass.U32, 1)
	require.NoError(c.t, err)
	require.NoError(c.t, c.Write(c.t.Context(), x.View(), []uint32{n}))
	return pass.IndexIn(x.View())
}

func (c cached) run(ops ...pass.Op) error {
	rec, err := c.Record(c.t.Context(), pass.RecordOptions{}, func(p pass.Pass) { p.Do(ops...) })
	require.NoError(c.t, err)
	defer rec.Close()
	_, err = rec.Run(c.t.Context())
	return err
}

// An index beyond the capacity fails the run, which says so, and stores nothing; one at the
// end does not.
func TestCacheIndexBeyondCapacity(t *testing.T) {
	t.Parallel()
	const capacity = 10
	c := newCached(t, pass.CacheConfig{Heads: 2, HeadDim: 8, Capacity: capacity})
	ones := make([]float32, capacity*c.width)
	for i := range ones {
		ones[i] = 1
	}
	rows, o := c.floats(ones), c.floats(make([]float32, 12*c.width))
	require.NoError(t, c.run(pass.Append{K: rows, V: rows, Cache: c.cache, Rows: capacity}))
	twos := c.floats(cases.Recipe("twos", 1, 3*c.width, 0, 2))
	for _, queries := range []int{2, 12} {
		for over := range uint32(2) {
			for name, op := range map[string]pass.Op{
				"append": pass.Append{K: twos, V: twos, Cache: c.cache, Rows: 3, At: c.number(6 + 100*over).Plus(1)},
				"attend": pass.Attend{Q: c.floats(make([]float32, queries*c.width)), O: o, Cache: c.cache, Queries: queries, Keys: c.number(9 + over).Plus(1)},
			} {
				if name == "append" && over == 0 {
					continue // checked below, since it changes what is stored
				}
				err := c.run(op)
				if over == 0 {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, pass.ErrInvalid, name)
			}
		}
	}
	read := func() []float32 {
		q, got := c.floats(make([]float32, c.width)), make([]float32, c.width)
		require.NoError(t, c.run(pass.Attend{Q: q, O: o, Cache: c.cache, Queries: 1, Keys: pass.Const(capacity)}))
		require.NoError(t, c.Read(t.Context(), o, got))
		return got
	}
	require.InDelta(t, 1, read()[0], 1e-6)
	require.NoError(t, c.run(pass.Append{K: twos, V: twos, Cache: c.cache, Rows: 3, At: c.number(6).Plus(1)}))
	require.InDelta(t, 1.3, read()[0], 1e-6)
}

// An F16 cache refuses finite values that would become infinite; infinities and NaN are
// stored as they are.
func TestCacheNarrow(t *testing.T) {
	t.Parallel()
	for _, typ := range []pass.DType{pass.F32, pass.F16} {
		for _, v := range []struct {
			value float32
			fails bool
		}{{65519, false}, {-65519, false}, {65520, true}, {-1e30, true}, {float32(math.Inf(-1)), false}, {float32(math.NaN()), false}} {
			for _, values := range []bool{false, true} {
				c := newCached(t, pass.CacheConfig{Heads: 1, HeadDim: 12, Capacity: 4, Type: typ})
				row := make([]float32, c.width)
				k := c.floats(row)
				row[7] = v.value
				odd := c.floats(row)
				op := pass.Append{K: odd, V: k, Cache: c.cache, Rows: 1, At: pass.Const(2)}
				if values {
					op.K, op.V = k, odd
				}
				err := c.run(op)
				if v.fails && typ == pass.F16 {
					require.ErrorIs(t, err, pass.ErrInvalid, "%v", v.value)
					require.ErrorContains(t, err, "F16")
				} else {
					require.NoError(t, err, "%v %v", typ, v.value)
				}
			}
		}
	}
}

// Many queries over a cache give what attention over the same rows does, in every math and
// type.
func TestCachePrefill(t *testing.T) {
	t.Parallel()
	const queries, keys = 70, 150
	for _, typ := range []pass.DType{pass.F32, pass.F16} {
		for _, m := range []pass.Math{pass.Exact, pass.Fast} {
			c := newCached(t, pass.CacheConfig{Heads: 2, HeadDim: 20, Capacity: 200, Type: typ})
			halves := func(name string, rows int) pass.View {
				x := cases.Recipe(name, 1, rows*c.width, 1, 0)
				for i, v := range x {
					x[i] = float32(int(v*256)) / 256
				}
				return c.floats(x)
			}
			k, v, q := halves("k", keys), halves("v", keys), halves("q", queries)
			o := []pass.View{c.floats(make([]float32, queries*c.width)), c.floats(make([]float32, queries*c.width))}
			rec, err := c.Record(t.Context(), pass.RecordOptions{Math: m}, func(p pass.Pass) {
				p.Do(pass.Append{K: k, V: v, Cache: c.cache, Rows: keys},
					pass.Attend{Q: q, O: o[0], Cache: c.cache, Queries: queries, Keys: c.number(keys - 3).Plus(3), Causal: true},
					pass.Attention{Q: q, K: k, V: v, O: o[1], Queries: queries, Keys: keys, Heads: 2, HeadDim: 20, Mask: pass.Causal})
			})
			require.NoError(t, err)
			_, err = rec.Run(t.Context())
			require.NoError(t, err)
			got, want := make([]float32, queries*c.width), make([]float32, queries*c.width)
			require.NoError(t, c.Read(t.Context(), o[0], got))
			require.NoError(t, c.Read(t.Context(), o[1], want))
			require.Equal(t, want, got, "%v %v", typ, m)
		}
	}
}
