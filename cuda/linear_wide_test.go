package cuda

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// Results of wide tiles, whole and cut off, with each epilogue that is written from registers,
// and with columns that are given again: where all numbers are near 1, and where rows and columns
// have scales that are not, which must not be multiplied in any order. Tiles of all widths, and
// in clusters or not, give the same bits: which of them is taken depends on the multiprocessors
// that there are.
func TestWideResults(t *testing.T) {
	library(t, 90)
	const rows, k, n = 140, 72, 300
	silu := func(v, _ float64) float64 { return v / (1 + math.Exp(-v)) }
	epilogues := []struct {
		name  string
		is    pass.Epilogue
		of    func(v, was float64) float64
		again int // columns
	}{
		{"none", pass.None, func(v, _ float64) float64 { return v }, 0},
		{"relu", pass.ReLU, func(v, _ float64) float64 { return max(v, 0) }, 0},
		{"leaky", pass.Leaky(0.1), func(v, _ float64) float64 { return max(v, 0) + float64(float32(0.1))*min(v, 0) }, 0},
		{"silu", pass.SiLU, silu, 0},
		{"gelu", pass.GELU, func(v, _ float64) float64 { return v / 2 * math.Erfc(-v/math.Sqrt2) }, 0},
		{"residual", pass.Residual(0.5), func(v, was float64) float64 { return was + v/2 }, 0},
		{"silu, and columns again", pass.SiLU, silu, 212},
	}
	for _, far := range []bool{false, true} {
		a := cases.Recipe("a", 1, rows*k, 1, 0)
		w, err := cases.Encode("w", pass.F16, cases.Recipe("w", 1, n*k, 0.2, 0), n, k).Float32s()
		require.NoError(t, err)
		was, bias, dual := cases.Recipe("was", 1, rows*n, 1, 0), cases.Recipe("bias", 1, n, 1, 0), cases.Recipe("dual", 1, n, 1, 0)
		if far {
			for i := range a { // by quarters of a tile
				a[i] *= float32(math.Ldexp(1, []int{0, 112, -100, 0}[i/k/32%4]))
			}
			for i := range w {
				w[i] *= float32(math.Ldexp(1, []int{0, -20, -70, 8}[i/k%4]))
			}
		}
		sums, size := make([]float64, rows*n), make([]float64, rows*n)
		for r := range rows {
			for c := range n {
				x, y := 0.0, 0.0
				for i := range k {
					p, q := float64(a[r*k+i]), float64(w[c*k+i])
					sums[r*n+c] += p * q
					x, y = x+p*p, y+q*q
				}
				sums[r*n+c] += float64(bias[c])
				size[r*n+c] = math.Sqrt(x)*math.Sqrt(y) + math.Abs(float64(bias[c])) + math.Abs(float64(was[r*n+c]))
			}
		}
		bits := map[string][]float32{}
		for _, s := range kernels.WideShapes {
			way, kind, weight, bound := tileChoice{wide: s}.String(), pass.Exact, pass.F32, 2e-6
			switch {
			case s.Products == 1:
				kind, bound = pass.Fast, 1e-3
			case s.Products == 2:
				weight = pass.F16
				if far { // beyond what halves hold
					continue
				}
			}
			dev := emulated(t, drivertest.Hopper(), Config{Ways: map[string]string{"": way}})
			ses, err := dev.NewSession(pass.SessionConfig{})
			require.NoError(t, err)
			for _, e := range epilogues {
				param, err := dev.Load(t.Context(), pass.LinearWeights{
					Parts: []pass.Tensor{cases.Encode("w", weight, w, n, k)}, Bias: bias, Dual: dual[:e.again]})
				require.NoError(t, err)
				columns := n + e.again
				var in, before pass.Input
				var out pass.Output
				rec, err := ses.Record(t.Context(), pass.RecordOptions{Math: kind}, func(p pass.Pass) {
					in, before = p.Input(pass.F32, rows*k), p.Input(pass.F32, rows*n)
					c := p.Temp(pass.F32, rows*columns)
					if e.again == 0 {
						p.Do(pass.Copy{From: before.View(), To: c.View(), Rows: rows, Cols: n})
					}
					p.Do(pass.Gemm{A: in.View(), W: param, C: c.View(), Rows: rows, Columns: pass.Span{To: columns}, Epilogue: e.is})
					out = p.Output(c.View(), rows*columns)
				})
				require.NoError(t, err)
				run, err := rec.Run(t.Context(), in.F32(a), before.F32(was))
				require.NoError(t, err)
				got := make([]float32, rows*columns)
				require.NoError(t, run.ReadF32(out, got))
				run.Close()
				worst := 0.0
				for i, v := range got {
					r, c := i/columns, i%columns
					if c < n {
						i = r*n + c
						worst = max(worst, math.Abs(float64(v)-e.of(sums[i], float64(was[i])))/size[i])
						continue
					}
					i = r*n + c - n
					more := float64(dual[c-n]) - float64(bias[c-n])
					worst = max(worst, math.Abs(float64(v)-sums[i]-more)/(size[i]+math.Abs(more)))
				}
				require.LessOrEqual(t, worst, bound, "%s, %s, far %v", way, e.name, far)
				alike := fmt.Sprint(s.Products, e.name)
				if bits[alike] == nil {
					bits[alike] = got
				}
				require.Equal(t, bits[alike], got, "%s, %s, far %v", way, e.name, far)
				require.NoError(t, rec.Close())
			}
			require.Equal(t, way, dev.(Tunable).Boundaries()[0].Choice)
			require.NoError(t, dev.Close())
		}
	}
}

