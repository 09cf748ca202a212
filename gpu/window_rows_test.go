package gpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// once records ops, runs them and returns what a buffer then holds. Buffers begin with
// numbers that depend on their lengths alone.
func (b *bench) once(t *testing.T, ops func(buffer func(n int) pass.Buffer) (pass.Buffer, []pass.Op)) []float32 {
	ctx := context.Background()
	s, err := b.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer s.Close()
	out, list := ops(func(n int) pass.Buffer {
		x, err := s.Alloc(pass.F32, n)
		require.NoError(t, err)
		require.NoError(t, s.Write(ctx, x.View(), cases.Recipe(fmt.Sprint(n), 1, n, 1, 0)))
		return x
	})
	rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) { p.Do(list...) })
	require.NoError(t, err)
	_, err = rec.Run(ctx)
	require.NoError(t, err)
	got := make([]float32, out.Len())
	require.NoError(t, s.Read(ctx, out.View(), got))
	return got
}

// What is read in place of steps beyond the ends of an item lies within what is bound for
// them, wherever the item ends.
func TestMirroredSteps(t *testing.T) {
	t.Parallel()
	const n = 9
	for left := range 5 {
		for right := range 5 {
			for length := max(left, right) + 1; length <= n; length++ {
				for from := -left; from < length+right; from++ {
					for to := from + 1; to <= length+right; to++ {
						s := pass.Span{From: from, To: to}
						known := within(mirrored(s, right, 1, n, pass.Fixed(length)), n)
						unknown := within(mirrored(s, right, 2, n, pass.Fixed(length, n)), n)
						for step := from; step < to; step++ {
							at := step
							switch {
							case step < 0:
								at = -step
							case step >= length:
								at = 2*(length-1) - step
							}
							for _, bound := range []pass.Span{known, unknown} {
								require.True(t, bound.From <= at && at < bound.To, "step %d of %v, length %d, padding %d and %d: %d in %v", step, s, length, left, right, at, bound)
							}
						}
					}
				}
			}
		}
	}
}

func TestRuns(t *testing.T) {
	t.Parallel()
	list, ok := runs(pass.Span{From: 3, To: 20}, func(s pass.Span) bool { return s.Len() <= 5 })
	require.True(t, ok)
	require.Equal(t, []pass.Span{{From: 3, To: 7}, {From: 7, To: 11}, {From: 11, To: 15}, {From: 15, To: 20}}, list)
	_, ok = runs(pass.Span{To: 20}, func(s pass.Span) bool { return s.To < 20 })
	require.False(t, ok)
}

// Queries, keys and values in one buffer of rows [q | k | v] at odd places, of which a
// binding holds a few rows: with few heads it binds rows, with many it copies heads.
func TestAttentionOfStackedRows(t *testing.T) {
	t.Parallel()
	plain := newBench(t, driver.DeviceConfig{}, nil)
	small := newBench(t, driver.DeviceConfig{Limits: driver.Limits{MaxStorageBindingSize: 64 << 10}}, nil)
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		heads, dim, rows, queries int
		mask                      pass.Mask
		relative, copied          bool
	}{
		{2, 20, 301, 301, pass.Causal, false, false},
		{8, 16, 200, 200, pass.Mask{}, true, true},
		{3, 64, 130, 7, pass.Mask{}, false, true},
	} {
		width := c.heads * c.dim
		stride, offset := 3*width+1+2*random.IntN(3), 1+2*random.IntN(40)
		attention := func(buffer func(n int) pass.Buffer) (pass.Buffer, []pass.Op) {
			o := buffer(offset + c.queries*(width+3))
			qkv := buffer(offset + c.rows*stride).At(offset).Rows(stride)
			op := pass.Attention{Q: qkv, K: qkv.At(width), V: qkv.At(2 * width), O: o.At(offset).Rows(width + 3),
				Queries: c.queries, Keys: c.rows, Heads: c.heads, HeadDim: c.dim, Mask: c.mask}
			if c.relative {
				op.Q2, op.Positions = qkv.At(1), buffer(2*c.rows*width+5).At(3)
			}
			return o, []pass.Op{op}
		}
		whole, parts := plain.once(t, attention), small.once(t, attention)
		copied := 0
		for _, d := range small.dispatches {
			if d.label == "copy" {
				copied++
			}
		}
		require.Equal(t, c.copied, copied > 0)
		for i := range whole {
			require.InDelta(t, whole[i], parts[i], 2e-6, "%+v: element %d", c, i)
		}
	}
}

