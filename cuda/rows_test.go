package cuda

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// prove runs a case with its buffers side by side and at odd places, and compares what
// they hold with the truth.
func prove(t *testing.T, dev pass.Device, c cases.Case) {
	t.Helper()
	wanted, err := c.Want()
	require.NoError(t, err)
	for _, l := range []cases.Layout{cases.Dense, cases.Awkward} {
		proveLaid(t, dev, c, l, wanted)
	}
}

func proveLaid(t *testing.T, dev pass.Device, c cases.Case, l cases.Layout, wanted []cases.Tensor) {
	t.Helper()
	ctx := context.Background()
	placed, err := cases.Place(c, l, 1)
	require.NoError(t, err)
	s, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer s.Close()
	params, buffers := map[string]pass.Param{}, map[string]pass.Buffer{}
	for _, p := range c.Params {
		params[p.Field], err = dev.Load(ctx, p.Weights)
		require.NoError(t, err)
	}
	for _, p := range placed.Buffers {
		buffers[p.Name], err = s.Alloc(p.Type, len(p.Words))
		require.NoError(t, err)
		require.NoError(t, s.Write(ctx, buffers[p.Name].View(), hostData(p.Type, p.Words)))
	}
	op, err := placed.Op(buffers, params, nil)
	require.NoError(t, err)
	rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) { p.Do(op) })
	require.NoError(t, err)
	_, err = rec.Run(ctx)
	require.NoError(t, err)
	for _, p := range placed.Buffers {
		data := hostData(p.Type, make([]uint32, len(p.Words)))
		require.NoError(t, s.Read(ctx, buffers[p.Name].View(), data))
		words, ok := data.([]uint32)
		if !ok {
			words = cases.F32("", data.([]float32)).Words
		}
		require.NoError(t, placed.Check(p.Name, words, wanted), "%s, %v", c.Name, l)
	}
}

// hostData returns words as host data of a buffer's type.
func hostData(t pass.DType, words []uint32) any {
	if t == pass.U32 {
		return words
	}
	return cases.Tensor{Type: pass.F32, Words: words}.Float32s()
}

// rowCase is a case of an op that makes rows of rows of X, which lie around an offset.
func rowCase(op pass.Op, batch, rows, cols int, offset float32) cases.Case {
	c := cases.Case{Name: fmt.Sprintf("%s-%dx%dx%d", op.Name(), batch, rows, cols), Op: op, Outputs: cases.DefaultOutputs(op)}
	c.Inputs = []cases.Tensor{cases.F32("X", cases.Recipe(c.Name, 1, batch*rows*cols, 2, offset), batch, rows, cols)}
	return c
}

func normCase(op pass.Op, batch, rows, cols int, offset float32) cases.Case {
	c := rowCase(op, batch, rows, cols, offset)
	c.Params = []cases.Param{{Field: "W", Weights: pass.NormWeights{Gain: cases.Recipe("gain", 1, cols, 1, 1), Bias: cases.Recipe("bias", 1, cols, 1, 0)}}}
	return c
}

// put replaces elements of X.
func put(c cases.Case, v float32, places ...int) cases.Case {
	for _, i := range places {
		c.Inputs[0].Words[i] = math.Float32bits(v)
	}
	return c
}

