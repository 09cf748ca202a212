package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

// A bench is a device whose kernels do nothing, with a session and a recording that fills n
// elements and brings back the first.
type bench struct {
	drv *drivertest.Driver
	dev pass.Device
	ses pass.Session
	rec pass.Recording
}

func newBench(t *testing.T, c drivertest.Config, cfg Config, n int) *bench {
	t.Helper()
	b := &bench{drv: drivertest.New(c)}
	var err error
	b.dev, err = hosted(t, b.drv, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, b.dev.Close())
		require.Empty(t, b.drv.Leaks())
	})
	b.ses, err = b.dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	b.rec, err = b.record(t, n)
	require.NoError(t, err)
	return b
}

// impatient shortens the watchdog for what shall not end. All else has the usual one, or a
// test would fail where a machine stands still for a moment.
func (b *bench) impatient(f func()) {
	hw := b.dev.(opened).hw
	usual := hw.watchdog
	hw.watchdog = 50 * time.Millisecond
	defer func() { hw.watchdog = usual }()
	f()
}

// eager makes graphs with recordings.
func (b *bench) eager() { b.dev.(opened).hw.patience = 0 }

func (b *bench) record(t *testing.T, n int) (pass.Recording, error) {
	return b.ses.Record(t.Context(), pass.RecordOptions{Label: "fill"}, func(p pass.Pass) {
		x := p.Temp(pass.F32, n)
		p.Do(pass.Fill{To: x.View(), Rows: 1, Cols: n, Value: 1})
		p.Output(x.View(), 1)
	})
}

// After a fault every call says that the device is lost, and what is closed stays closed.
func TestStickyFaults(t *testing.T) {
	t.Parallel()
	for _, code := range []int{driver.IllegalAddress, driver.LaunchFailed, driver.LaunchTimeout, driver.Uncorrectable} {
		b := newBench(t, drivertest.Config{}, Config{}, 64)
		_, err := b.rec.Run(t.Context())
		require.NoError(t, err)
		b.drv.Lose(code)
		_, err = b.rec.Run(t.Context())
		require.ErrorIs(t, err, pass.ErrDeviceLost)
		var cause *driver.Error
		require.ErrorAs(t, err, &cause)
		require.Equal(t, code, cause.Code)
		_, err = b.rec.Run(t.Context())
		require.ErrorIs(t, err, pass.ErrDeviceLost)
		_, err = b.ses.Alloc(pass.F32, 1)
		require.ErrorIs(t, err, pass.ErrDeviceLost)
		_, err = b.record(t, 8)
		require.ErrorIs(t, err, pass.ErrDeviceLost)
		_, err = b.dev.NewSession(pass.SessionConfig{})
		require.ErrorIs(t, err, pass.ErrDeviceLost)
	}
}

// A kernel that faults loses the device; Wait says so.
func TestKernelFault(t *testing.T) {
	t.Parallel()
	for _, lazy := range []bool{false, true} {
		fault := false
		b := newBench(t, drivertest.Config{Lazy: lazy, Kernel: func(string, driver.Launch) error {
			if fault {
				return drivertest.Error("kernel", driver.IllegalAddress)
			}
			return nil
		}}, Config{}, 64)
		_, err := b.rec.Run(t.Context())
		require.NoError(t, err)
		fault = true
		_, err = b.rec.Run(t.Context())
		require.ErrorIs(t, err, pass.ErrDeviceLost)
		fault = false
		_, err = b.rec.Run(t.Context())
		require.ErrorIs(t, err, pass.ErrDeviceLost)
	}
}

// Work that does not end is an error that names it, and the device stays usable.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	b := newBench(t, drivertest.Config{Lazy: true}, Config{}, 64)
	t.Cleanup(func() { b.drv.Stall(false) }) // before the device is closed
	b.drv.Stall(true)
	b.impatient(func() {
		_, err := b.rec.Run(t.Context())
		require.ErrorIs(t, err, pass.ErrTimeout)
		require.ErrorContains(t, err, "fill")
	})
	b.drv.Stall(false)
	_, err := b.rec.Run(t.Context())
	require.NoError(t, err)
}

