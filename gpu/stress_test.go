package gpu

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// full reports whether the long half of the tests is wanted.
func full() bool { return os.Getenv("TANDEM_FULL") == "1" }

// resident returns the resident bytes of the process after a collection; 0: unknown.
func resident() int {
	debug.FreeOSMemory()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages int
	if _, err := fmt.Sscan(string(data), &size, &pages); err != nil {
		return 0
	}
	return pages * os.Getpagesize()
}

// settles fails the test if memory grows by more than the allowance each time that the
// work is done. What grows at first is a driver that takes the memory it will keep; a leak
// goes on.
func settles(t *testing.T, allowance int, work func()) {
	t.Helper()
	for range 4 {
		before := resident()
		work()
		grown := resident() - before
		t.Logf("resident memory grew by %d KiB", grown>>10)
		if grown < allowance {
			return
		}
	}
	t.Fatal("resident memory goes on growing")
}

// collect runs the garbage collector over and over until the test ends.
func collect(t *testing.T) {
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	t.Cleanup(func() { close(stop); done.Wait() })
}

func TestSessionsSideBySide(t *testing.T) {
	r := vulkanRig(t, driver.DeviceConfig{}, options{}, nil)
	collect(t)
	length := 5 * time.Second
	if full() {
		length = time.Minute
	} else if testing.Short() {
		length = time.Second
	}
	end := time.Now().Add(length)
	var all sync.WaitGroup
	errs := make(chan error, 8)
	for range 8 {
		all.Go(func() {
			for time.Now().Before(end) {
				if err := work(r); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	require.NoError(t, <-errs)
}

// Devices opened and closed one after the other leave nothing behind.
func TestOpenAndClose(t *testing.T) {
	p, a := testAdapter(t)
	rounds := 12
	if full() {
		rounds = 200
	}
	cycle := func(n int) {
		for range n {
			drv, err := p.Open(context.Background(), a.Index, driver.DeviceConfig{})
			require.NoError(t, err)
			r := newRig(t, drv, a, options{}, nil)
			require.NoError(t, work(r))
			require.NoError(t, r.Close())
			require.Equal(t, driver.Ledger{}, drv.Ledger())
		}
	}
	cycle(rounds / 4)
	settles(t, 16<<20, func() { cycle(rounds - rounds/4) })
}

// Thousands of submissions, of runs that nobody closes too, leave memory as it is.
func TestManySubmissions(t *testing.T) {
	r := vulkanRig(t, driver.DeviceConfig{}, options{}, nil)
	ctx := context.Background()
	s, err := r.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	state, err := s.Alloc(pass.U32, 64)
	require.NoError(t, err)
	var in pass.Input
	var out pass.Output
	rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
		in = p.Input(pass.U32, 64)
		p.Do(dense(in.View(), state.View(), 64))
		out = p.Output(state.View(), 64)
	})
	require.NoError(t, err)
	rounds := 1500
	if full() {
		rounds = 100_000
	}
	got := make([]uint32, 64)
	replay := func(n int) {
		for i := range n {
			run, err := rec.Run(ctx, in.U32(sequence(64, uint32(i))))
			require.NoError(t, err)
			require.NoError(t, run.ReadU32(out, got))
			require.NoError(t, equal(sequence(64, uint32(i)), got))
			if i%3 == 0 {
				run.Close()
				require.NoError(t, s.Write(ctx, state.View(), got))
			}
		}
	}
	replay(rounds / 4)
	settles(t, 16<<20, func() { replay(rounds - rounds/4) })
	ledger := r.hw.drv.Ledger()
	t.Logf("alive: %+v", ledger)
	require.Less(t, ledger.Buffers, 24)
}
