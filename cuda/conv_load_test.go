package cuda

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

// What Load and Compile took is given back when they fail half-way.
func TestConvLoadFails(t *testing.T) {
	t.Parallel()
	drv := emulatedDriver(t, drivertest.Hopper())
	cfg, err := Config{}.resolve()
	require.NoError(t, err)
	dev, err := open(t.Context(), drv, cfg)
	require.NoError(t, err)
	short := pass.Tensor{Name: "short", Type: pass.F32, Shape: []int{4, 3, 5}, Data: bytes.NewReader(make([]byte, 4*4*3*5-1))}
	_, err = dev.Load(t.Context(), pass.ConvWeights{Name: "stem", Weight: short, Bias: make([]float32, 4)})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, `"stem"`)
	require.ErrorContains(t, err, `"short"`)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = dev.Load(ctx, pass.Conv2DWeights{Weight: pass.Float32s("w", make([]float32, 4*3*9), 4, 3, 3, 3)})
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, dev.Close())
	require.Empty(t, drv.Leaks())
}

func TestConvLimits(t *testing.T) {
	t.Parallel()
	p := &convParam{in: 80, out: 60, taps: 5}
	good := pass.Conv1D{Batch: 4, In: 1 << 20, Stride: 1, Pool: 1, Out: pass.Span{To: 1 << 20}}
	c := &compiler{}
	require.NoError(t, c.checkConv1D(good, p))
	for name, change := range map[string]func(op *pass.Conv1D){
		"rows":   func(op *pass.Conv1D) { op.Batch = 1 << 11 },
		"pooled": func(op *pass.Conv1D) { op.Pool = 1 << 9 },
		"input":  func(op *pass.Conv1D) { op.In = 1 << 30 },
		"stride": func(op *pass.Conv1D) { op.Stride = 1 << 31 },
	} {
		op := good
		change(&op)
		require.ErrorIs(t, c.checkConv1D(op, p), pass.ErrUnsupported, name)
	}
	require.ErrorIs(t, c.checkConv1D(good, &convParam{in: 1 << 20, out: 1, taps: 1 << 12}), pass.ErrUnsupported)
}

// Ways follow from the size of an item, so that parts of an op have its bits.
func TestConvWays(t *testing.T) {
	t.Parallel()
	_, ways := convWays(1500, 384*3, 384)
	require.Equal(t, []string{"tiles", "direct"}, ways)
	_, ways = convWays(4, 129*3, 128)
	require.Equal(t, []string{"direct", "tiles"}, ways)
	require.Equal(t, "few", chooseDirect(1024, 128).name, "32 tiles are too few")
	require.Equal(t, "tile", chooseDirect(15975, 60).name)
	require.Equal(t, grid{250, 1, 1}, chooseDirect(15975, 60).grid(15975, 60))
}
