package cuda

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// Every way to divide a product, on the cases of Gemm. The rule takes most of them for
// large shapes only.
func TestGemmWays(t *testing.T) {
	library(t, 90)
	for _, way := range []string{"128x128", "wide 128x256, clusters of 2", "wide 128x64"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			passtest.Config{Ops: []string{"gemm"}, BySize: true}.Run(t, func(t testing.TB) pass.Device {
				return emulated(t, drivertest.Hopper(), Config{Ways: map[string]string{"": way}})
			})
		})
	}
}

// The kernels as they are compiled for devices before capability 8.0.
func TestGemmOnTuring(t *testing.T) {
	library(t, 75)
	passtest.Config{Ops: []string{"gemm"}, BySize: true}.Run(t, func(t testing.TB) pass.Device {
		return emulated(t, drivertest.Turing(), Config{})
	})
}

// Products of several tiles: a block of wide tiles goes through more than one, and through
// its stages more than once; tiles are more than a group down the rows.
func TestGemmOfManyTiles(t *testing.T) {
	library(t, 90)
	gpu := drivertest.Hopper()
	gpu.SMs = 2
	c := func(rows, k, n int) cases.Case {
		return cases.Case{
			Name: fmt.Sprintf("%dx%dx%d", rows, k, n), Op: pass.Gemm{Rows: rows},
			Inputs:  []cases.Tensor{values("A", "normal", 1, rows, k)},
			Params:  []cases.Param{{Field: "W", Weights: pass.LinearWeights{Parts: []pass.Tensor{weights(n, k)}}}},
			Outputs: []string{"C"},
		}
	}
	for _, test := range []struct {
		c    cases.Case
		math pass.Math
		ways []string
	}{
		{c(300, 650, 300), pass.Exact, append(wideNames(3), "128x128")},
		{c(300, 650, 300), pass.Fast, append(wideNames(1), "64x64")},
		{c(100, 2100, 70), pass.Exact, []string{"64x64, sums in 4 parts"}},
		{c(1100, 40, 70), pass.Fast, []string{"128x128", "wide 128x64"}},
		{c(400, 40, 30), pass.Exact, []string{"128x32"}},
		{c(8, 2000, 600), pass.Fast, []string{"a column a warp", "four columns a warp"}},
		{c(3, 5000, 300), pass.Exact, []string{"a column a warp", "four columns a warp"}},
		{c(1, 13000, 100), pass.Exact, []string{"a column a warp", "four columns a warp"}},
	} {
		want, err := test.c.Truth()
		require.NoError(t, err)
		for _, way := range test.ways {
			var first []float32
			for range 2 {
				dev := emulated(t, gpu, Config{Ways: map[string]string{"": way}})
				got, err := compute(t.Context(), dev, test.c, test.math)
				require.NoError(t, err)
				bound := map[pass.Math]float64{pass.Exact: 5e-7, pass.Fast: 5e-4}[test.math]
				require.LessOrEqual(t, distance(got, want[0].Float32s()), bound, "%s, %v, %s", test.c.Name, test.math, way)
				if first == nil {
					first = got
				}
				require.Equal(t, first, got, "the same bits again: %s, %v, %s", test.c.Name, test.math, way)
				require.Condition(t, func() bool {
					return slices.ContainsFunc(dev.(Tunable).Boundaries(), func(b Boundary) bool { return b.Choice == way })
				}, "%s is what was computed", way)
				require.NoError(t, dev.Close())
			}
		}
	}
}

// wideNames returns the names of the wide tiles of so many products.
func wideNames(products int) (names []string) {
	for _, s := range kernels.WideShapes {
		if s.Products == products {
			names = append(names, tileChoice{wide: s}.String())
		}
	}
	return names
}

