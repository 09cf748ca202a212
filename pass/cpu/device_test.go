package cpu

import (
	"context"
	"io"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{{Threads: -1}, {Threads: 1 << 20}, {Memory: -1}} {
		_, err := Open(cfg)
		require.ErrorIs(t, err, pass.ErrInvalid, "%+v", cfg)
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	dev, err := Open(Config{Memory: 1 << 20})
	require.NoError(t, err)
	defer dev.Close()
	info := dev.Info()
	require.Equal(t, "cpu", info.Backend)
	require.Equal(t, "go", info.API)
	require.Equal(t, "cpu", info.Kind)
	require.NotEmpty(t, info.Name)
	require.EqualValues(t, 1<<20, info.Memory)
	require.Equal(t, runtime.GOMAXPROCS(0), info.Threads)
}

// held opens a device whose ledger can be looked at.
func held(t *testing.T, limit int64) (pass.Device, *ledger) {
	h := &hardware{pool: newPool(1), ledger: ledger{limit: limit}, name: "test"}
	return backend.New(h), &h.ledger
}

func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dev, ledger := held(t, 1<<20)
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	for _, n := range []int{1<<18 + 1, 1 << 24, 1 << 30} {
		_, err := ses.Alloc(pass.F32, n)
		require.ErrorIs(t, err, pass.ErrOutOfMemory, "%d elements", n)
	}
	_, err = dev.Load(ctx, pass.LinearWeights{Parts: []pass.Tensor{{Type: pass.F32, Shape: []int{1 << 14, 1 << 14}, Data: zeros{}}}})
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
	_, err = ses.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
		p.Do(pass.Fill{To: p.Temp(pass.F32, 1<<30).View(), Rows: 1, Cols: 1 << 30})
	})
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
	require.Zero(t, ledger.held.Load(), "what was refused is not held")

	b, err := ses.Alloc(pass.F32, 1<<18)
	require.NoError(t, err, "the device stays usable")
	require.EqualValues(t, 1<<20, ledger.held.Load())
	require.NoError(t, ses.Free(b))
	require.Zero(t, ledger.held.Load())
	require.NoError(t, dev.Close())
}

// An amount within the configured limit is still refused if the machine does not have
// it, since Go would end the program.
func TestOutOfMemoryOfTheMachine(t *testing.T) {
	t.Parallel()
	if _, ok := meminfo("MemAvailable"); !ok {
		t.Skip("the system does not say what is free")
	}
	l := ledger{limit: math.MaxInt64}
	require.ErrorIs(t, l.reserve(math.MaxInt, 1), pass.ErrOutOfMemory)
	require.Zero(t, l.held.Load())
}

func TestClosedDeviceHoldsNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dev, ledger := held(t, 1<<30)
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	_, err = ses.Alloc(pass.F32, 1000)
	require.NoError(t, err)
	w := func(shape ...int) pass.Tensor { return pass.Tensor{Type: pass.F32, Shape: shape, Data: zeros{}} }
	param, err := dev.Load(ctx, pass.LinearWeights{Parts: []pass.Tensor{w(20, 30)}})
	require.NoError(t, err)
	_, err = dev.Load(ctx, pass.ConvWeights{Weight: w(4, 5, 6)})
	require.NoError(t, err)
	_, err = dev.Load(ctx, pass.LSTMWeights{Layers: [][]pass.LSTMCell{{{Input: w(20, 3), Hidden: w(20, 5)}}}})
	require.NoError(t, err)
	_, err = dev.Load(ctx, pass.NormWeights{Gain: make([]float32, 7)})
	require.NoError(t, err)
	_, err = dev.Load(ctx, pass.RopeWeights{Positions: 8, Rot: 4, Base: 10})
	require.NoError(t, err)
	for _, rows := range []int{1, 100, 10} { // the workspace grows, and is shared
		_, err = ses.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
			p.Do(pass.Gemm{A: p.Input(pass.F32, 30*rows).View(), W: param, C: p.Temp(pass.F32, 20*rows).View(), Rows: rows})
		})
		require.NoError(t, err)
	}
	require.NotZero(t, ledger.held.Load())
	require.NoError(t, dev.Close())
	require.Zero(t, ledger.held.Load())
}

func TestLoadStops(t *testing.T) {
	t.Parallel()
	dev, ledger := held(t, 1<<30)
	defer dev.Close()
	ctx, cancel := context.WithCancel(context.Background())
	reads := 0
	data := readerFunc(func(p []byte, _ int64) (int, error) {
		reads++
		cancel()
		return len(p), nil
	})
	_, err := dev.Load(ctx, pass.LinearWeights{Parts: []pass.Tensor{{Type: pass.F32, Shape: []int{4096, 4096}, Data: data}}})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, reads, 4096*4096*4/(128<<10), "the rest is not read")
	_, err = dev.Load(ctx, pass.RopeWeights{Positions: 1 << 10, Rot: 4, Base: 10})
	require.ErrorIs(t, err, context.Canceled)
	broken := readerFunc(func([]byte, int64) (int, error) { return 0, io.ErrUnexpectedEOF })
	w := pass.Tensor{Type: pass.F32, Shape: []int{20, 5}, Data: broken}
	_, err = dev.Load(context.Background(), pass.LSTMWeights{Layers: [][]pass.LSTMCell{{{Input: w, Hidden: w}}}})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Zero(t, ledger.held.Load())
}

type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

type readerFunc func(p []byte, at int64) (int, error)

func (f readerFunc) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }

// A long op is cut into pieces that each take about as long as a piece may, and
// together do the same work.
func TestLongOpsAreCut(t *testing.T) {
	t.Parallel()
	rate := pass.Cost{FLOP: threadFLOP, Bytes: memoryBytes}
	buffer := func(id uint32) pass.View {
		return pass.MakeBuffer(pass.Ref{Device: 1, ID: id, Generation: 1}, pass.F32, 1<<30).View()
	}
	linear := pass.MakeParam(pass.Ref{Device: 1, ID: 1, Generation: 1}, pass.LinearShape{N: 1000, K: 1000, Type: pass.F32})
	conv := pass.MakeParam(pass.Ref{Device: 1, ID: 2, Generation: 1}, pass.ConvShape{Out: 100, In: 100, Kernel: 5, Type: pass.F32})
	for _, op := range []pass.Op{
		pass.Gemm{A: buffer(1), W: linear, C: buffer(2), Rows: 3000},
		pass.Gemm{A: buffer(1), W: linear, C: buffer(2), Batch: 3, Rows: 700},
		pass.Conv1D{X: buffer(1), W: conv, Y: buffer(2), In: 100_000},
		pass.Map{X: buffer(1), Y: buffer(2), Rows: 1000, Cols: 100_000, Epilogue: pass.Tanh},
		pass.Softmax{X: buffer(1), Y: buffer(2), Rows: 1000, Cols: 100_000},
		pass.GLU{X: buffer(1), Y: buffer(2), Rows: 1000, Cols: 100_000},
	} {
		whole, err := pass.Check(op)
		require.NoError(t, err)
		parts, err := cut(whole, rate)
		require.NoError(t, err)
		require.Greater(t, len(parts), 5, "%v", op)
		sum := 0.0
		for _, part := range parts {
			c := cost(part)
			require.Less(t, max(c.FLOP/rate.FLOP, c.Bytes/rate.Bytes), 1.5*longest, "%v", part.Op)
			sum += part.Cost.FLOP
		}
		require.InEpsilon(t, whole.Cost.FLOP, sum, 1e-9)
	}
}
