package cuda

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/kernels"
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
	fast := []string{"128x128"}
	for _, shape := range kernels.WideShapes {
		if shape.Products == 1 {
			fast = append(fast, tileChoice{wide: shape}.String())
		}
	}
	exact := []string{"wide 128x128", "wide 128x128, clusters of 2", "128x128", asLoaded}
	return []gemmTiming{
		{4096, 4096, 4096, pass.F16, pass.Fast, fast},
		{4096, 4096, 4096, pass.F32, pass.Exact, exact},
		{4096, 4096, 4096, pass.F16, pass.Exact, exact},
		{1500, 1280, 5120, pass.F16, pass.Fast, fast},
		{1500, 5120, 1280, pass.F16, pass.Fast, fast},
		{1500, 640, 5120, pass.F16, pass.Fast, fast},
		{1500, 2560, 5120, pass.F16, pass.Fast, fast},
		{1500, 1280, 2560, pass.F16, pass.Fast, fast},
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
// one before, of rows that are prepared once for all; and their kernels one by one. Operands
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

// BenchmarkFeedForward times the feed-forward part of a large Whisper, x += W₂·gelu(W₁·norm(x)),
// whose norm and first product leave halves to the product behind them: if what is between
// them are temporaries. If it is state, it is F32.
func BenchmarkFeedForward(b *testing.B) {
	if !onDevice() {
		b.Skip("measures a GPU: TANDEM_DEVICES=cuda")
	}
	const rows, width, hidden, times = 1500, 1280, 5120, 50
	ctx := context.Background()
	e := pass.GELU
	record := func(b *testing.B, cfg Config, halves bool, math pass.Math) pass.Recording {
		dev, err := Open(ctx, cfg)
		require.NoError(b, err)
		b.Cleanup(func() { dev.Close() })
		load := func(w pass.Weights) pass.Param {
			p, err := dev.Load(ctx, w)
			require.NoError(b, err)
			return p
		}
		linear := func(n, k int) pass.Param {
			return load(pass.LinearWeights{
				Parts: []pass.Tensor{cases.Encode("w", pass.F16, cases.Recipe("w", uint64(n), n*k, 0.02, 0), n, k)}, Bias: make([]float32, n)})
		}
		norm := load(pass.NormWeights{Gain: cases.Recipe("g", 1, width, 0.1, 1), Bias: make([]float32, width)})
		up, down := linear(hidden, width), linear(width, hidden)
		s, err := dev.NewSession(pass.SessionConfig{})
		require.NoError(b, err)
		state := func(n int) pass.View {
			x, err := s.Alloc(pass.F32, n)
			require.NoError(b, err)
			return x.View()
		}
		x := state(rows * width)
		require.NoError(b, s.Write(ctx, x, cases.Recipe("x", 1, rows*width, 1, 0)))
		rec, err := s.Record(ctx, pass.RecordOptions{Math: math}, func(p pass.Pass) {
			between := state
			if halves {
				between = func(n int) pass.View { return p.Temp(pass.F32, n).View() }
			}
			y, h := between(rows*width), between(rows*hidden)
			for range times {
				p.Do(
					pass.LayerNorm{X: x, W: norm, Y: y, Rows: rows, Cols: width},
					pass.Gemm{A: y, W: up, C: h, Rows: rows, Epilogue: e},
					pass.Gemm{A: h, W: down, C: x, Rows: rows, Epilogue: pass.Residual(0.01)},
				)
			}
		})
		require.NoError(b, err)
		for range 5 { // an idle card runs slowly
			_, err := rec.Run(ctx)
			require.NoError(b, err)
		}
		return rec
	}
	for _, math := range []pass.Math{pass.Fast, pass.Exact} {
		for name, halves := range map[string]bool{"halves": true, "f32": false} {
			b.Run(fmt.Sprintf("%v/%s", math, name), func(b *testing.B) {
				rec := record(b, Config{}, halves, math)
				for b.Loop() {
					_, err := rec.Run(ctx)
					require.NoError(b, err)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(b.Elapsed().Seconds()/float64(b.N*times)*1e6, "us")
			})
			b.Run(fmt.Sprintf("%v/%s/kernels", math, name), func(b *testing.B) {
				type place struct {
					op     int
					kernel string
				}
				spent := map[place][]float64{}
				rec := record(b, Config{Trace: func(t Trace) {
					for _, span := range t.Spans {
						at := place{span.Op % 3, span.Kernel}
						spent[at] = append(spent[at], span.Seconds)
					}
				}}, halves, math)
				for b.Loop() {
					_, err := rec.Run(ctx)
					require.NoError(b, err)
				}
				b.ReportMetric(0, "ns/op")
				for at, all := range spent {
					sort.Float64s(all)
					b.ReportMetric(all[len(all)/2]*1e6, fmt.Sprintf("%d-%s-us", at.op, at.kernel))
				}
			})
		}
	}
	for _, way := range []string{"wide 128x256", "wide 128x256, clusters of 2", "wide 128x160, clusters of 2", "wide 128x128, clusters of 2", "128x128"} {
		for name, kind := range map[string]pass.Epilogue{"none": pass.None, "silu": pass.SiLU, "gelu": pass.GELU} {
			e = kind
			for left, halves := range map[string]bool{"halves": true, "f32": false} {
				b.Run(fmt.Sprintf("%s/%s/%s", strings.ReplaceAll(way, " ", "-"), name, left), func(b *testing.B) {
					spent := map[int][]float64{}
					rec := record(b, Config{Ways: map[string]string{"": way}, Trace: func(t Trace) {
						for _, span := range t.Spans {
							if !strings.HasPrefix(span.Kernel, "tile_prepare") {
								at := span.Op % 3
								spent[at] = append(spent[at], span.Seconds)
							}
						}
					}}, halves, pass.Fast)
					for b.Loop() {
						_, err := rec.Run(ctx)
						require.NoError(b, err)
					}
					b.ReportMetric(0, "ns/op")
					for op, what := range []string{"norm", "up", "down"} {
						slices.Sort(spent[op])
						b.ReportMetric(spent[op][len(spent[op])/2]*1e6, what+"-us")
					}
				})
			}
		}
	}
}
