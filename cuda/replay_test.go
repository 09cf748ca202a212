package cuda

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

// sums records y = x + x, z = y + y and so on, n times in turn, of so many elements. On a
// slow device every launch is a part.
func (b *bench) sums(t *testing.T, n, elements int) (rec pass.Recording, in pass.Input, out pass.Output) {
	t.Helper()
	rec, err := b.ses.Record(t.Context(), pass.RecordOptions{Label: "sums"}, func(p pass.Pass) {
		in = p.Input(pass.F32, elements)
		x := in.Buffer
		for range n {
			y := p.Temp(pass.F32, elements)
			p.Do(pass.Add{A: x.View(), B: x.View(), Y: y.View(), Rows: 1, Cols: elements})
			x = y
		}
		out = p.Output(x.View(), 1)
	})
	require.NoError(t, err)
	return rec, in, out
}

// made returns how many kernels were launched by themselves, how many graphs there are, and
// how many were launched.
func (b *bench) made() [3]int {
	return [3]int{b.drv.Calls("Launch"), b.drv.Calls("Instantiate") - b.drv.Calls("DestroyExec"), b.drv.Calls("LaunchGraph")}
}

// Kernels of a recording are launched one by one until it has run twice, and as one graph
// from then on, however many runs were queued, and also when it was recorded again meanwhile.
func TestGraphsComeWithRuns(t *testing.T) {
	t.Parallel()
	const n = mostLaunches + 7
	var hold atomic.Pointer[chan struct{}]
	b := newBench(t, drivertest.Config{Lazy: true, Kernel: func(string, driver.Launch) error {
		if until := hold.Load(); until != nil {
			<-*until
		}
		return nil
	}}, Config{}, 64)
	rec, in, _ := b.sums(t, n, 1<<14)
	data := make([]float32, in.Len())
	require.Equal(t, [3]int{}, b.made(), "nothing has run")
	text := func() string {
		var text strings.Builder
		require.NoError(t, rec.Dump(&text))
		return text.String()
	}
	require.Contains(t, text(), "71 kernels in 1 parts, 0 of them graphs by now")
	for i, want := range [][3]int{{n, 0, 0}, {2 * n, 1, 0}, {2 * n, 1, 1}, {2 * n, 1, 2}} {
		if i%2 == 1 { // the program is kept, with what it has
			require.NoError(t, rec.Close())
			rec, in, _ = b.sums(t, n, 1<<14)
		}
		run, err := rec.Run(t.Context(), in.F32(data))
		require.NoError(t, err)
		run.Close()
		require.Equal(t, want, b.made(), "after run %d", i)
	}
	require.Contains(t, text(), "71 kernels in 1 parts, 1 of them graphs by now")
	require.NoError(t, rec.Close())

	before := b.made()
	first, firstIn, _ := b.sums(t, 1, 1<<14) // keeps the device until all that follow are queued
	rec, in, _ = b.sums(t, 3, 1<<14)
	queued := make(chan struct{})
	hold.Store(&queued)
	run, err := first.Start(t.Context(), firstIn.F32(data))
	require.NoError(t, err)
	var runs [5]pass.Run
	for i := range runs {
		runs[i], err = rec.Start(t.Context(), in.F32(data))
		require.NoError(t, err)
	}
	close(queued)
	require.NoError(t, run.Wait(t.Context()))
	require.NoError(t, rec.Close(), "while they run")
	for _, run := range runs {
		require.NoError(t, run.Wait(t.Context()))
	}
	after := b.made()
	require.Equal(t, 1+2*3, after[0]-before[0])
	require.Equal(t, 1, after[1]-before[1])
	require.Equal(t, 3, after[2]-before[2])
}