func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	small := drivertest.Hopper()
	small.Memory = 64 << 20
	b := newBench(t, drivertest.Config{Devices: []drivertest.Profile{small}}, Config{}, 64)
	for _, n := range []int{17 << 20, 10 << 40 / 4, 1 << 40} {
		_, err := b.ses.Alloc(pass.F32, n)
		require.ErrorIs(t, err, pass.ErrOutOfMemory, n)
	}
	for _, n := range []int{17 << 20, 1 << 34, 10 << 40 / 4} {
		_, err := b.record(t, n)
		require.ErrorIs(t, err, pass.ErrOutOfMemory, n)
	}
	_, err := b.rec.Run(t.Context())
	require.NoError(t, err, "what was there still works")

	b = newBench(t, drivertest.Config{}, Config{MemoryBudget: 8 << 20}, 64)
	_, err = b.ses.Alloc(pass.F32, 3<<20)
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
	require.ErrorContains(t, err, "budget")
	_, err = b.record(t, 3<<20)
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
	x, err := b.ses.Alloc(pass.F32, 1<<20)
	require.NoError(t, err)
	require.NoError(t, b.ses.Free(x))
}

// A workspace that grows keeps its addresses, so that graphs are made once; where it has to
// move, they are made again.
func TestWorkspaceGrows(t *testing.T) {
	t.Parallel()
	for _, fixed := range []bool{true, false} {
		p := drivertest.Hopper()
		p.NoVirtual = !fixed
		b := newBench(t, drivertest.Config{Devices: []drivertest.Profile{p}}, Config{}, 64)
		for range graphsAfter {
			_, err := b.rec.Run(t.Context())
			require.NoError(t, err)
		}
		made := b.drv.Calls("Instantiate")
		require.Equal(t, 1, made)
		large, err := b.record(t, 5<<20)
		require.NoError(t, err)
		for range 3 {
			_, err = b.rec.Run(t.Context())
			require.NoError(t, err)
			_, err = large.Run(t.Context())
			require.NoError(t, err)
		}
		want := 2
		if !fixed {
			want = 3
		}
		require.Equal(t, want, b.drv.Calls("Instantiate"))
		require.NoError(t, large.Close())
		require.NoError(t, b.rec.Close())
		_, err = b.record(t, 3<<20)
		require.NoError(t, err)
	}
}

// Errors of any call of the driver come out, once, and nothing is left behind.
func TestEveryCallMayFail(t *testing.T) {
	t.Parallel()
	calls := []string{
		"CreateStream", "PriorityRange", "Alloc", "HostAlloc", "CopyToDevice", "CopyToHost", "CreateEvent", "Record", "QueryEvent",
		"Set32", "Granularity", "Reserve", "Create", "Map", "LoadModule", "Function", "Launch", "CreateGraph", "AddKernel", "AddEdges", "Instantiate", "Upload", "LaunchGraph",
	}
	work := func(drv *drivertest.Driver, fail func()) error {
		dev, err := hosted(t, drv, Config{})
		if err != nil {
			return err
		}
		defer dev.Close()
		fail()
		ses, err := dev.NewSession(pass.SessionConfig{})
		if err != nil {
			return err
		}
		x, err := ses.Alloc(pass.F32, 10)
		if err != nil {
			return err
		}
		if err := ses.Write(t.Context(), x.View(), make([]float32, 10)); err != nil {
			return err
		}
		var in pass.Input
		rec, err := ses.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
			in = p.Input(pass.F32, 4)
			p.Do(pass.Copy{From: in.View(), To: x.View(), Rows: 1, Cols: 4})
			p.Output(x.View(), 10)
			p.Do(pass.Fill{To: x.At(4), Rows: 1, Cols: 6})
		})
		if err != nil {
			return err
		}
		for range graphsAfter + 1 {
			var run pass.Run
			run, err = rec.Run(t.Context(), in.F32(make([]float32, 4)))
			run.Close()
			if err != nil {
				break
			}
		}
		return errors.Join(err, rec.Close(), ses.Read(t.Context(), x.View(), make([]float32, 10)))
	}
	graphs := []string{"CreateGraph", "AddKernel", "AddEdges", "Instantiate", "Upload"}
	good, opened := drivertest.New(drivertest.Config{}), map[string]int{}
	require.NoError(t, work(good, func() {
		for _, call := range calls {
			opened[call] = good.Calls(call)
		}
	}))
	for _, call := range calls {
		times := good.Calls(call) - opened[call]
		require.Positive(t, times, call)
		for n := range times {
			for _, code := range []int{driver.OutOfMemory, driver.InvalidValue, driver.IllegalAddress} {
				drv := drivertest.New(drivertest.Config{})
				err := work(drv, func() { drv.Fail(call, n+1, code) })
				name := fmt.Sprintf("%s, time %d of %d, code %d", call, n+1, times, code)
				require.Empty(t, drv.Leaks(), name)
				if code == driver.OutOfMemory && slices.Contains(graphs, call) {
					require.NoError(t, err, name) // kernels are launched one by one
					continue
				}
				require.Error(t, err, name)
				var cause *driver.Error
				require.ErrorAs(t, err, &cause, name)
				require.Equal(t, code, cause.Code, name)
				require.Equal(t, code == driver.OutOfMemory, errors.Is(err, pass.ErrOutOfMemory), name)
				require.Equal(t, code == driver.IllegalAddress, errors.Is(err, pass.ErrDeviceLost), name)
			}
		}
	}
}

