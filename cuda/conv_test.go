package cuda

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
	"github.com/tandem-gpu/tandem/pass/passtest"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// Cases are so small that the rule computes their convolutions in FP32.
func TestConvolutionsOnTensorCores(t *testing.T) {
	for _, gpu := range []drivertest.Profile{drivertest.Hopper(), drivertest.Turing()} {
		math := []pass.Math{pass.Exact, pass.Fast}
		if gpu.Capability < 80 {
			math = math[:1]
		}
		t.Run(gpu.Name, func(t *testing.T) {
			t.Parallel()
			library(t, gpu.Capability)
			passtest.Config{Ops: []string{"conv1d", "conv2d"}, Math: math}.Run(t, func(t testing.TB) pass.Device {
				return emulated(t, gpu, Config{Ways: map[string]string{"": "tiles"}})
			})
		})
	}
}

func TestConvolutionsOfImages(t *testing.T) {
	for way, math := range map[string][]pass.Math{
		"image of 32 channels":          {pass.Exact},
		"image of 64 channels":          {pass.Exact, pass.Fast},
		"image of 128 channels":         {pass.Fast},
		"image of 64 channels, 8 warps": {pass.Fast},
		"image of 32 channels, 8 warps": {pass.Fast},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			library(t, 90)
			passtest.Config{Ops: []string{"conv2d"}, Math: math}.Run(t, func(t testing.TB) pass.Device {
				return emulated(t, drivertest.Hopper(), Config{Ways: map[string]string{"": way}})
			})
		})
	}
}

func TestImageWays(t *testing.T) {
	t.Parallel()
	shapes := func(products int) []kernels.ConvImageShape {
		return slices.DeleteFunc(kernels.ConvImageShapes(), func(s kernels.ConvImageShape) bool {
			return s.Size != 3 || s.Stride != 1 || s.Products != products
		})
	}
	for _, c := range []struct {
		batch, height, width, channels, products int
		want                                     string
	}{
		{1, 80, 998, 32, 1, "32x4 32x8 64x4 64x8 128x4"},   // no more channels than that
		{1, 40, 499, 64, 1, "64x8 64x4 32x4 32x8 128x4"},   // 160 tiles
		{1, 20, 250, 128, 1, "32x8 32x4 64x8 64x4 128x4"},  // 40 tiles twice are few
		{32, 20, 250, 128, 1, "128x4 64x4 64x8 32x4 32x8"}, // 1,280 tiles
		{32, 20, 250, 128, 3, "64x4 32x4"},
	} {
		op := pass.Conv2D{Batch: c.batch, Height: c.height, Width: c.width, Stride: 1, Out: pass.Span{To: c.height}}
		var got []string
		for _, s := range imageWays(shapes(c.products), imageTiles(op), c.channels) {
			got = append(got, fmt.Sprintf("%dx%d", s.Columns, s.Warps))
		}
		require.Equal(t, c.want, strings.Join(got, " "), "%+v", c)
	}
	// Lines 3 to 8 are of three tiles: tiles begin at multiples of four, wherever a part does.
	require.Equal(t, 3, imageDown(pass.Conv2D{Out: pass.Span{From: 3, To: 9}}))
}

// Cases have too few rows for the rule to take blocks of twelve, and where there is a kernel
// for their number of taps it does not take the one for any number.
func TestConvGLUOfManyRows(t *testing.T) {
	for _, way := range []string{"512_k9", "512_k5", "512"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			library(t, 90)
			passtest.Config{Ops: []string{"convglu"}, Math: []pass.Math{pass.Exact}}.Run(t, func(t testing.TB) pass.Device {
				return emulated(t, drivertest.Hopper(), Config{Ways: map[string]string{"": way}})
			})
		})
	}
}

// Cases are not so wide that the rule reads the image where it needs it.
func TestDepthwiseOfWideImages(t *testing.T) {
	t.Parallel()
	library(t, 90)
	passtest.Config{Ops: []string{"depthwiseconv2d"}, Math: []pass.Math{pass.Exact}}.Run(t, func(t testing.TB) pass.Device {
		return emulated(t, drivertest.Hopper(), Config{Ways: map[string]string{"": "conformer_depthwise_first"}})
	})
}

// Rows of more channels than any case has pass through the output before they are
// normalised.
func TestConvGLUOfManyChannels(t *testing.T) {
	t.Parallel()
	library(t, 90)
	const rows, channels, kernel = 7, 1030, 5
	w := pass.ConvGLUWeights{
		Weight: pass.Float32s("w", cases.Recipe("w", 1, channels*kernel, 1, 0), channels, kernel), Bias: cases.Recipe("b", 1, channels, 1, 0),
		Gain: cases.Recipe("g", 1, channels, 0.5, 1), Shift: cases.Recipe("s", 1, channels, 1, 0), Normalised: true,
	}
	x := cases.Recipe("x", 1, 2*rows*2*channels, 2, 0)
	op := func(x, y pass.View, p pass.Param) pass.Op {
		return pass.ConvGLU{X: x, W: p, Y: y, Batch: 2, Rows: rows, Lengths: pass.Fixed(rows, 4)}
	}
	y := computed(t, emulated(t, drivertest.Hopper(), Config{}), w, x, 2*rows*channels, op)
	require.InDeltaSlice(t, computed(t, host(t), w, x, 2*rows*channels, op), y, 2e-5)
}

