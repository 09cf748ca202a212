package cuda

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

// An attentionTiming is attention at a size that networks have, in one or more ways; none:
// as the rule says.
type attentionTiming struct {
	name  string
	times int // in one recording, one after the other
	ways  []string
	make  func(m *rowMaker) pass.Op
}

// attention returns an Attention whose keys are as many as its queries, if not given.
func (m *rowMaker) attention(op pass.Attention, relative bool) pass.Op {
	if op.Keys == 0 {
		op.Keys = op.Queries
	}
	batch, width := max(op.Batch, 1), op.Heads*op.HeadDim
	op.Q, op.K, op.V = m.random(batch*op.Queries*width), m.random(batch*op.Keys*width), m.random(batch*op.Keys*width)
	op.O = m.floats(batch * op.Queries * width)
	if relative {
		op.Q2, op.Positions = m.random(batch*op.Queries*width), m.random((2*op.Keys-1)*width)
	}
	return op
}

// attend returns an Attend of the last positions of a full cache.
func (m *rowMaker) attend(g pass.CacheConfig, queries int) pass.Op {
	c, err := m.s.NewCache(g)
	require.NoError(m.b, err)
	rows := max(g.Batch, 1) * g.Capacity * g.Heads * g.HeadDim
	fill := pass.Append{K: m.random(rows), V: m.random(rows), Cache: c, Batch: g.Batch, Rows: g.Capacity}
	rec, err := m.s.Record(context.Background(), pass.RecordOptions{}, func(p pass.Pass) { p.Do(fill) })
	require.NoError(m.b, err)
	_, err = rec.Run(context.Background())
	require.NoError(m.b, err)
	require.NoError(m.b, rec.Close())
	n := max(g.Batch, 1) * queries * g.Heads * g.HeadDim
	return pass.Attend{Q: m.random(n), O: m.floats(n), Cache: c, Batch: g.Batch, Queries: queries, Keys: pass.Const(g.Capacity), Causal: queries > 1}
}

// BenchmarkAttention times attention on the GPU, in each way that there is, many in one
// graph, each of which waits for the one before it. Packing of keys and values is part of
// it.
func BenchmarkAttention(b *testing.B) {
	if !onDevice() {
		b.Skip("measures a GPU: TANDEM_DEVICES=cuda")
	}
	for _, r := range attentionTimings() {
		for _, math := range []pass.Math{pass.Exact, pass.Fast} {
			ways := []string{""}
			if math == pass.Fast {
				ways = append(ways, r.ways...)
			}
			for _, way := range ways {
				b.Run(fmt.Sprintf("%s/%v/%s", r.name, math, way), func(b *testing.B) { r.run(b, math, way) })
			}
		}
	}
}

func (r attentionTiming) run(b *testing.B, math pass.Math, way string) {
	ctx := context.Background()
	dev, err := Open(ctx, Config{Ways: map[string]string{"": way}})
	require.NoError(b, err)
	defer dev.Close()
	s, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(b, err)
	defer s.Close()
	op := r.make(&rowMaker{b, dev, s})
	timeOp(b, s, op, math, r.times)
}

func attentionTimings() []attentionTiming {
	all := []string{"wgmma-turns", "wgmma"}
	direct := append(all, "wgmma-direct")
	return []attentionTiming{
		{"b4-4096-16x64", 10, direct, func(m *rowMaker) pass.Op {
			return m.attention(pass.Attention{Batch: 4, Queries: 4096, Heads: 16, HeadDim: 64}, false)
		}},
		{"16384-16x128", 4, all, func(m *rowMaker) pass.Op {
			return m.attention(pass.Attention{Queries: 16384, Heads: 16, HeadDim: 128}, false)
		}},
		{"16384-16x128-causal", 4, all, func(m *rowMaker) pass.Op {
			return m.attention(pass.Attention{Queries: 16384, Heads: 16, HeadDim: 128, Mask: pass.Causal}, false)
		}},
		{"whisper-1500-20x64", 100, direct, func(m *rowMaker) pass.Op {
			return m.attention(pass.Attention{Queries: 1500, Heads: 20, HeadDim: 64}, false)
		}},
		{"whisper-1500-6x64", 200, direct, func(m *rowMaker) pass.Op {
			return m.attention(pass.Attention{Queries: 1500, Heads: 6, HeadDim: 64}, false)
		}},
		{"relative-1500-8x128", 50, []string{"wgmma-turns", "mma"}, func(m *rowMaker) pass.Op {
			return m.attention(pass.Attention{Queries: 1500, Heads: 8, HeadDim: 128}, true)
		}},
		{"relative-375-8x128", 100, nil, func(m *rowMaker) pass.Op {
			return m.attention(pass.Attention{Queries: 375, Heads: 8, HeadDim: 128}, true)
		}},
		{"cross-1-1500-20x64", 300, nil, func(m *rowMaker) pass.Op {
			return m.attention(pass.Attention{Queries: 1, Keys: 1500, Heads: 20, HeadDim: 64}, false)
		}},
		{"cross-8-1500-20x64", 300, nil, func(m *rowMaker) pass.Op {
			return m.attention(pass.Attention{Queries: 8, Keys: 1500, Heads: 20, HeadDim: 64}, false)
		}},
		{"attend-1-448-20x64-f16", 300, nil, func(m *rowMaker) pass.Op {
			return m.attend(pass.CacheConfig{Heads: 20, HeadDim: 64, Capacity: 448, Type: pass.F16}, 1)
		}},
		{"attend-1-1500-20x64-f16", 300, nil, func(m *rowMaker) pass.Op {
			return m.attend(pass.CacheConfig{Heads: 20, HeadDim: 64, Capacity: 1500, Type: pass.F16}, 1)
		}},
		{"attend-b32-1-1500-20x64-f16", 100, nil, func(m *rowMaker) pass.Op {
			return m.attend(pass.CacheConfig{Heads: 20, HeadDim: 64, Capacity: 1500, Batch: 32, Type: pass.F16}, 1)
		}},
		{"prefill-224-448-20x64-f16", 100, nil, func(m *rowMaker) pass.Op {
			return m.attend(pass.CacheConfig{Heads: 20, HeadDim: 64, Capacity: 448, Type: pass.F16}, 224)
		}},
	}
}

// timeOp replays a recording that does an op many times, each after the one before, and
// reports what one takes.
func timeOp(b *testing.B, s pass.Session, op pass.Op, math pass.Math, times int) {
	b.Helper()
	ctx := context.Background()
	checked, err := pass.Check(op)
	require.NoError(b, err)
	rec, err := s.Record(ctx, pass.RecordOptions{Math: math}, func(p pass.Pass) {
		for range times {
			p.Do(op)
		}
	})
	require.NoError(b, err)
	for range 5 { // an idle card runs slowly
		_, err = rec.Run(ctx)
		require.NoError(b, err)
	}
	for b.Loop() {
		_, err := rec.Run(ctx)
		require.NoError(b, err)
	}
	seconds := b.Elapsed().Seconds() / float64(b.N*times)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(seconds*1e6, "us")
	b.ReportMetric(checked.Cost.FLOP/seconds/1e12, "TFLOP/s")
	b.ReportMetric(checked.Cost.Bytes/seconds/1e9, "GB/s")
}