// A tile of 240 columns ends within a piece of 32, of which it must leave the other half alone:
// also where the next tile was there before, as on two multiprocessors, of which the first does
// the first and the third tile.
func TestWideTilesStayWithin(t *testing.T) {
	library(t, 90)
	const rows, k, n, last = 20, 72, 3 * 240, 16
	gpu := drivertest.Hopper()
	gpu.SMs = 2
	a, w, second := cases.Recipe("a", 1, rows*k, 1, 0), cases.Recipe("w", 1, n*k, 0.2, 0), cases.Recipe("v", 1, last*n, 0.1, 0)
	multiply := func(a, w []float64, n, k int) []float64 {
		c := make([]float64, rows*n)
		for i := range c {
			for j := range k {
				c[i] += a[i/n*k+j] * w[i%n*k+j]
			}
		}
		return c
	}
	wide := func(x []float32) (y []float64) {
		for _, v := range x {
			y = append(y, float64(v))
		}
		return y
	}
	sums := multiply(wide(a), wide(w), n, k)
	relu := slices.Clone(sums)
	for i, v := range relu {
		relu[i] = max(v, 0)
	}
	for _, c := range []struct {
		name  string
		is    pass.Epilogue
		dual  bool
		next  bool // a product of the result, which is halves then
		value []float64
	}{
		{"plain", pass.None, false, false, sums},
		{"pieces", pass.ReLU, false, false, relu},
		{"again", pass.None, true, false, sums},
		{"halves", pass.None, false, true, multiply(sums, wide(second), last, n)},
		{"halves of pieces", pass.ReLU, false, true, multiply(relu, wide(second), last, n)},
	} {
		dev := emulated(t, gpu, Config{Ways: map[string]string{fmt.Sprintf("product %d×%d×%d in 1", rows, n, k): "wide 128x240"}})
		weights := pass.LinearWeights{Parts: []pass.Tensor{cases.Encode("w", pass.F32, w, n, k)}}
		if c.dual {
			weights.Dual = make([]float32, n)
		}
		first, err := dev.Load(t.Context(), weights)
		require.NoError(t, err)
		behind, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{cases.Encode("v", pass.F32, second, last, n)}})
		require.NoError(t, err)
		s, err := dev.NewSession(pass.SessionConfig{})
		require.NoError(t, err)
		columns := n + len(weights.Dual)
		var in pass.Input
		var out pass.Output
		rec, err := s.Record(t.Context(), pass.RecordOptions{Math: pass.Fast}, func(p pass.Pass) {
			in = p.Input(pass.F32, rows*k)
			h, y := p.Temp(pass.F32, rows*columns), p.Temp(pass.F32, rows*last)
			p.Do(pass.Gemm{A: in.View(), W: first, C: h.View(), Rows: rows, Columns: pass.Span{To: columns}, Epilogue: c.is})
			if c.next {
				p.Do(pass.Gemm{A: h.View(), W: behind, C: y.View(), Rows: rows})
				out = p.Output(y.View(), rows*last)
			} else {
				out = p.Output(h.View(), rows*columns)
			}
		})
		require.NoError(t, err)
		var dump strings.Builder
		require.NoError(t, rec.Dump(&dump))
		require.Equal(t, c.next, strings.Contains(dump.String(), "halves alone"), dump.String())
		run, err := rec.Run(t.Context(), in.F32(a))
		require.NoError(t, err)
		got := make([]float32, len(c.value))
		if c.dual {
			got = make([]float32, rows*columns)
		}
		require.NoError(t, run.ReadF32(out, got))
		run.Close()
		width := len(c.value) / rows
		for i := range got {
			at := i
			if c.dual {
				at = i/columns*n + i%columns%n
			}
			require.InDelta(t, c.value[at], got[i], 0.02, "%s: row %d, column %d", c.name, i/width, i%width)
		}
		require.NoError(t, dev.Close())
	}
}

