package drivertest

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
)

// Rounds scales a stress test: TANDEM_STRESS=10 runs ten times as long.
func Rounds(n int) int {
	if testing.Short() {
		return max(n/4, 1)
	}
	if factor, err := strconv.Atoi(os.Getenv("TANDEM_STRESS")); err == nil && factor > 0 {
		return n * factor
	}
	return n
}

// Collect runs the collector all the time, until the test is over.
func Collect(t testing.TB) {
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

// Settles fails the test if memory grows by more than the allowance each time that the
// work is done. What grows at first is a driver, or the race detector, that takes the
// memory it will keep; a leak goes on.
func Settles(t testing.TB, allowance int, work func()) {
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

// Best is the first adapter that is no software, else the first.
func Best(t testing.TB, p driver.Provider) driver.Adapter {
	t.Helper()
	list, err := p.Adapters(context.Background())
	require.NoError(t, err)
	for _, a := range list {
		if a.Type != driver.CPU {
			return a
		}
	}
	return list[0]
}

// Updating makes a pipeline with one buffer that it reads and writes, and its bind group.
func Updating(t testing.TB, d driver.Device, source string, id driver.BufferID, size uint64) (driver.PipelineID, driver.BindGroupID) {
	t.Helper()
	p, err := d.CreatePipeline(driver.PipelineDesc{
		Label: t.Name(), Entry: "main", Bindings: []driver.BindingKind{driver.StorageReadWrite}, Source: source,
	})
	require.NoError(t, err)
	g, err := d.CreateBindGroup(p, []driver.Binding{{Buffer: id, Size: size}})
	require.NoError(t, err)
	return p, g
}

// AddOne makes a pipeline that adds 1 to the 64 words of a buffer, and its bind group.
func AddOne(t testing.TB, d driver.Device, id driver.BufferID) (driver.PipelineID, driver.BindGroupID) {
	t.Helper()
	return Updating(t, d, `@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { a[id.x] = a[id.x] + 1u; }`, id, 256)
}

// RoundTrips writes a few bytes through a mapping, copies them and reads them through
// another, n times, and calls each after every one.
func RoundTrips(t testing.TB, d driver.Device, n int, each func()) {
	t.Helper()
	ctx := context.Background()
	up, err := d.CreateBuffer(driver.BufferDesc{Size: 64, Usage: driver.MapWrite | driver.CopySrc})
	require.NoError(t, err)
	down, err := d.CreateBuffer(driver.BufferDesc{Size: 64, Usage: driver.MapRead | driver.CopyDst})
	require.NoError(t, err)
	got := make([]byte, 8)
	for i := range n {
		want := []byte{byte(i), byte(i >> 8), 1, 2, 3, 4, 5, 6}
		require.NoError(t, d.WriteMapped(ctx, up, 8, want, patience))
		_, err := d.Submit([]driver.Command{driver.Copy(down, 0, up, 8, 8)})
		require.NoError(t, err)
		require.NoError(t, d.ReadMapped(ctx, down, 0, got, patience))
		require.Equal(t, want, got)
		each()
	}
}

// ManySubmissions makes n submissions, and again while memory grows by more than the
// allowance.
func ManySubmissions(t testing.TB, d driver.Device, n, allowance int) {
	t.Helper()
	ctx := context.Background()
	id, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage | driver.CopySrc | driver.CopyDst})
	require.NoError(t, err)
	staging, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.MapRead | driver.CopyDst})
	require.NoError(t, err)
	p, g := AddOne(t, d, id)
	commands := []driver.Command{driver.Dispatch(p, g, 1, 1, 1), driver.Copy(staging, 0, id, 0, 256)}
	small := make([]byte, 4)
	total := 0
	run := func() {
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
	run()
	Settles(t, allowance, run)
	require.Equal(t, uint32(total), uint32(small[0])|uint32(small[1])<<8|uint32(small[2])<<16)
}

// OpenAndClose opens n devices, has them work and closes them, and again while memory
// grows by more than the allowance.
func OpenAndClose(t testing.TB, p driver.Provider, n, allowance int) {
	t.Helper()
	best := Best(t, p).Index
	Settles(t, allowance, func() {
		for range n {
			d, err := p.Open(context.Background(), best, driver.DeviceConfig{})
			require.NoError(t, err)
			id, err := d.CreateBuffer(driver.BufferDesc{Size: 1 << 20, Usage: driver.Storage | driver.CopyDst})
			require.NoError(t, err)
			pipeline, g := AddOne(t, d, id)
			_, err = d.Submit([]driver.Command{driver.Dispatch(pipeline, g, 1, 1, 1)})
			require.NoError(t, err)
			require.NoError(t, d.Close())
			require.Zero(t, d.Ledger())
		}
	})
}
