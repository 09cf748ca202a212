package cuda

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

// panicky is weights whose reader panics.
type panicky struct{}

func (panicky) ReadAt([]byte, int64) (int, error) { panic("no such page") }

// A panic of the caller's reader is an error, as often as it happens, and takes neither
// memory nor staging buffers with it.
func TestReadersThatPanic(t *testing.T) {
	t.Parallel()
	b := newBench(t, drivertest.Config{}, Config{}, 64)
	for range stagingBuffers + 1 {
		_, err := b.dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{{Name: "w", Type: pass.F32, Shape: []int{8, 8}, Data: panicky{}}}})
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, "no such page")
	}
	_, err := b.dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{weights(8, 8)}})
	require.NoError(t, err)
}

// A transfer that did not end in time may still write to the buffer that it went through,
// so that nothing else may go through it.
func TestTransferThatTimesOut(t *testing.T) {
	t.Parallel()
	b := newBench(t, drivertest.Config{Lazy: true}, Config{}, 64)
	t.Cleanup(func() { b.drv.Stall(false) }) // before the device is closed
	x, err := b.ses.Alloc(pass.U32, 4)
	require.NoError(t, err)
	got := make([]uint32, 4)
	b.drv.Stall(true)
	b.impatient(func() {
		for range stagingBuffers { // all that there are
			require.ErrorIs(t, b.ses.Read(t.Context(), x.View(), got), pass.ErrTimeout)
		}
	})
	b.drv.Stall(false)
	want := []uint32{1, 2, 3, 4}
	require.NoError(t, b.ses.Write(t.Context(), x.View(), want))
	require.NoError(t, b.ses.Read(t.Context(), x.View(), got))
	require.Equal(t, want, got)
}

// crowded is a driver whose streams are never empty, as when others load weights.
type crowded struct{ hostDriver }

func (crowded) Query(driver.Stream) (bool, error) { return false, nil }

// Whoever waits for work of his own does not wait for all that others go on to add.
func TestWaitingAmongOthers(t *testing.T) {
	t.Parallel()
	cfg, err := Config{}.resolve()
	require.NoError(t, err)
	dev, err := open(t.Context(), crowded{hostDriver{drivertest.New(drivertest.Config{})}}, cfg)
	require.NoError(t, err)
	defer dev.Close()
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	_, err = ses.Alloc(pass.F32, 10)
	require.NoError(t, err)
}

// plain is a device without virtual memory that is so slow that every launch is a part.
func plain() drivertest.Profile {
	p := drivertest.Hopper()
	p.NoVirtual, p.Clock, p.MemoryClock = true, 1, 1
	return p
}

// A run of several parts goes on where it began when a recording makes the workspace move.
func TestWorkspaceMovesUnderARun(t *testing.T) {
	t.Parallel()
	b := newBench(t, drivertest.Config{Lazy: true, Devices: []drivertest.Profile{plain()}}, Config{}, 64)
	rec, err := b.ses.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
		x := p.Temp(pass.F32, 1<<18)
		for range 6 {
			p.Do(pass.Fill{To: x.View(), Rows: 1, Cols: 1 << 18})
		}
		p.Output(x.View(), 1)
	})
	require.NoError(t, err)
	b.drv.Stall(true)
	before := b.drv.Calls("Launch")
	run, err := rec.Start(t.Context())
	require.NoError(t, err)
	require.Eventually(t, func() bool { return b.drv.Calls("Launch") == before+2 }, time.Minute, time.Millisecond)
	_, err = b.record(t, 5<<20)
	require.NoError(t, err)
	b.drv.Stall(false)
	require.NoError(t, run.Wait(t.Context()))
	require.Equal(t, before+6, b.drv.Calls("Launch"))
}

// A recording whose graphs are not made again for a workspace that moved does not run with
// those that it had: without memory for them, kernels are launched one by one.
func TestGraphsThatAreNotRenewed(t *testing.T) {
	t.Parallel()
	var kernels atomic.Int32
	p := drivertest.Hopper()
	p.NoVirtual = true
	b := newBench(t, drivertest.Config{Devices: []drivertest.Profile{p}, Kernel: func(string, driver.Launch) error {
		kernels.Add(1)
		return nil
	}}, Config{}, 64)
	for range graphsAfter + 1 {
		_, err := b.rec.Run(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, 1, b.drv.Calls("LaunchGraph"))
	for i, call := range []string{"Instantiate", "AddKernel"} {
		kernels.Store(0)
		_, err := b.record(t, 5<<20<<i)
		require.NoError(t, err)
		b.drv.Fail(call, 1, driver.InvalidValue)
		_, err = b.rec.Run(t.Context())
		require.ErrorContains(t, err, "INVALID_VALUE", call)
		require.Zero(t, kernels.Load())
	}
	_, err := b.record(t, 20<<20)
	require.NoError(t, err)
	b.drv.Fail("Instantiate", 1, driver.OutOfMemory)
	_, err = b.rec.Run(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, kernels.Load())
	require.Equal(t, 1, b.drv.Calls("LaunchGraph"))
}

// What a compilation has chosen once stays, whatever is forced before it is over.
func TestChoicesStayWithinACompilation(t *testing.T) {
	t.Parallel()
	d := &device{}
	c := &compiler{d: d, chosen: map[string][2]string{}}
	name, _ := c.choose("gemm", "", "a", "b")
	require.Equal(t, "a", name)
	d.choices.force("gemm", "b")
	name, _ = c.choose("gemm", "", "a", "b")
	require.Equal(t, "a", name)
	name, _ = c.choose("gemm", "", "c", "b")
	require.Equal(t, "b", name, "of other ways")
	name, _ = (&compiler{d: d, chosen: map[string][2]string{}}).choose("gemm", "", "a", "b")
	require.Equal(t, "b", name)
}

// Events of traced runs are given back when a kernel does not start, when one faults, and
// when Config.Trace panics, which fails the run alone.
func TestTraceOfFailures(t *testing.T) {
	t.Parallel()
	panics := false
	b := newBench(t, drivertest.Config{}, Config{Trace: func(Trace) {
		if panics {
			panic("in trace")
		}
	}}, 64)
	for _, call := range []string{"Launch", "Elapsed", "CreateEvent"} {
		b.drv.Fail(call, 1, driver.InvalidValue)
		_, err := b.rec.Run(t.Context())
		require.ErrorContains(t, err, "INVALID_VALUE", call)
	}
	panics = true
	_, err := b.rec.Run(t.Context())
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, "in trace")
	panics = false
	_, err = b.rec.Run(t.Context())
	require.NoError(t, err)
	b.drv.Fail("Kernel", 1, driver.IllegalAddress)
	_, err = b.rec.Run(t.Context())
	require.ErrorIs(t, err, pass.ErrDeviceLost)
}