// A neatDriver refuses maps whose items overlap, as CUDA's documentation has it.
type neatDriver struct {
	hostDriver
	overlap bool // may be
}

func (d neatDriver) EncodeTensorMap(t driver.TensorMap) ([128]byte, error) {
	for i := 1; i < len(t.Stride) && !d.overlap; i++ {
		if least := t.Stride[i-1] * t.Size[i]; t.Stride[i] < least {
			return [128]byte{}, fmt.Errorf("stride %d of dimension %d: want at least %d", t.Stride[i], i+1, least)
		}
	}
	return d.hostDriver.EncodeTensorMap(t)
}

// Wide tiles write results from registers if nothing is asked of rows one by one, and have rows
// of one item alone: convolutions without lengths ask nothing, and items whose rows follow each
// other are one, whose rows a map of tensors describes without any overlap.
func TestWideTilesAreAskedLittle(t *testing.T) {
	t.Parallel()
	const batch, k, n = 130, 64, 128
	rows := func(name string, n, k int) pass.Tensor {
		return cases.Encode(name, pass.F32, cases.Recipe(name, 1, n*k, 1, 0), n, k)
	}
	cell := pass.LSTMCell{Input: rows("input", 8*n, k), Hidden: rows("hidden", 8*n, 2*n)}
	linear := pass.LinearWeights{Parts: []pass.Tensor{rows("w", n, k)}}
	conv := pass.ConvWeights{Weight: cases.Encode("w", pass.F32, cases.Recipe("w", 1, n*k*3, 1, 0), n, k, 3)}
	for _, c := range []struct {
		name  string
		w     pass.Weights
		op    func(x, y pass.View, w pass.Param) pass.Op
		items int  // rows of an item
		long  bool // rows are asked
	}{
		{"items that follow each other", linear, func(x, y pass.View, w pass.Param) pass.Op {
			return pass.Gemm{A: x, W: w, C: y, Batch: batch, Rows: 2}
		}, 2 * batch, false},
		{"items apart", linear, func(x, y pass.View, w pass.Param) pass.Op {
			y.RowStride, y.BatchStride = n, 3*n
			return pass.Gemm{A: x, W: w, C: y, Batch: batch, Rows: 2}
		}, 2, false},
		{"steps of a recurrence", pass.LSTMWeights{Layers: [][]pass.LSTMCell{{cell}}}, func(x, y pass.View, w pass.Param) pass.Op {
			return pass.LSTM{X: x, W: w, Y: y, Batch: 20, Time: batch / 10}
		}, 2 * batch, false},
		{"steps of a convolution", conv, func(x, y pass.View, w pass.Param) pass.Op {
			return pass.Conv1D{X: x, W: w, Y: y, Batch: 1, In: 2 * batch, PadLeft: 1, PadRight: 1}
		}, 2 * batch, false},
		{"steps up to a length", conv, func(x, y pass.View, w pass.Param) pass.Op {
			return pass.Conv1D{X: x, W: w, Y: y, Batch: 1, In: 2 * batch, PadLeft: 1, PadRight: 1, Lengths: pass.Fixed(batch)}
		}, 2 * batch, true},
	} {
		var mu sync.Mutex
		var tiles []kernels.Tile
		_, overlap := c.w.(pass.ConvWeights)
		drv := neatDriver{hostDriver{drivertest.New(drivertest.Config{Kernel: func(name string, l driver.Launch) error {
			if strings.HasPrefix(name, "tile_wide") {
				mu.Lock()
				defer mu.Unlock()
				tiles = append(tiles, (*kernels.WideTile)(unsafe.Pointer(&l.Args[0])).Tile)
			}
			return nil
		}})}, overlap}
		cfg, err := Config{Ways: map[string]string{"": "wide 128x64", "conv1d exact 260×64to128 k3s1 F32": "tiles"}}.resolve()
		require.NoError(t, err)
		dev, err := open(t.Context(), drv, cfg)
		require.NoError(t, err)
		param, err := dev.Load(t.Context(), c.w)
		require.NoError(t, err)
		s, err := dev.NewSession(pass.SessionConfig{})
		require.NoError(t, err)
		x, err := s.Alloc(pass.F32, 2*batch*k)
		require.NoError(t, err)
		y, err := s.Alloc(pass.F32, 4*batch*n)
		require.NoError(t, err)
		rec, err := s.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) { p.Do(c.op(x.View(), y.View(), param)) })
		require.NoError(t, err, c.name)
		run, err := rec.Run(t.Context())
		require.NoError(t, err)
		run.Close()
		require.NoError(t, dev.Close())
		require.Len(t, tiles, 1, c.name)
		require.EqualValues(t, c.items, tiles[0].ItemRows, c.name)
		require.Equal(t, c.long, tiles[0].LengthStride != 0, c.name)
	}
}

