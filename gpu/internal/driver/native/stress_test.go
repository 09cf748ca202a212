//go:build cgo && !js && (linux || darwin || windows)

package native

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
)

// rounds scales a stress test: TANDEM_STRESS=10 runs ten times as long.
func rounds(n int) int {
	if testing.Short() {
		return n / 4
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
	fields := bytes.Fields(data)
	pages, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return pages * os.Getpagesize()
}

// settles fails the test if memory grows by more than the allowance each time that the
// work is done. What grows at first is a driver, or the race detector, that takes the memory
// it will keep; a leak goes on.
func settles(t *testing.T, allowance int, work func()) {
	t.Helper()
	for range 6 {
		before := resident()
		work()
		after := resident()
		t.Logf("resident memory: %d KiB before, %d KiB after", before>>10, after>>10)
		if after-before < allowance {
			return
		}
	}
	t.Fatal("resident memory goes on growing")
}

// The binding crashes here: it lets the library keep pointers to Go variables.
func TestMapsWhileCollecting(t *testing.T) {
	d := openDevice(t, newProvider(t), driver.DeviceConfig{})
	ctx := context.Background()
	up, err := d.CreateBuffer(driver.BufferDesc{Size: 64, Usage: driver.MapWrite | driver.CopySrc})
	require.NoError(t, err)
	down, err := d.CreateBuffer(driver.BufferDesc{Size: 64, Usage: driver.MapRead | driver.CopyDst})
	require.NoError(t, err)
	collect(t)
	got := make([]byte, 8)
	for i := range rounds(5000) {
		want := []byte{byte(i), byte(i >> 8), 1, 2, 3, 4, 5, 6}
		require.NoError(t, d.WriteMapped(ctx, up, 8, want, patience))
		_, err := d.Submit([]driver.Command{driver.Copy(down, 0, up, 8, 8)})
		require.NoError(t, err)
		require.NoError(t, d.ReadMapped(ctx, down, 0, got, patience))
		require.Equal(t, want, got)
	}
}

func TestEightGoroutinesWhileCollecting(t *testing.T) {
	d := openDevice(t, newProvider(t), driver.DeviceConfig{})
	collect(t)
	drivertest.Hammer(t, d, 8, rounds(30))
}

func TestManySubmissions(t *testing.T) {
	d := openDevice(t, newProvider(t), driver.DeviceConfig{})
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
	n := rounds(4000)
	run(n)
	settles(t, 4<<20, func() { run(n) })
	require.Equal(t, uint32(total), uint32(small[0])|uint32(small[1])<<8|uint32(small[2])<<16)
}

func TestOpenAndClose(t *testing.T) {
	p := newProvider(t)
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
	n := rounds(100)
	cycle(n)
	settles(t, 8<<20, func() { cycle(n) })
}