// Whatever way a run takes, it computes the same; in parts as well.
func TestReplaysComputeTheSame(t *testing.T) {
	t.Parallel()
	slow := drivertest.Hopper()
	slow.Clock, slow.MemoryClock = 1, 1
	for _, gpu := range []drivertest.Profile{drivertest.Hopper(), slow} {
		b := &bench{}
		var err error
		lib := emulatedDriver(t, gpu)
		b.drv = lib.Driver
		cfg, err := Config{}.resolve()
		require.NoError(t, err)
		b.dev, err = open(t.Context(), lib, cfg)
		require.NoError(t, err)
		b.ses, err = b.dev.NewSession(pass.SessionConfig{})
		require.NoError(t, err)
		rec, in, out := b.sums(t, 10, 1<<14)
		for i := range 4 {
			data := make([]float32, in.Len())
			data[0] = float32(i + 1)
			run, err := rec.Run(t.Context(), in.F32(data))
			require.NoError(t, err)
			var got [1]float32
			require.NoError(t, run.ReadF32(out, got[:]))
			require.Equal(t, 1024*data[0], got[0], "run %d", i)
			run.Close()
		}
		parts := 1
		if gpu.Clock == 1 {
			parts = 10
		}
		require.Equal(t, [3]int{20, parts, 2 * parts}, b.made())
		require.NoError(t, b.dev.Close())
		require.Empty(t, b.drv.Leaks())
	}
}

// Without memory for graphs runs go on without, and ask again, but not in every run.
func TestGraphsWithoutMemory(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"CreateGraph", "AddKernel", "AddEdges", "Instantiate", "Upload"} {
		b := newBench(t, drivertest.Config{}, Config{}, 64)
		rec, in, _ := b.sums(t, 3, 1<<14)
		run := func(want int) {
			t.Helper()
			run, err := rec.Run(t.Context(), in.F32(make([]float32, in.Len())))
			require.NoError(t, err, call)
			run.Close()
			require.Equal(t, want, b.drv.Calls("CreateGraph"), call)
		}
		run(0)
		for _, tries := range [][]int{{1, 1}, {2, 2, 2, 2}} { // after runs 2 and 4
			b.drv.Fail(call, 1, driver.OutOfMemory)
			for _, n := range tries {
				run(n)
			}
		}
		require.Zero(t, b.drv.Calls("LaunchGraph"))
		run(3) // the eighth
		run(3)
		require.Equal(t, 1, b.drv.Calls("LaunchGraph"), call)
	}
}

// Errors other than of memory come out of the run whose turn it was, which leaves the
// recording usable unless the device is lost.
func TestGraphsThatFail(t *testing.T) {
	t.Parallel()
	for _, code := range []int{driver.InvalidValue, driver.IllegalAddress} {
		for _, lazy := range []bool{false, true} {
			b := newBench(t, drivertest.Config{Lazy: lazy}, Config{}, 64)
			_, err := b.rec.Run(t.Context())
			require.NoError(t, err)
			b.drv.Fail("Instantiate", 1, code)
			_, err = b.rec.Run(t.Context())
			var cause *driver.Error
			require.ErrorAs(t, err, &cause)
			require.Equal(t, code, cause.Code)
			_, err = b.rec.Run(t.Context())
			if code == driver.IllegalAddress {
				require.ErrorIs(t, err, pass.ErrDeviceLost)
				continue
			}
			require.NoError(t, err)
			_, err = b.rec.Run(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, b.drv.Calls("LaunchGraph"))
		}
	}
}

// A kernel that cannot be launched ends its run, and names its op; what was launched before
// it is waited for.
func TestLaunchesThatFail(t *testing.T) {
	t.Parallel()
	var kernels atomic.Int32
	b := newBench(t, drivertest.Config{Lazy: true, Kernel: func(string, driver.Launch) error {
		kernels.Add(1)
		return nil
	}}, Config{}, 64)
	const n = 2 * mostLaunches
	rec, in, _ := b.sums(t, n, 1<<14)
	bind := in.F32(make([]float32, in.Len()))
	b.drv.Fail("Launch", mostLaunches+3, driver.InvalidValue)
	_, err := rec.Run(t.Context(), bind)
	require.ErrorContains(t, err, "op 66: add: kernel pointwise_add: ")
	x, err := b.ses.Alloc(pass.U32, 1)
	require.NoError(t, err)
	require.NoError(t, b.ses.Write(t.Context(), x.View(), []uint32{1}))
	require.EqualValues(t, mostLaunches+2, kernels.Load())
	_, err = rec.Run(t.Context(), bind)
	require.NoError(t, err)
	require.EqualValues(t, mostLaunches+2+n, kernels.Load())
}