// Rows of lengths that networks have and cases do not: for which other kernels are there.
func TestLongRows(t *testing.T) {
	t.Parallel()
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	inf, nan := float32(math.Inf(-1)), float32(math.NaN())
	var all []cases.Case
	for _, cols := range []int{500, 1281, 4097} {
		all = append(all, normCase(pass.LayerNorm{Rows: 3, Cols: cols}, 1, 3, cols, 1000))
	}
	for _, cols := range []int{513, 4097} {
		all = append(all, put(rowCase(pass.L2Norm{Batch: 2, Rows: 1, Cols: cols}, 2, 1, cols, 0), 3e38, cols/2))
	}
	for _, cols := range []int{513, 1537, 8193, 12290} {
		c := rowCase(pass.Softmax{Rows: 4, Cols: cols}, 1, 4, cols, 0)
		c = put(put(c, inf, 5, cols-1), nan, 2*cols-1) // the second row is spoilt
		for i := range cols {
			c = put(c, inf, 2*cols+i)
		}
		all = append(all, c)
		c.Op = pass.LogSoftmax(c.Op.(pass.Softmax))
		c.Name, c.Outputs = "log"+c.Name, cases.DefaultOutputs(c.Op)
		all = append(all, c)
	}
	for _, cols := range []int{2049, 8193} {
		c := rowCase(pass.Argmax{Rows: 3, Cols: cols}, 1, 3, cols, 0)
		all = append(all, put(put(c, 7, cols-1, cols-2, 3*cols-1), nan, 0, 2*cols))
	}
	for _, c := range all {
		prove(t, dev, c)
	}
}

// A second output of rows that a block shares, turned in vectors where heads allow it.
func TestLongRowsAreTurned(t *testing.T) {
	t.Parallel()
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	for _, head := range []int{20, 18} {
		for _, heads := range []int{8, 70, 240} {
			op := pass.LayerNorm{Batch: 2, Rows: 2, Cols: heads * head, Heads: heads, Pos: pass.Const(3)}
			c := normCase(op, 2, 2, heads*head, 0)
			c.Outputs = []string{"Y", "Rotated"}
			c.Params = append(c.Params, cases.Param{Field: "Table", Weights: pass.RopeWeights{Positions: 9, Rot: 16, Base: 100}})
			prove(t, dev, c)
		}
	}
}

// Items that several blocks share.
func TestChunksOfTime(t *testing.T) {
	t.Parallel()
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	group := func(batch, rows, cols int) cases.Case {
		lengths := []int{rows, rows * 3 / 5, 0}[:batch]
		return normCase(pass.GroupNorm{Batch: batch, Rows: rows, Cols: cols, Lengths: pass.Fixed(lengths...)}, batch, rows, cols, 100)
	}
	pool := func(op pass.PoolNorm, batch, rows, cols int) cases.Case {
		op.Batch, op.Rows, op.Cols = batch, rows, cols
		op.Lengths = pass.Fixed([]int{rows, rows * 3 / 5, 0}[:batch]...)
		return normCase(op, batch, rows, cols, 5)
	}
	for _, c := range []cases.Case{
		group(3, 40, 300),
		group(1, 2300, 2),
		group(2, 3, 4200),
		pool(pass.PoolNorm{}, 2, 9000, 1),
		pool(pass.PoolNorm{Pool: 3, Abs: true, Epilogue: pass.Leaky(0.01)}, 3, 1000, 33),
		pool(pass.PoolNorm{Pool: 2}, 1, 5000, 3),
		pool(pass.PoolNorm{Pool: 5}, 2, 2500, 12),
		pool(pass.PoolNorm{}, 1, poolChunks*128+200, 17), // chunks of more than a thread holds
	} {
		prove(t, dev, c)
	}
}

func TestChunks(t *testing.T) {
	t.Parallel()
	for _, rows := range []int{1, 16, 2499, 160_000, 57_600_000} {
		for _, cols := range []int{1, 2, 5, 32, 33, 288, 5000} {
			chunk := groupChunk(rows, cols)
			require.LessOrEqual(t, ceilDiv(rows, chunk), groupChunks, "%d × %d", rows, cols)
			across, chunk := poolChunk(rows, cols)
			require.LessOrEqual(t, ceilDiv(rows, chunk), poolChunks, "%d × %d", rows, cols)
			require.Zero(t, chunk%(poolThreads/across*poolRowsEach), "whole groups of rows")
			require.True(t, across == 32 || across >= cols && across < 2*cols, "channels side by side: %d of %d", across, cols)
		}
	}
	require.Equal(t, 4, groupChunk(3000, 1000))
	require.Equal(t, 14, groupChunk(2499, 288))
}

