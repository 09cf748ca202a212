package cuda

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// A gemmTiming is a Gemm of a size that networks have, or that is usual to compare.
type gemmTiming struct {
	rows, k, n int
	typ        pass.DType
	math       pass.Math
	ways       []string // to force, beside the one that is chosen
}

func (g gemmTiming) name() string {
	return fmt.Sprintf("%dx%dto%d-%v-%v", g.rows, g.k, g.n, g.typ, g.math)
}

func gemmTimings() []gemmTiming {
	fast := []string{"wide 128x256", "wide 128x256, clusters of 2", "wide 128x192", "wide 128x160", "wide 128x160, clusters of 2", "wide 128x128", "wide 128x128, clusters of 2", "128x128"}
	exact := []string{"wide 128x128", "wide 128x128, clusters of 2", "128x128"}
	return []gemmTiming{
		{4096, 4096, 4096, pass.F16, pass.Fast, fast},
		{4096, 4096, 4096, pass.F32, pass.Exact, exact},
		{4096, 4096, 4096, pass.F16, pass.Exact, exact},
		{1500, 1280, 5120, pass.F16, pass.Fast, fast},
		{1500, 5120, 1280, pass.F16, pass.Fast, fast},
		{1500, 384, 1536, pass.F16, pass.Fast, fast},
		{1500, 1536, 384, pass.F16, pass.Fast, append(fast, "64x64")},
		{1500, 1280, 1280, pass.F16, pass.Fast, fast},
		{512, 512, 512, pass.F16, pass.Fast, []string{"wide 128x64", "64x64"}},
		{1500, 1280, 5120, pass.Q8_0, pass.Fast, nil},
		{1500, 1280, 5120, pass.F32, pass.Exact, exact},
		{1500, 384, 1536, pass.F32, pass.Exact, exact},
		{64, 1280, 1280, pass.F16, pass.Fast, []string{"64x64", "wide 128x128"}},
		{1, 1280, 51865, pass.F16, pass.Fast, nil},
		{1, 1280, 51865, pass.Q8_0, pass.Fast, nil},
		{8, 1280, 51865, pass.F16, pass.Fast, nil},
		{1, 1280, 1280, pass.F16, pass.Fast, nil},
		{1, 1280, 5120, pass.F16, pass.Fast, nil},
		{1, 5120, 1280, pass.F16, pass.Fast, nil},
		{8, 1280, 1280, pass.F16, pass.Fast, nil},
		{1, 1280, 1280, pass.F32, pass.Exact, nil},
		{1, 1280, 1280, pass.Q8_0, pass.Fast, nil},
	}
}

// BenchmarkGemm times products on the GPU: many in one graph, each of which waits for the
// one before, with what prepares their operands; and their kernels one by one. Operands
// are random, since a card is quicker with zeros.
func BenchmarkGemm(b *testing.B) {
	if !onDevice() {
		b.Skip("measures a GPU: TANDEM_DEVICES=cuda")
	}
	for _, g := range gemmTimings() {
		b.Run(g.name(), func(b *testing.B) {
			for _, way := range append([]string{""}, g.ways...) {
				name := strings.ReplaceAll(way, " ", "-")
				if way == "" {
					name = "chosen"
				}
				b.Run(name, func(b *testing.B) { g.run(b, way) })
			}
			b.Run("kernels", g.kernels)
		})
	}
}

// open opens a device, and makes the product on it.
func (g gemmTiming) open(b *testing.B, cfg Config) (pass.Session, pass.Gemm) {
	ctx := context.Background()
	dev, err := Open(ctx, cfg)
	require.NoError(b, err)
	b.Cleanup(func() { dev.Close() })
	w, err := dev.Load(ctx, pass.LinearWeights{Name: "w", Parts: []pass.Tensor{cases.Encode("w", g.typ, cases.Recipe("w", 1, g.n*g.k, 0.05, 0), g.n, g.k)}})
	require.NoError(b, err)
	s, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(b, err)
	a, err := s.Alloc(pass.F32, g.rows*g.k)
	require.NoError(b, err)
	require.NoError(b, s.Write(ctx, a.View(), cases.Recipe("a", 1, g.rows*g.k, 1, 0)))
	c, err := s.Alloc(pass.F32, g.rows*g.n)
	require.NoError(b, err)
	return s, pass.Gemm{A: a.View(), W: w, C: c.View(), Rows: g.rows}
}

func (g gemmTiming) record(b *testing.B, s pass.Session, op pass.Gemm, times int) pass.Recording {
	rec, err := s.Record(context.Background(), pass.RecordOptions{Math: g.math}, func(p pass.Pass) {
		for range times {
			p.Do(op)
		}
	})
	require.NoError(b, err)
	return rec
}

func (g gemmTiming) run(b *testing.B, way string) {
	ctx := context.Background()
	s, op := g.open(b, Config{Ways: map[string]string{"": way}})
	flop := 2 * float64(g.rows) * float64(g.k) * float64(g.n)
	times := max(20, min(1000, int(5e12/flop)))
	rec := g.record(b, s, op, times)
	for range 5 { // an idle card runs slowly
		_, err := rec.Run(ctx)
		require.NoError(b, err)
	}
	for b.Loop() {
		_, err := rec.Run(ctx)
		require.NoError(b, err)
	}
	seconds := b.Elapsed().Seconds() / float64(b.N*times)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(seconds*1e6, "us")
	b.ReportMetric(flop/seconds/1e12, "TFLOP/s")
}

// kernels reports the time of each kernel, outside of graphs: the median of some runs.
func (g gemmTiming) kernels(b *testing.B) {
	times := map[string][]float64{}
	s, op := g.open(b, Config{Trace: func(t Trace) {
		for _, span := range t.Spans {
			times[span.Kernel] = append(times[span.Kernel], span.Seconds)
		}
	}})
	rec := g.record(b, s, op, 20)
	for b.Loop() {
		_, err := rec.Run(context.Background())
		require.NoError(b, err)
	}
	b.ReportMetric(0, "ns/op")
	for name, t := range times {
		sort.Float64s(t)
		b.ReportMetric(t[len(t)/2]*1e6, name+"-us")
	}
}
