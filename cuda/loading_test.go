package cuda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

// every returns small weights of each kind.
func every() map[string]pass.Weights {
	tensor := func(shape ...int) pass.Tensor {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return pass.Float32s("w", make([]float32, n), shape...)
	}
	four := make([]float32, 4)
	cell := pass.LSTMCell{Input: tensor(16, 6), Hidden: tensor(16, 4), Bias: make([]float32, 16)}
	return map[string]pass.Weights{
		"linear":    pass.LinearWeights{Parts: []pass.Tensor{tensor(4, 6)}, Bias: four, Dual: four},
		"q8":        pass.LinearWeights{Parts: []pass.Tensor{{Name: "q", Type: pass.Q8_0, Shape: []int{2, 32}, Data: bytes.NewReader(make([]byte, 2*pass.Q8BlockBytes))}}},
		"norm":      pass.NormWeights{Gain: four, Bias: four},
		"lstm":      pass.LSTMWeights{Layers: [][]pass.LSTMCell{{cell}}},
		"conv1d":    pass.ConvWeights{Weight: tensor(4, 3, 5), Bias: four},
		"conv2d":    pass.Conv2DWeights{Weight: tensor(4, 3, 3, 3), Bias: four},
		"convglu":   pass.ConvGLUWeights{Weight: tensor(4, 3), Gain: four, Shift: four},
		"depthwise": pass.DepthwiseWeights{Weight: tensor(4, 3, 3), First: tensor(4, 3, 3), Bias: four},
		"rope":      pass.RopeWeights{Positions: 8, Rot: 4, Base: 10000},
		"mel":       pass.MelWeights{Window: four, FFT: 4, Hop: 2, Mels: 1, Bank: make([]float32, 3)},
	}
}

// failures calls work once for every call of the driver that it makes in good days, with
// that call failing. What it made before may be kept for the next time.
func failures(t *testing.T, name string, kept bool, calls []string, prepare func(pass.Device) (func() error, error)) {
	t.Helper()
	count := map[string]int{}
	try := func(call string, n, code int) error {
		drv := drivertest.New(drivertest.Config{})
		dev, err := hosted(t, drv, Config{})
		require.NoError(t, err, name)
		hw := dev.(opened).hw
		work, err := prepare(dev)
		require.NoError(t, err, name)
		held := hw.ledger.held.Load()
		if call == "" {
			for _, c := range calls {
				count[c] = -drv.Calls(c)
			}
		} else {
			drv.Fail(call, n, code)
		}
		err = work()
		if call == "" {
			for _, c := range calls {
				count[c] += drv.Calls(c)
			}
		} else {
			if !kept {
				require.Equal(t, held, hw.ledger.held.Load(), "%s: bytes held when call %d of %s has failed", name, n, call)
			}
			if code != driver.IllegalAddress { // it works the next time, on the same device
				require.NoError(t, work(), "%s: after call %d of %s failed", name, n, call)
			}
		}
		require.NoError(t, dev.Close(), name)
		require.Empty(t, drv.Leaks(), name)
		require.Zero(t, hw.ledger.held.Load(), name)
		return err
	}
	require.NoError(t, try("", 0, 0), name)
	total := 0
	for _, call := range calls {
		for n := range count[call] {
			for _, code := range []int{driver.OutOfMemory, driver.IllegalAddress} {
				err := try(call, n+1, code)
				what := fmt.Sprintf("%s: call %d of %s, code %d", name, n+1, call, code)
				require.Equal(t, code == driver.OutOfMemory, errors.Is(err, pass.ErrOutOfMemory), what)
				require.Equal(t, code == driver.IllegalAddress, errors.Is(err, pass.ErrDeviceLost), what)
				require.ErrorContains(t, err, "cuda: ", what)
			}
			total++
		}
	}
	require.NotZero(t, total, name)
}

var loadingCalls = []string{
	"Alloc", "HostAlloc", "CopyToDevice", "CopyToHost", "CreateEvent", "Record", "QueryEvent", "LoadModule", "Function", "Launch", "Set32",
}

// Weights that fail to load, at whatever call, leave nothing behind.
func TestEveryLoadMayFail(t *testing.T) {
	t.Parallel()
	for name, w := range every() {
		failures(t, name, false, loadingCalls, func(dev pass.Device) (func() error, error) {
			return func() error { _, err := dev.Load(t.Context(), w); return err }, nil
		})
	}
}

// calling is weights that end the call's context while they are read.
type calling struct {
	io.ReaderAt
	cancel context.CancelFunc
}