// One row that exceeds a binding, of ops that make an element of each.
func TestRowsLargerThanABinding(t *testing.T) {
	t.Parallel()
	small := newBench(t, driver.DeviceConfig{Limits: driver.Limits{MaxStorageBindingSize: 64 << 10}}, nil)
	const n, at = 40001, 3
	got := small.once(t, func(buffer func(n int) pass.Buffer) (pass.Buffer, []pass.Op) {
		x, y, z := buffer(n+at), buffer(n+at), buffer(n+at)
		return y, []pass.Op{
			pass.Fill{To: z.At(at), Rows: 1, Cols: n, Value: 2},
			pass.Add{A: x.At(at), B: z.At(at), Y: y.At(at), Rows: 1, Cols: n},
			pass.Scale{X: y.At(at), Y: y.At(at), Rows: 1, Cols: n, Factor: 0.5},
			pass.Copy{From: y.At(at), To: z.At(at), Rows: 1, Cols: n},
			pass.Map{X: z.At(at), Y: y.At(at), Rows: 1, Cols: n, Epilogue: pass.ReLU},
		}
	})
	want := cases.Recipe(fmt.Sprint(n+at), 1, n+at, 1, 0)
	for i := at; i < n+at; i++ {
		want[i] = max((want[i]+2)*0.5, 0)
	}
	require.Equal(t, want, got)
}

// Queries of a cache that exceed a binding: many of one item, and few of many items.
func TestAttendInWindows(t *testing.T) {
	t.Parallel()
	plain := newBench(t, driver.DeviceConfig{}, nil)
	small := newBench(t, driver.DeviceConfig{Limits: driver.Limits{MaxStorageBindingSize: 16 << 10}}, nil)
	for _, c := range []struct{ batch, queries, capacity int }{{1, 500, 60}, {3, 140, 300}, {60, 7, 120}} {
		const heads, dim = 2, 12
		attend := func(b *bench) []float32 {
			ctx := context.Background()
			h := newCached(t, b, pass.CacheConfig{Heads: heads, HeadDim: dim, Capacity: c.capacity, Batch: c.batch}, c.batch*c.queries)
			rows := c.capacity / c.batch // which is how many the helper makes
			require.NoError(t, h.do(t,
				pass.Append{K: h.k.View(), V: h.v.View(), Cache: h.cache, Rows: rows, Batch: c.batch},
				pass.Attend{Q: h.q.View(), O: h.o[0].View(), Cache: h.cache, Batch: c.batch, Queries: c.queries, Keys: pass.Const(rows)}))
			got := make([]float32, h.o[0].Len())
			require.NoError(t, h.Read(ctx, h.o[0].View(), got))
			return got
		}
		require.Equal(t, attend(plain), attend(small), "%+v", c)
	}
}

// What not even the smallest part of an op can bind is refused when it is recorded.
func TestPartsLargerThanABinding(t *testing.T) {
	t.Parallel()
	b := newBench(t, driver.DeviceConfig{Limits: driver.Limits{MaxStorageBindingSize: 16 << 10}}, nil)
	ctx := context.Background()
	s, err := b.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer s.Close()
	x, err := s.Alloc(pass.F32, 400_000)
	require.NoError(t, err)
	y, err := s.Alloc(pass.F32, 400_000)
	require.NoError(t, err)
	for says, op := range map[string]pass.Op{
		"softmax: X: 20000 bytes exceed the device's 16384": pass.Softmax{X: x.View(), Y: y.View(), Rows: 1, Cols: 5000},
		"attention: what a tile of queries takes":           pass.Attention{Q: x.View(), K: x.View(), V: x.View(), O: y.View(), Queries: 300, Keys: 300, Heads: 2, HeadDim: 256},
		"attention: what a stretch of keys takes":           pass.Attention{Q: x.View(), K: x.View(), V: x.View(), O: y.View(), Queries: 2, Keys: 300, Heads: 2, HeadDim: 128},
		"statspool: what is found for a mask":               pass.StatsPool{X: x.View(), Masks: x.View(), Y: y.View(), Height: 1, Width: 300, Channels: 100, Count: 1, Frames: 5},
	} {
		_, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) { p.Do(op) })
		require.ErrorIs(t, err, pass.ErrUnsupported, says)
		require.ErrorContains(t, err, says)
	}
}