// Bulk copies take windows that overlap as rows of a matrix that lie closer together than
// they are long.
func TestConvolutionsInWideTiles(t *testing.T) {
	t.Parallel()
	const in, channels, out, kernel = 300, 16, 72, 3
	w := pass.ConvWeights{Weight: pass.Float32s("w", cases.Recipe("w", 1, out*channels*kernel, 0.2, 0), out, channels, kernel), Bias: cases.Recipe("b", 1, out, 1, 0)}
	x := cases.Recipe("x", 1, 2*in*channels, 1, 0)
	op := func(x, y pass.View, p pass.Param) pass.Op {
		return pass.Conv1D{X: x, W: p, Y: y, Batch: 2, In: in, Stride: 2, PadLeft: 1, PadRight: 1, Epilogue: pass.ReLU, Lengths: pass.Fixed(in, 111)}
	}
	const steps = in / 2
	product := fmt.Sprintf("product %d×%d×%d in 3", 2*steps, out, channels*kernel)
	ways := map[string]string{"": "tiles", product: "wide 128x128"}
	var dev pass.Device
	if onDevice() {
		var err error
		dev, err = Open(t.Context(), Config{Ways: ways})
		require.NoError(t, err)
	} else {
		library(t, 90)
		dev = emulated(t, drivertest.Hopper(), Config{Ways: ways})
	}
	y := computed(t, dev, w, x, 2*steps*out, op)
	require.Contains(t, dev.Info().Variants, pass.Variant{Name: product + ": wide 128x128", Used: true, Reason: "forced"})
	require.InDeltaSlice(t, computed(t, host(t), w, x, 2*steps*out, op), y, 2e-5)
}

func host(t *testing.T) pass.Device {
	dev, err := cpu.Open(cpu.Config{})
	require.NoError(t, err)
	return dev
}

// computed returns the n outputs of an op with weights. The device is closed in the end.
func computed(t *testing.T, dev pass.Device, w pass.Weights, x []float32, n int, op func(x, y pass.View, p pass.Param) pass.Op) []float32 {
	t.Helper()
	t.Cleanup(func() { dev.Close() })
	p, err := dev.Load(t.Context(), w)
	require.NoError(t, err)
	s, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer s.Close()
	var in pass.Input
	var out pass.Output
	rec, err := s.Record(t.Context(), pass.RecordOptions{}, func(r pass.Pass) {
		in = r.Input(pass.F32, len(x))
		y := r.Temp(pass.F32, n).View()
		r.Do(op(in.View(), y, p))
		out = r.Output(y, n)
	})
	require.NoError(t, err)
	run, err := rec.Run(t.Context(), in.F32(x))
	require.NoError(t, err)
	defer run.Close()
	y := make([]float32, n)
	require.NoError(t, run.ReadF32(out, y))
	return y
}

func TestGLUWays(t *testing.T) {
	t.Parallel()
	shape := func(channels, kernel int, normalised bool) pass.ConvGLUShape {
		return pass.ConvGLUShape{Channels: channels, Kernel: kernel, Normalised: normalised}
	}
	for _, c := range []struct {
		shape pass.ConvGLUShape
		rows  int
		want  string
	}{
		{shape(1024, 9, true), 1500, "512_k9"},
		{shape(1024, 9, false), 60, "512_k9_few"},
		{shape(768, 5, true), 400, "512_k5"},
		{shape(1024, 31, true), 1500, "512"},
		{shape(256, 9, true), 1500, "128"},
		{shape(1025, 9, true), 1500, "wide"},
		{shape(4096, 9, false), 1500, "512_k9"},
	} {
		ways := gluWays(c.shape, c.rows)
		require.Equal(t, c.want, ways[0].name, "%v, %d rows", c.shape, c.rows)
		for _, w := range ways {
			require.True(t, !c.shape.Normalised || w.channels >= c.shape.Channels, "whole rows")
		}
	}
}

func TestLayWindows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, taps, stride int
		want             convLayout
	}{
		{80, 3, 2, convLayout{1, 1, 3, 80}},      // whole eights
		{1, 251, 10, convLayout{10, 11, 25, 16}}, // 25 groups of 10, and one step more
		{1, 256, 128, convLayout{128, 128, 2, 128}},
		{1, 127, 64, convLayout{64, 127, 1, 128}},
		{3, 3, 7, convLayout{7, 3, 1, 16}}, // steps between windows are left out
		{2, 5, 1, convLayout{1, 1, 5, 8}},  // one step after the other: nothing to save
	} {
		l := layWindows(c.in, c.taps, c.stride)
		require.Equal(t, c.want, l, "%+v", c)
		require.Zero(t, l.width%8)
		require.Equal(t, c.taps, (l.groups-1)*l.group+l.steps, "a window ends where its last group does: %+v", c)
		require.Zero(t, c.stride%l.group, "windows begin where groups do: %+v", c)
	}
}