// A run that is cancelled between its parts leaves the rest of the recording without graphs
// until they have run.
func TestGraphsOfPartsThatRan(t *testing.T) {
	t.Parallel()
	var cancel atomic.Pointer[context.CancelFunc]
	b := newBench(t, drivertest.Config{Lazy: true, Devices: []drivertest.Profile{plain()}, Kernel: func(string, driver.Launch) error {
		if f := cancel.Load(); f != nil {
			(*f)() // in the first part
		}
		return nil
	}}, Config{}, 64)
	rec, in, _ := b.sums(t, 6, 1<<20)
	bind := in.F32(make([]float32, in.Len()))
	for range graphsAfter {
		ctx, stop := context.WithCancel(t.Context())
		cancel.Store(&stop)
		run, err := rec.Start(ctx, bind)
		require.NoError(t, err)
		require.ErrorIs(t, run.Wait(t.Context()), context.Canceled)
	}
	cancel.Store(nil)
	require.Positive(t, b.made()[1])
	require.Less(t, b.made()[1], 6)
	launched := b.made()[0]
	_, err := rec.Run(t.Context(), bind)
	require.NoError(t, err)
	require.Equal(t, 6, b.made()[1])
	require.Less(t, b.made()[0]-launched, 6, "some were graphs already")
	_, err = rec.Run(t.Context(), bind)
	require.NoError(t, err)
}

// Runs are in order, whether their kernels are launched one by one or as a graph.
func TestRunsAreOrderedAcrossWays(t *testing.T) {
	t.Parallel()
	var order []byte
	b := newBench(t, drivertest.Config{Lazy: true, Kernel: func(name string, _ driver.Launch) error {
		order = append(order, name[len(name)-1])
		return nil
	}}, Config{}, 64)
	x, err := b.ses.Alloc(pass.F32, 64)
	require.NoError(t, err)
	rec, err := b.ses.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
		p.Do(pass.Fill{To: x.View(), Rows: 1, Cols: 64}, pass.Scale{X: x.View(), Y: x.View(), Rows: 1, Cols: 64})
	})
	require.NoError(t, err)
	var runs [6]pass.Run
	for i := range runs {
		runs[i], err = rec.Start(t.Context())
		require.NoError(t, err)
	}
	for _, run := range runs {
		require.NoError(t, run.Wait(t.Context()))
	}
	require.Equal(t, strings.Repeat("le", 6), string(order))
}

// polite is a driver that notes how many kernels were launched before others had a turn.
type polite struct {
	hostDriver
	since, most int
}

func (p *polite) Current() (driver.Context, error) {
	p.since = 0
	return p.hostDriver.Current()
}

func (p *polite) Launch(l driver.Launch, s driver.Stream) error {
	p.since++
	p.most = max(p.most, p.since)
	return p.hostDriver.Launch(l, s)
}

// Others have the driver in between many launches, of which each may have to wait.
func TestLaunchesLetOthersIn(t *testing.T) {
	t.Parallel()
	drv := &polite{hostDriver: hostDriver{drivertest.New(drivertest.Config{})}}
	cfg, err := Config{}.resolve()
	require.NoError(t, err)
	b := &bench{drv: drv.Driver}
	b.dev, err = open(t.Context(), drv, cfg)
	require.NoError(t, err)
	defer b.dev.Close()
	b.ses, err = b.dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	rec, in, _ := b.sums(t, 3*mostLaunches+1, 4)
	_, err = rec.Run(t.Context(), in.F32(make([]float32, 4)))
	require.NoError(t, err)
	require.Equal(t, 3*mostLaunches+1, b.made()[0])
	require.Equal(t, mostLaunches, drv.most)
}