// Rows that are not multiples of 16 bytes, several tensors and blocks of Q8_0 reach the
// device as they should, piece by piece as staging takes them.
func TestMatrixBytes(t *testing.T) {
	t.Parallel()
	d := bareDevice(t)
	for _, typ := range []pass.DType{pass.F32, pass.F16, pass.BF16, pass.Q8_0} {
		k := 37
		if typ == pass.Q8_0 {
			k = 64
		}
		first := cases.Encode("a", typ, cases.Recipe("a", 1, 3*k, 1, 0), 3, k)
		second := cases.Encode("b", typ, cases.Recipe("b", 1, 2*k, 1, 0), 2, k)
		w := pass.LinearWeights{Name: "w", Parts: []pass.Tensor{first, second}, Dual: []float32{1, 2}}
		shape, err := w.Shape()
		require.NoError(t, err)
		p, err := loadLinear(t.Context(), d, w, shape.(pass.LinearShape))
		require.NoError(t, err)
		file := append(tensorBytes(t, first), tensorBytes(t, second)...)
		got := make([]byte, 5*p.stride*elementBytes(typ))
		require.NoError(t, d.fetch(t.Context(), got, p.values, 0))
		require.Zero(t, p.stride*elementBytes(typ)%16)
		if typ == pass.Q8_0 {
			scales := make([]byte, 5*2*2)
			require.NoError(t, d.fetch(t.Context(), scales, p.scales, 0))
			for i := range 10 {
				require.Equal(t, file[34*i:34*i+2], scales[2*i:2*i+2])
				require.Equal(t, file[34*i+2:34*i+34], got[32*i:32*i+32])
			}
		} else {
			used, size := k*elementBytes(typ), p.stride*elementBytes(typ)
			for i := range 5 {
				require.Equal(t, file[used*i:used*i+used], got[size*i:size*i+used])
				require.Equal(t, make([]byte, size-used), got[size*i+used:size*i+size], "zeros at the end of row %d", i)
			}
		}
		p.Free()
	}
}

// bareDevice returns a device that no backend drives.
func bareDevice(t *testing.T) *device {
	t.Helper()
	drv := hostDriver{drivertest.New(drivertest.Config{})}
	gpus, err := list(t.Context(), drv)
	require.NoError(t, err)
	d := &device{
		drv: drv, gpu: gpus[0], thread: driver.NewThread(drv), watchdog: time.Minute,
		log: slog.New(slog.DiscardHandler), staging: newStaging(),
	}
	require.NoError(t, d.start(Config{}))
	t.Cleanup(func() {
		require.NoError(t, d.Close())
		require.Empty(t, drv.Leaks())
	})
	return d
}

func tensorBytes(t testing.TB, x pass.Tensor) []byte {
	b, err := io.ReadAll(io.NewSectionReader(x.Data, 0, x.Bytes()))
	require.NoError(t, err)
	return b
}

// A form of weights that programs use stays when another is added.
func TestNarrowedOnce(t *testing.T) {
	library(t, 90)
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	c := cases.Case{Op: pass.Gemm{Rows: 20}, Inputs: []cases.Tensor{values("A", "normal", 1, 20, 33)}, Outputs: []string{"C"}}
	w := pass.LinearWeights{Parts: []pass.Tensor{weights(17, 33)}}
	p, err := dev.Load(t.Context(), w)
	require.NoError(t, err)
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	a, err := ses.Alloc(pass.F32, 20*33)
	require.NoError(t, err)
	require.NoError(t, ses.Write(t.Context(), a.View(), c.Inputs[0].Float32s()))
	out, err := ses.Alloc(pass.F32, 20*17)
	require.NoError(t, err)
	record := func(math pass.Math) pass.Recording {
		rec, err := ses.Record(t.Context(), pass.RecordOptions{Math: math}, func(q pass.Pass) {
			q.Do(pass.Gemm{A: a.View(), W: p, C: out.View(), Rows: 20})
		})
		require.NoError(t, err)
		return rec
	}
	run := func(rec pass.Recording) []float32 {
		_, err := rec.Run(context.Background())
		require.NoError(t, err)
		got := make([]float32, 20*17)
		require.NoError(t, ses.Read(t.Context(), out.View(), got))
		return got
	}
	fast := record(pass.Fast)
	before := run(fast)
	exact := record(pass.Exact)
	require.NotEqual(t, before, run(exact))
	require.Equal(t, before, run(fast))
}

// mapless is a driver that makes no tensor maps.
type mapless struct{ hostDriver }

func (mapless) EncodeTensorMap(driver.TensorMap) ([128]byte, error) {
	return [128]byte{}, drivertest.Error("EncodeTensorMap", driver.InvalidValue)
}