// Products know whether another behind them reads their left operand, for the second cache:
// here the first does, and what is written there afterwards is another.
func TestLeftOperandsThatAreReadAgain(t *testing.T) {
	t.Parallel()
	const rows, n = 130, 64
	var mu sync.Mutex
	var last []uint32
	drv := hostDriver{drivertest.New(drivertest.Config{Kernel: func(name string, l driver.Launch) error {
		if strings.HasPrefix(name, "tile_wide") {
			mu.Lock()
			defer mu.Unlock()
			last = append(last, (*kernels.WideTile)(unsafe.Pointer(&l.Args[0])).Tile.Last)
		}
		return nil
	}})}
	cfg, err := Config{Ways: map[string]string{"": "wide 128x64"}}.resolve()
	require.NoError(t, err)
	dev, err := open(t.Context(), drv, cfg)
	require.NoError(t, err)
	defer dev.Close()
	w, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{weights(n, n)}})
	require.NoError(t, err)
	s, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer s.Close()
	rec, err := s.Record(t.Context(), pass.RecordOptions{Math: pass.Fast}, func(p pass.Pass) {
		x := p.Temp(pass.F32, rows*n).View()
		product := func() {
			y := p.Temp(pass.F32, rows*n)
			p.Do(pass.Gemm{A: x, C: y.View(), W: w, Rows: rows})
			p.Output(y.View(), rows*n)
		}
		p.Do(pass.Fill{To: x, Rows: rows, Cols: n})
		product()
		product()
		p.Do(pass.Fill{To: x, Rows: rows, Cols: n, Value: 1})
		product()
	})
	require.NoError(t, err)
	run, err := rec.Run(t.Context())
	require.NoError(t, err)
	run.Close()
	require.Equal(t, []uint32{0, 1, 1}, last)
}
