package gpu

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// Every geometry fits the device, covers the head, and keeps the keys of a tile, which
// decide about bits, whatever the number of queries and slabs.
func TestChooseAttentionTile(t *testing.T) {
	t.Parallel()
	for _, limits := range []driver.Limits{kernelLimits(1024, 48<<10), kernelLimits(256, 16<<10), kernelLimits(64, 16<<10)} {
		for dim := 4; dim <= 256; dim += 4 {
			for _, relative := range []bool{false, true} {
				keys := chooseAttentionTile(dim, 1, 1, relative, limits).keys()
				for _, queries := range []int{1, 40, 1500, 100000} {
					for _, slabs := range []int{1, 20, 1000} {
						g := chooseAttentionTile(dim, queries, slabs, relative, limits)
						says := fmt.Sprintf("dimension %d, %d queries, %d slabs, relative %v: %+v", dim, queries, slabs, relative, g)
						require.LessOrEqual(t, 16*g.pool(relative), int(limits.MaxWorkgroupStorage), says)
						require.LessOrEqual(t, g.across*g.down, int(limits.MaxInvocations), says)
						require.GreaterOrEqual(t, 4*g.across*g.slabs, dim, says)
						require.Zero(t, 4*g.across%g.step, says)
						require.Equal(t, keys, g.keys(), says)
						require.Equal(t, g.rowQuads, g.keyQuads, "relative positions lie as both do")
					}
				}
			}
		}
	}
	require.Equal(t, 8, chooseAttentionTile(64, 1500, 20, false, kernelLimits(1024, 48<<10)).down)
	require.Equal(t, 4, chooseAttentionTile(64, 100, 2, false, kernelLimits(1024, 48<<10)).down, "many small workgroups")
}

func attentionCase(batch, queries, keys, heads, dim int, mask pass.Mask, relative bool) cases.Case {
	width := heads * dim
	c := cases.Case{Name: fmt.Sprintf("attention-%dx%dx%d-%dx%d-%v", batch, queries, keys, heads, dim, relative), Outputs: []string{"O"},
		Op:     pass.Attention{Batch: batch, Queries: queries, Keys: keys, Heads: heads, HeadDim: dim, Mask: mask},
		Inputs: []cases.Tensor{randomInput("Q", batch, queries, width), randomInput("K", batch, keys, width), randomInput("V", batch, keys, width)}}
	if relative {
		c.Inputs = append(c.Inputs, randomInput("Q2", batch, queries, width), randomInput("Positions", 1, 2*keys-1, width))
	}
	return c
}

// The same bits where dispatches are cut, and with tiles of fewer queries.
func TestAttentionInParts(t *testing.T) {
	t.Parallel()
	plain := newBench(t, driver.DeviceConfig{}, nil)
	lesser := map[string]*bench{
		"workgroups": newBench(t, driver.DeviceConfig{Limits: driver.Limits{MaxWorkgroups: 2}}, nil),
		"rate":       newBench(t, driver.DeviceConfig{}, func(d *device) { d.rate.FLOP = 1e5 }),
		"bindings":   newBench(t, driver.DeviceConfig{Limits: driver.Limits{MaxStorageBindingSize: 64 << 10}}, nil),
	}
	for _, c := range []cases.Case{
		attentionCase(3, 70, 70, 2, 24, pass.Band(20, 30), true),
		attentionCase(2, 90, 50, 3, 24, pass.Causal, false),
		attentionCase(2, 3, 600, 2, 8, pass.Mask{}, false),
		with32(attentionCase(2, 40, 40, 2, 12, pass.Mask{}, true), "Lengths", 40, 7),
		with32(with32(attentionCase(2, 40, 40, 2, 12, pass.Mask{}, true), "Lengths", 40, 7), "KeyLengths", 0, 33),
	} {
		whole := plain.run(t, c, cases.Awkward)
		count := len(plain.dispatches)
		for name, b := range lesser {
			require.Equal(t, whole, b.run(t, c, cases.Awkward), "%s: %s", name, c.Name)
			require.GreaterOrEqual(t, len(b.dispatches), count)
		}
		require.Greater(t, len(lesser["rate"].dispatches), count, c.Name)
	}
}

// A cached is a session with a cache of one item, and the rows that are in it.
type cached struct {
	pass.Session
	cache   pass.Cache
	k, v, q pass.Buffer
	o       [2]pass.Buffer
}