// Stretches of images, and masks of many frames.
func TestWideImages(t *testing.T) {
	t.Parallel()
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	for _, width := range []int{kernels.StatsHeld, kernels.StatsHeld + 1, 300} {
		op := pass.StatsPool{Batch: 2, Height: 2, Width: width, Channels: 35, Count: 2, Frames: 700}
		prove(t, dev, cases.Case{Name: fmt.Sprintf("statspool-%d", width), Op: op, Outputs: []string{"Y"}, Inputs: []cases.Tensor{
			cases.F32("X", cases.Recipe("image", 1, 2*2*width*35, 1, 3), 2, 2*width, 35),
			cases.F32("Masks", cases.Recipe("masks", 1, 2*2*700, 0.5, 0.5), 2, 2, 700),
		}})
	}
}

// Transforms that a block makes one of, those with large factors, and many short frames,
// of which a warp makes several.
func TestTransforms(t *testing.T) {
	t.Parallel()
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	for _, c := range []struct{ fft, hop, samples int }{{2048, 700, 2800}, {4094, 1000, 5100}, {4096, 2000, 4100}, {2, 1, 20_000}} {
		w := pass.MelWeights{Window: cases.Recipe("window", 1, c.fft, 1, 0), FFT: c.fft, Hop: c.hop, Mels: 2,
			Bank: cases.Recipe("bank", 1, 2*(c.fft/2+1), 0.5, 1)}
		prove(t, dev, cases.Case{Name: fmt.Sprintf("logmel-%d", c.fft), Op: pass.LogMel{Samples: c.samples}, Outputs: []string{"Y"},
			Params: []cases.Param{{Field: "W", Weights: w}},
			Inputs: []cases.Tensor{cases.F32("X", cases.Recipe("sound", 1, c.samples, 0.25, 0), 1, 1, c.samples)}})
	}
}

func TestRadices(t *testing.T) {
	t.Parallel()
	for half := 1; half <= 2048; half++ {
		product := 1
		for _, r := range radicesOf(half) {
			product *= r
		}
		require.Equal(t, half, product)
		require.LessOrEqual(t, len(radicesOf(half)), kernels.MelRadices)
	}
	require.Equal(t, []int{8, 8, 4}, radicesOf(256))
	require.Equal(t, []int{8, 5, 5}, radicesOf(200))
	require.Equal(t, []int{8, 8, 8, 4}, radicesOf(2048))
	require.Equal(t, []int{23, 89}, radicesOf(2047))
}

// What kernels cannot count is refused.
func TestCounts(t *testing.T) {
	t.Parallel()
	for n, fine := range map[int]bool{1: true, 1<<32 - 1: true, 1 << 32: false, 1<<33 + 1: false} {
		k := &call{}
		k.divisor(n)
		require.Equal(t, fine, k.err == nil, n)
		if !fine {
			require.ErrorIs(t, k.err, pass.ErrUnsupported)
		}
	}
}

// Items and rows without gaps count as one row.
func TestFlat(t *testing.T) {
	t.Parallel()
	dense := pass.View{RowStride: 5, BatchStride: 15}
	gaps := pass.View{RowStride: 6, BatchStride: 18}
	apart := pass.View{RowStride: 5, BatchStride: 16}
	f := field{2, 3, 5}
	require.Equal(t, field{1, 1, 30}, f.flat(dense, dense))
	require.Equal(t, field{1, 6, 5}, f.flat(dense, gaps))
	require.Equal(t, f, f.flat(apart, dense))
	require.Equal(t, field{1, 1, 15}, field{1, 3, 5}.flat(apart))
	long := field{1, 3, longest / 2}
	require.Equal(t, long, long.flat(pass.View{RowStride: longest / 2}), "more quads than 32 bits count")
}