// Operands that the driver makes no map of are multiplied in other tiles.
func TestProductWithoutMaps(t *testing.T) {
	library(t, 90)
	cfg, err := Config{Ways: map[string]string{"": "wide 128x64"}}.resolve()
	require.NoError(t, err)
	dev, err := open(t.Context(), mapless{emulatedDriver(t, drivertest.Hopper())}, cfg)
	require.NoError(t, err)
	defer dev.Close()
	c := cases.Case{
		Name: "c", Op: pass.Gemm{Rows: 130}, Inputs: []cases.Tensor{values("A", "normal", 1, 130, 40)},
		Params: []cases.Param{{Field: "W", Weights: pass.LinearWeights{Parts: []pass.Tensor{weights(30, 40)}}}}, Outputs: []string{"C"},
	}
	want, err := c.Truth()
	require.NoError(t, err)
	got, err := compute(t.Context(), dev, c, pass.Exact)
	require.NoError(t, err)
	require.LessOrEqual(t, distance(got, want[0].Float32s()), 5e-7)
}

func TestTileWays(t *testing.T) {
	t.Parallel()
	hopper := func(string) bool { return true }
	none := func(name string) bool { return !strings.Contains(name, "wide") }
	whole := prepared{low: region{bytes: 0}}
	split := prepared{low: region{bytes: 2}}
	for _, c := range []struct {
		rows, columns, depth int
		a                    prepared
		low                  bool // of the weights
		has                  func(string) bool
		want                 string
	}{
		{4096, 4096, 4096, whole, false, hopper, "wide 128x256, clusters of 2"},
		{4096, 4096, 4096, split, true, hopper, "wide 128x128, clusters of 2"},
		{4096, 4096, 4096, whole, false, none, "128x128"},
		{1500, 1536, 384, whole, false, hopper, "wide 128x160, clusters of 4"},
		{1500, 5120, 1280, whole, false, hopper, "wide 128x240, clusters of 2"},
		{1500, 1280, 5120, whole, false, hopper, "wide 128x128, clusters of 4"},
		{1500, 1280, 5120, split, false, hopper, "wide 128x128"},
		{251, 768, 3072, whole, false, hopper, "wide 128x64"},
		{126, 1024, 4096, split, true, hopper, "wide 128x64"},
		{32, 384, 1536, whole, false, hopper, "wide 128x64"},
		{32, 384, 1536, split, false, hopper, "64x64, sums in 3 parts"},
		{32, 512, 2048, whole, false, hopper, "64x64, sums in 4 parts"},
		{64, 1280, 1280, whole, false, none, "64x64, sums in 2 parts"},
		{64, 1280, 1280, whole, false, hopper, "wide 128x64"},
		{9, 1280, 5120, whole, false, hopper, "64x64, sums in 6 parts"},
		{100000, 32, 288, whole, false, none, "128x32"},
		{16, 64, 64, whole, false, none, "64x64"},
	} {
		p := product{a: c.a, items: 1, lines: 1, width: c.rows, columns: pass.Span{To: c.columns}, segments: 1, depth: c.depth}
		if c.low {
			p.w.low = 1
		}
		ways, rule := tileWays(&p, 132, c.has)
		require.Equal(t, c.want, ways[0].String(), "%d×%d×%d: %s", c.rows, c.columns, c.depth, rule)
		names := map[string]bool{}
		for _, w := range ways {
			require.False(t, names[w.String()], "%v twice", w)
			names[w.String()] = true
		}
	}
}

// The table knows the shared memory that the kernels lay out.
func TestTileShared(t *testing.T) {
	t.Parallel()
	for _, capability := range []int{75, 80, 86, 90} {
		limit := map[int]int{75: 64 << 10, 80: 163 << 10, 86: 99 << 10, 90: 227 << 10}[capability]
		for _, tile := range [][2]int{{128, 128}, {128, 32}, {64, 64}} {
			for products := 1; products <= 3; products++ {
				require.LessOrEqual(t, kernels.TileShared(tile[0], tile[1], products, capability), limit)
			}
		}
	}
	for _, s := range kernels.WideShapes {
		require.LessOrEqual(t, s.Shared(), 227<<10, s.Name())
	}
}