func newCached(t *testing.T, b *bench, g pass.CacheConfig, queries int) cached {
	ctx := context.Background()
	s, err := b.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	c := cached{Session: s}
	c.cache, err = s.NewCache(g)
	require.NoError(t, err)
	width := g.Heads * g.HeadDim
	make := func(name string, rows int) pass.Buffer {
		x, err := s.Alloc(pass.F32, rows*width)
		require.NoError(t, err)
		values := cases.Recipe(name, 1, rows*width, 1, 0)
		for i, v := range values { // that binary16 holds
			values[i] = float32(int(v*256)) / 256
		}
		require.NoError(t, s.Write(ctx, x.View(), values))
		return x
	}
	c.k, c.v, c.q = make("k", g.Capacity), make("v", g.Capacity), make("q", queries)
	c.o = [2]pass.Buffer{make("o0", queries), make("o1", queries)}
	return c
}

func (c cached) do(t *testing.T, ops ...pass.Op) error {
	rec, err := c.Record(context.Background(), pass.RecordOptions{}, func(p pass.Pass) { p.Do(ops...) })
	require.NoError(t, err)
	defer rec.Close()
	_, err = rec.Run(context.Background())
	return err
}

// number returns an index on the device.
func (c cached) number(t *testing.T, n uint32) pass.Index {
	x, err := c.Alloc(pass.U32, 1)
	require.NoError(t, err)
	require.NoError(t, c.Write(context.Background(), x.View(), []uint32{n}))
	return pass.IndexIn(x.View())
}

// A cache of which one head exceeds a binding gives what attention over the same rows
// does, for few queries and many.
func TestCacheInPieces(t *testing.T) {
	t.Parallel()
	b := newBench(t, driver.DeviceConfig{Limits: driver.Limits{MaxStorageBindingSize: 300 << 10}}, nil)
	for _, typ := range []pass.DType{pass.F32, pass.F16} {
		g := pass.CacheConfig{Heads: 1, HeadDim: 128, Capacity: 620, Type: typ}
		if typ == pass.F16 {
			g.HeadDim = 256
		}
		h, err := layCache(pass.CacheConfig{Heads: 1, HeadDim: g.HeadDim, Capacity: g.Capacity, Batch: 1, Type: typ}, b.hw.limits)
		require.NoError(t, err)
		require.Equal(t, 2, h.pieces(), "%v", typ)
		for _, queries := range []int{3, 20} {
			c := newCached(t, b, g, queries)
			const keys = 600
			attention := func(o pass.Buffer, heads int) pass.Op {
				return pass.Attention{Q: c.q.View(), K: c.k.View(), V: c.v.View(), O: o.View(), Queries: queries, Keys: keys, Heads: heads, HeadDim: g.HeadDim, Mask: pass.Causal}
			}
			got := func() []float32 {
				x := make([]float32, c.o[0].Len())
				require.NoError(t, c.Read(context.Background(), c.o[0].View(), x))
				return x
			}
			append1 := pass.Append{K: c.k.View(), V: c.v.View(), Cache: c.cache, Rows: 300}
			append2 := pass.Append{K: c.k.At(300 * g.HeadDim), V: c.v.At(300 * g.HeadDim), Cache: c.cache, Rows: 320, At: c.number(t, 300)}
			attend := pass.Attend{Q: c.q.View(), O: c.o[0].View(), Cache: c.cache, Queries: queries, Keys: pass.Const(keys), Causal: true}
			require.NoError(t, c.do(t, append1, append2, attend))
			fixed := got()
			attend.Keys = c.number(t, keys)
			require.NoError(t, c.do(t, attend))
			require.Equal(t, fixed, got())

			// The rows of K and V exceed a binding: a device with larger ones.
			wide := newCached(t, newBench(t, driver.DeviceConfig{}, nil), g, queries)
			c = wide
			require.NoError(t, wide.do(t, attention(wide.o[0], 1)))
			want := got()
			for i := range want {
				require.InDelta(t, want[i], fixed[i], 1e-5)
			}
		}
	}
}

// An index beyond the capacity fails the run, which names it; one at the end does not.
func TestCacheIndexBeyondCapacity(t *testing.T) {
	t.Parallel()
	b := newBench(t, driver.DeviceConfig{}, nil)
	c := newCached(t, b, pass.CacheConfig{Heads: 2, HeadDim: 8, Capacity: 10}, 12)
	for _, queries := range []int{2, 12} {
		for over := range uint32(2) {
			for says, op := range map[string]pass.Op{
				"append: At":   pass.Append{K: c.k.View(), V: c.v.View(), Cache: c.cache, Rows: 3, At: c.number(t, 6+over).Plus(1)},
				"attend: Keys": pass.Attend{Q: c.q.View(), O: c.o[0].View(), Cache: c.cache, Queries: queries, Keys: c.number(t, 9+over).Plus(1)},
			} {
				err := c.do(t, op)
				if over == 0 {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, pass.ErrInvalid)
				require.ErrorContains(t, err, says)
			}
		}
	}
}