// orderly is a driver that notes how many kernels had run when a graph was given up.
type orderly struct {
	hostDriver
	kernels *atomic.Int32
	at      atomic.Int32
}

func (o *orderly) DestroyExec(e driver.Exec) error {
	o.at.Store(o.kernels.Load())
	return o.hostDriver.DestroyExec(e)
}

// Work that ended too late for its run is waited for before what it uses is given up.
func TestLateWorkIsWaitedFor(t *testing.T) {
	t.Parallel()
	var kernels atomic.Int32
	inner := drivertest.New(drivertest.Config{Lazy: true, Kernel: func(string, driver.Launch) error {
		kernels.Add(1)
		return nil
	}})
	drv := &orderly{hostDriver: hostDriver{inner}, kernels: &kernels}
	cfg, err := Config{}.resolve()
	require.NoError(t, err)
	dev, err := open(t.Context(), drv, cfg)
	require.NoError(t, err)
	b := &bench{dev: dev}
	b.ses, err = dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	b.eager()
	b.rec, err = b.record(t, 64)
	require.NoError(t, err)
	inner.Stall(true)
	b.impatient(func() {
		_, err = b.rec.Run(t.Context())
		require.ErrorIs(t, err, pass.ErrTimeout)
	})
	inner.Stall(false)
	require.Zero(t, kernels.Load())
	require.NoError(t, b.rec.Close())
	require.EqualValues(t, 1, drv.at.Load(), "kernels before the graph was given up")
	require.NoError(t, dev.Close())
	require.Empty(t, inner.Leaks())
}

// State that is filled again after a run that timed out is not overwritten by that run.
func TestLateWorkComesBeforeTransfers(t *testing.T) {
	t.Parallel()
	for _, move := range []func(pass.Session, context.Context, pass.View, any) error{pass.Session.Write, pass.Session.Read} {
		var kernels atomic.Int32
		b := newBench(t, drivertest.Config{Lazy: true, Kernel: func(string, driver.Launch) error {
			kernels.Add(1)
			return nil
		}}, Config{}, 64)
		t.Cleanup(func() { b.drv.Stall(false) }) // before the device is closed
		x, err := b.ses.Alloc(pass.F32, 4)
		require.NoError(t, err)
		b.drv.Stall(true)
		b.impatient(func() {
			_, err = b.rec.Run(t.Context())
			require.ErrorIs(t, err, pass.ErrTimeout)
			err = move(b.ses, t.Context(), x.View(), make([]float32, 4))
			require.ErrorIs(t, err, pass.ErrTimeout)
			require.ErrorContains(t, err, "given up")
		})
		b.drv.Stall(false)
		require.NoError(t, move(b.ses, t.Context(), x.View(), make([]float32, 4)))
		require.EqualValues(t, 1, kernels.Load(), "kernels before the transfer")
		_, err = b.rec.Run(t.Context())
		require.NoError(t, err)
	}
}

// A cubin or PTX that the driver refuses is ErrUnsupported; the device stays usable.
func TestImagesThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, code := range []int{driver.InvalidImage, driver.NoBinaryForGPU, driver.InvalidPTX, driver.UnsupportedPTXVersion} {
		drv := drivertest.New(drivertest.Config{})
		dev, err := hosted(t, drv, Config{})
		require.NoError(t, err)
		b := &bench{dev: dev}
		b.ses, err = dev.NewSession(pass.SessionConfig{})
		require.NoError(t, err)
		drv.Fail("LoadModule", 1, code)
		_, err = b.record(t, 8)
		require.ErrorIs(t, err, pass.ErrUnsupported, code)
		require.ErrorContains(t, err, "cuda: record")
		require.NotErrorIs(t, err, pass.ErrDeviceLost, code)
		rec, err := b.record(t, 8)
		require.NoError(t, err)
		_, err = rec.Run(t.Context())
		require.NoError(t, err)
		require.NoError(t, dev.Close())
		require.Empty(t, drv.Leaks())
	}
}

// Work on params is not begun for a caller that has gone.
func TestImmediatelyHearsItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := (&device{}).immediately(ctx, func(*compiler) error { return errors.New("begun") })
	require.ErrorIs(t, err, context.Canceled)
}