func (c calling) ReadAt(b []byte, at int64) (int, error) {
	c.cancel()
	return c.ReaderAt.ReadAt(b, at)
}

// A load whose context ends while it reads does not go on.
func TestLoadsHearTheirContext(t *testing.T) {
	t.Parallel()
	b := newBench(t, drivertest.Config{}, Config{}, 64)
	tensor := func(cancel context.CancelFunc, shape ...int) pass.Tensor {
		return pass.Tensor{Name: "w", Type: pass.F32, Shape: shape, Data: calling{bytes.NewReader(make([]byte, 1<<10)), cancel}}
	}
	four := make([]float32, 4)
	for name, make := range map[string]func(context.CancelFunc) pass.Weights{
		"linear": func(c context.CancelFunc) pass.Weights {
			return pass.LinearWeights{Parts: []pass.Tensor{tensor(c, 4, 6)}, Bias: four}
		},
		"conv1d": func(c context.CancelFunc) pass.Weights { return pass.ConvWeights{Weight: tensor(c, 4, 3, 5)} },
		"convglu": func(c context.CancelFunc) pass.Weights {
			return pass.ConvGLUWeights{Weight: tensor(c, 4, 3), Gain: four, Shift: four}
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := b.dev.Load(ctx, make(cancel))
		require.ErrorIs(t, err, context.Canceled, name)
	}
}

// Recordings that make other forms of weights leave nothing behind when that fails. Forms
// that were made stay, for the next time.
func TestEveryFormMayFail(t *testing.T) {
	t.Parallel()
	const n = 512
	for _, math := range []pass.Math{pass.Exact, pass.Fast} {
		failures(t, fmt.Sprint("gemm ", math), true, []string{"Alloc", "CreateEvent", "Launch", "Create", "Map", "Instantiate"}, func(dev pass.Device) (func() error, error) {
			w, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{weights(n, n)}})
			if err != nil {
				return nil, err
			}
			return func() error {
				ses, err := dev.NewSession(pass.SessionConfig{})
				if err != nil {
					return err
				}
				_, err = ses.Record(t.Context(), pass.RecordOptions{Math: math}, func(p pass.Pass) {
					a, c := p.Input(pass.F32, n*n), p.Temp(pass.F32, n*n)
					p.Do(pass.Gemm{A: a.View(), W: w, C: c.View(), Rows: n})
					p.Output(c.View(), 1)
				})
				return errors.Join(err, ses.Close())
			}, nil
		})
	}
}

// Shapes of terabytes are errors, whether their data are there or not, and cost the host no
// memory.
func TestLoadsOfTerabytes(t *testing.T) {
	t.Parallel()
	b := newBench(t, drivertest.Config{}, Config{}, 64)
	huge := func(shape ...int) pass.Tensor {
		return pass.Tensor{Name: "huge", Type: pass.F32, Shape: shape, Data: bytes.NewReader(nil)}
	}
	four := make([]float32, 4)
	for name, w := range map[string]pass.Weights{
		"linear":    pass.LinearWeights{Parts: []pass.Tensor{huge(1<<20, 1<<20)}},
		"conv1d":    pass.ConvWeights{Weight: huge(1<<15, 1<<15, 1<<10)},
		"conv2d":    pass.Conv2DWeights{Weight: huge(1<<18, 1<<18, 3, 3)},
		"convglu":   pass.ConvGLUWeights{Weight: huge(4, 1<<37+1), Gain: four, Shift: four},
		"depthwise": pass.DepthwiseWeights{Weight: huge(1<<36, 3, 3)},
		"lstm":      pass.LSTMWeights{Layers: [][]pass.LSTMCell{{{Input: huge(1<<21, 8), Hidden: huge(1<<21, 1<<19)}}}},
	} {
		_, err := b.dev.Load(t.Context(), w)
		require.Error(t, err, name)
		require.ErrorContains(t, err, "cuda: load: ", name)
	}
	for _, c := range []pass.CacheConfig{
		{Type: pass.F16, Batch: 1 << 10, Heads: 1 << 10, HeadDim: 64, Capacity: 1 << 14},
		{Type: pass.F32, Batch: 1 << 4, Heads: 1 << 4, HeadDim: 64, Capacity: 1 << 18},
	} {
		_, err := b.ses.NewCache(c)
		require.ErrorIs(t, err, pass.ErrOutOfMemory)
	}
	_, err := b.rec.Run(t.Context())
	require.NoError(t, err)
}