// Loaders that hold a staging buffer each must not wait for each other's.
func TestManyTransfersAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, drivertest.Config{Lazy: true}, Config{}, 64)
	const n = 3 * stagingBytes / 4
	var wait sync.WaitGroup
	for k := range 6 {
		ses, err := b.dev.NewSession(pass.SessionConfig{})
		require.NoError(t, err)
		x, err := ses.Alloc(pass.U32, n)
		require.NoError(t, err)
		wait.Go(func() {
			data := make([]uint32, n)
			for i := range data {
				data[i] = uint32(i * (k + 1))
			}
			got := make([]uint32, n)
			if err := errors.Join(ses.Write(t.Context(), x.View(), data), ses.Read(t.Context(), x.View(), got)); err != nil {
				t.Error(err)
			}
			for i := range got {
				if got[i] != data[i] {
					t.Errorf("transfer %d: element %d: got %d, want %d", k, i, got[i], data[i])
					return
				}
			}
		})
	}
	wait.Wait()
}

// A traced device runs kernel by kernel and says how long each took.
func TestTrace(t *testing.T) {
	t.Parallel()
	var traces []Trace
	b := newBench(t, drivertest.Config{}, Config{Trace: func(s Trace) { traces = append(traces, s) }}, 64)
	require.Zero(t, b.drv.Calls("LaunchGraph"))
	_, err := b.rec.Run(t.Context())
	require.NoError(t, err)
	require.Len(t, traces, 1)
	require.Equal(t, "fill", traces[0].Label)
	require.Len(t, traces[0].Spans, 1)
	require.Equal(t, "fill", traces[0].Spans[0].Name)
	require.Equal(t, "move_fill", traces[0].Spans[0].Kernel)
	require.Zero(t, b.drv.Calls("LaunchGraph"))
}

// What the device was asked to choose, with all ways, and what a Config forces.
func TestBoundaries(t *testing.T) {
	t.Parallel()
	for _, forced := range []bool{false, true} {
		cfg := Config{}
		var want Boundary
		for round := range 2 {
			dev, err := hosted(t, drivertest.New(drivertest.Config{}), cfg)
			require.NoError(t, err)
			ses, err := dev.NewSession(pass.SessionConfig{})
			require.NoError(t, err)
			w, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{weights(512, 512)}})
			require.NoError(t, err)
			_, err = ses.Record(t.Context(), pass.RecordOptions{Math: pass.Fast}, func(p pass.Pass) {
				a, c := p.Input(pass.F32, 512*512), p.Temp(pass.F32, 512*512)
				p.Do(pass.Gemm{A: a.View(), W: w, C: c.View(), Rows: 512})
				p.Output(c.View(), 1)
			})
			require.NoError(t, err)
			all := dev.(Tunable).Boundaries()
			require.NotEmpty(t, all)
			require.Greater(t, len(all[0].Ways), 1)
			if round == 0 {
				require.Equal(t, all[0].Ways[0], all[0].Choice)
				require.Contains(t, all[0].Because, "by rule")
				want = all[0]
				if forced {
					want.Choice = want.Ways[len(want.Ways)-1]
					cfg.Ways = map[string]string{want.Name: want.Choice}
				}
			} else {
				require.Equal(t, want.Choice, all[0].Choice)
				require.Equal(t, forced, all[0].Because == "forced")
			}
			key := dev.(Tunable).TuneKey()
			require.Equal(t, "NVIDIA Test 90", key.Device)
			require.Equal(t, 132, key.SMs)
			require.NoError(t, dev.Close())
		}
	}
}
