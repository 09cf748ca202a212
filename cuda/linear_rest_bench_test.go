package cuda

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// repeating is a driver that makes graphs of the first wide product that a recording has: it
// takes the place of all kernels behind it, and each waits for the one before.
type repeating struct {
	driver.Driver
	products map[driver.Graph]driver.Launch
	chain    []driver.Node
}

func (r *repeating) AddKernel(g driver.Graph, l driver.Launch) (driver.Node, error) {
	if product, ok := r.products[g]; ok {
		l = product
	} else if l.Grid[0] > 64 && l.Block[0] > 256 {
		r.products[g] = l
	}
	n, err := r.Driver.AddKernel(g, l)
	if _, ok := r.products[g]; ok {
		r.chain = append(r.chain, n)
	}
	return n, err
}

func (r *repeating) AddEdges(g driver.Graph, _ []driver.Edge) error {
	var edges []driver.Edge
	for i := 1; i < len(r.chain); i++ {
		edges = append(edges, driver.Edge{From: r.chain[i-1], To: r.chain[i], Programmatic: true})
	}
	return r.Driver.AddEdges(g, edges)
}

// BenchmarkResults times one product of a large Whisper alone, with what it leaves to the next:
// F32, or, as in the feed-forward part, halves, of which another product is the only reader. After
// half a second of rest, and until warm; see PERF.md. All have the same weights, which stay in the
// second cache.
func BenchmarkResults(b *testing.B) {
	if !onDevice() {
		b.Skip("measures a GPU: TANDEM_DEVICES=cuda")
	}
	ways := []string{""}
	for _, s := range kernels.WideShapes {
		if s.Products == 1 && s.Columns >= 128 {
			ways = append(ways, tileChoice{wide: s}.String())
		}
	}
	for _, way := range ways {
		for _, halves := range []bool{true, false} {
			for name, e := range map[string]pass.Epilogue{"none": pass.None, "gelu": pass.GELU} {
				left := map[bool]string{true: "halves", false: "f32"}[halves]
				b.Run(fmt.Sprintf("%s/%s/%s", strings.ReplaceAll(way, " ", "-"), left, name), func(b *testing.B) {
					timeResults(b, way, halves, e)
				})
			}
		}
	}
}

func timeResults(b *testing.B, way string, halves bool, e pass.Epilogue) {
	const rows, width, hidden, products = 1500, 1280, 5120, 50 // of a graph; of more a run becomes two
	ctx := context.Background()
	cfg, err := Config{Ways: map[string]string{"": way}}.resolve()
	require.NoError(b, err)
	lib, err := driver.Open(cfg.Library)
	require.NoError(b, err)
	drv := &repeating{Driver: lib, products: map[driver.Graph]driver.Launch{}}
	dev, err := open(ctx, drv, cfg)
	require.NoError(b, err)
	defer dev.Close()
	linear := func(n, k int) pass.Param {
		p, err := dev.Load(ctx, pass.LinearWeights{
			Parts: []pass.Tensor{cases.Encode("w", pass.F16, cases.Recipe("w", uint64(n), n*k, 0.05, 0), n, k)}, Bias: make([]float32, n)})
		require.NoError(b, err)
		return p
	}
	up, few := linear(hidden, width), linear(128, hidden)
	s, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(b, err)
	state := func(n int) pass.View {
		x, err := s.Alloc(pass.F32, n)
		require.NoError(b, err)
		return x.View()
	}
	x, y, z := state(rows*width), state(rows*128), state(rows*hidden)
	require.NoError(b, s.Write(ctx, x, cases.Recipe("a", 1, rows*width, 1, 0)))
	rec, err := s.Record(ctx, pass.RecordOptions{Math: pass.Fast}, func(p pass.Pass) {
		for i := 0; i < products; i++ {
			h := z
			if halves {
				h = p.Temp(pass.F32, rows*hidden).View()
			}
			p.Do(pass.Gemm{A: x, W: up, C: h, Rows: rows, Epilogue: e})
			if halves { // whose reader gives way to a product
				p.Do(pass.Gemm{A: h, W: few, C: y, Rows: rows})
				i++
			}
		}
	})
	require.NoError(b, err)
	run := func() float64 {
		from := time.Now()
		_, err := rec.Run(ctx)
		require.NoError(b, err)
		return time.Since(from).Seconds()
	}
	run()
	run()
	require.Len(b, drv.products, 1) // the graph was made behind the second run
	require.Len(b, drv.chain, products)
	var rested, warm []float64
	for b.Loop() {
		time.Sleep(500 * time.Millisecond)
		for range 4 {
			rested = append(rested, run())
		}
		for range 30 {
			run()
		}
		for range 30 {
			warm = append(warm, run())
		}
	}
	slices.Sort(rested)
	slices.Sort(warm)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(rested[len(rested)/2]*1e6/products, "rested-us")
	b.ReportMetric(warm[len(warm)/2]*1e6/products, "warm-us")
}
