//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
)

// rounds scales a stress test: TANDEM_STRESS=10 runs ten times as long.
func rounds(n int) int {
	if testing.Short() {
		return max(n/4, 1)
	}
	if factor, err := strconv.Atoi(os.Getenv("TANDEM_STRESS")); err == nil && factor > 0 {
		return n * factor
	}
	return n
}

// collect runs the collector all the time, until the test is over.
func collect(t *testing.T) {
	old := debug.SetGCPercent(1)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
		debug.SetGCPercent(old)
	})
}

// resident is the resident memory of the process in bytes, or 0 where it is not known.
func resident() int {
	debug.FreeOSMemory()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, err := strconv.Atoi(string(bytes.Fields(data)[1]))
	if err != nil {
		return 0
	}
	return pages * os.Getpagesize()
}

// settles fails the test if memory grows by more than the allowance each time that the
// work is done. What grows at first is a driver that takes the memory it will keep; a leak
// goes on.
func settles(t *testing.T, allowance int, work func()) {
	t.Helper()
	for range 6 {
		before := resident()
		work()
		after := resident()
		t.Logf("resident memory: %d KiB before, %d KiB after", before>>10, after>>10)
		if underRace || after-before < allowance {
			return
		}
	}
	t.Fatal("resident memory goes on growing")
}

// waiting is how many operations have no outcome yet.
func waiting() int {
	operations.mu.Lock()
	defer operations.mu.Unlock()
	return len(operations.entries)
}

// 20,000 callbacks arrive while the collector runs all the time: a submission's, a
// map's and an error scope's.
func TestCallbacksWhileCollecting(t *testing.T) {
	d := openDevice(t, newProvider(t, Options{}), driver.DeviceConfig{})
	ctx := context.Background()
	up, err := d.CreateBuffer(driver.BufferDesc{Size: 64, Usage: driver.MapWrite | driver.CopySrc})
	require.NoError(t, err)
	down, err := d.CreateBuffer(driver.BufferDesc{Size: 64, Usage: driver.MapRead | driver.CopyDst})
	require.NoError(t, err)
	collect(t)
	got := make([]byte, 8)
	n := rounds(3400)
	for i := range n {
		want := []byte{byte(i), byte(i >> 8), 1, 2, 3, 4, 5, 6}
		require.NoError(t, d.WriteMapped(ctx, up, 8, want, patience))
		_, err := d.Submit([]driver.Command{driver.Copy(down, 0, up, 8, 8)})
		require.NoError(t, err)
		require.NoError(t, d.ReadMapped(ctx, down, 0, got, patience))
		require.Equal(t, want, got)
		require.NoError(t, d.scoped("nothing", func() {}))
	}
	t.Logf("%d callbacks", 6*n)
	done, err := d.Done()
	require.NoError(t, err)
	require.EqualValues(t, n, done)
	// What another test gave up may take a moment to end.
	require.Eventually(t, func() bool { return waiting() == 0 }, patience, time.Millisecond, "operations without an outcome")
}

func TestEightGoroutinesWhileCollecting(t *testing.T) {
	d := openDevice(t, newProvider(t, Options{}), driver.DeviceConfig{})
	collect(t)
	drivertest.Hammer(t, d, 8, rounds(30))
}

func TestManySubmissions(t *testing.T) {
	d := openDevice(t, newProvider(t, Options{}), driver.DeviceConfig{})
	ctx := context.Background()
	id, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage | driver.CopySrc | driver.CopyDst})
	require.NoError(t, err)
	staging, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.MapRead | driver.CopyDst})
	require.NoError(t, err)
	p, g := addOne(t, d, id)
	commands := []driver.Command{driver.Dispatch(p, g, 1, 1, 1), driver.Copy(staging, 0, id, 0, 256)}
	small := make([]byte, 4)
	total := 0
	run := func(n int) {
		total += n
		for i := range n {
			require.NoError(t, d.Write(id, 8, small))
			serial, err := d.Submit(commands)
			require.NoError(t, err)
			if i%16 == 15 {
				require.NoError(t, d.Wait(ctx, serial, patience))
			}
		}
		require.NoError(t, d.ReadMapped(ctx, staging, 0, small, patience))
	}
	n := rounds(3000)
	run(n)
	settles(t, 4<<20, func() { run(n) })
	require.Equal(t, uint32(total), uint32(small[0])|uint32(small[1])<<8|uint32(small[2])<<16)
}

func TestOpenAndClose(t *testing.T) {
	p := newProvider(t, Options{})
	cycle := func(n int) {
		for range n {
			d, err := p.Open(context.Background(), best(t, p).Index, driver.DeviceConfig{})
			require.NoError(t, err)
			id, err := d.CreateBuffer(driver.BufferDesc{Size: 1 << 20, Usage: driver.Storage | driver.CopyDst})
			require.NoError(t, err)
			pipeline, g := addOne(t, d, id)
			_, err = d.Submit([]driver.Command{driver.Dispatch(pipeline, g, 1, 1, 1)})
			require.NoError(t, err)
			require.NoError(t, d.Close())
			require.Zero(t, d.Ledger())
		}
	}
	settles(t, 8<<20, func() { cycle(rounds(100)) })
	require.Empty(t, devices.entries)
}

// Providers come and go, too, and share one instance, of which some drivers have few to
// give.
func TestOpenAndCloseProviders(t *testing.T) {
	a, b := newProvider(t, Options{}), newProvider(t, Options{})
	best(t, a)
	best(t, b)
	require.Equal(t, a.instance, b.instance)
	cycle := func(n int) {
		for range n {
			p := newProvider(t, Options{})
			d, err := p.Open(context.Background(), 0, driver.DeviceConfig{})
			require.NoError(t, err)
			require.NoError(t, p.Close())
			require.NoError(t, d.Close())
		}
	}
	settles(t, 8<<20, func() { cycle(rounds(10)) })
}
