package drivertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// slowKernel runs for a while. Mesa's software driver cuts loops off at 65536 rounds, so
// it is dispatched in many workgroups too.
const slowKernel = `@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
	var x = a[id.x];
	for (var i = 0u; i < 60000u; i++) { x = x * 1664525u + 1013904223u; x = x ^ (x >> 13u); }
	a[id.x] = x;
}`

// Slow submits n dispatches of a kernel that runs for a while, and a copy of 256 bytes of
// its results. It is one submission because Mesa's software driver runs a second one in
// Submit's own time.
func Slow(t testing.TB, d driver.Device, n int, to driver.BufferID) driver.Serial {
	t.Helper()
	id, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage | driver.CopySrc})
	require.NoError(t, err)
	p, err := d.CreatePipeline(driver.PipelineDesc{Label: "slow", Entry: "main", Bindings: []driver.BindingKind{driver.StorageReadWrite}, Source: slowKernel})
	require.NoError(t, err)
	g, err := d.CreateBindGroup(p, []driver.Binding{{Buffer: id, Size: 256}})
	require.NoError(t, err)
	commands := make([]driver.Command, n, n+1)
	for i := range commands {
		commands[i] = driver.Dispatch(p, g, 1, 50, 1)
	}
	serial, err := d.Submit(append(commands, driver.Copy(to, 0, id, 0, 256)))
	require.NoError(t, err)
	return serial
}

// WaitsEnd checks that waits and maps end when they should, while n slow dispatches run:
// after their time, with their context, or when the work is done. Where the work was over
// before all was seen, on a quick device or because the caller stood still, it tries again
// with more.
func WaitsEnd(t testing.TB, d driver.Device, n int) {
	t.Helper()
	for range 6 {
		if waitsEnd(t, d, n) {
			return
		}
		t.Logf("%d slow dispatches were over too soon", n)
		n *= 2
	}
	t.Fatal("no wait ended before its work")
}

// waitsEnd reports whether the work took long enough.
func waitsEnd(t testing.TB, d driver.Device, n int) bool {
	t.Helper()
	staging, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.MapRead | driver.CopyDst})
	require.NoError(t, err)
	serial := Slow(t, d, n, staging)
	// early reports whether a call ended with an error before the work did. Without an error
	// the work must be done.
	early := func(err, want error) bool {
		t.Helper()
		if err != nil {
			require.ErrorIs(t, err, want)
			return true
		}
		var done driver.Serial
		for range 100 { // it may be told a moment later
			done, err = d.Done()
			require.NoError(t, err)
			if done >= serial {
				return false
			}
			time.Sleep(time.Millisecond)
		}
		require.GreaterOrEqual(t, done, serial, "without an error, and the work is not done")
		return false
	}
	cause := errors.New("the user went home")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	least := patience
	for range 3 {
		start := time.Now()
		if !early(d.Wait(context.Background(), serial, time.Millisecond), pass.ErrTimeout) {
			return false
		}
		least = min(least, time.Since(start))
	}
	require.Less(t, least, time.Second, "a wait of a millisecond")
	// Maps that end early leave the buffer as it was, and usable.
	before := []byte{1, 2, 3}
	if !early(d.Wait(ctx, serial, patience), cause) ||
		!early(d.ReadMapped(context.Background(), staging, 0, before, time.Millisecond), pass.ErrTimeout) ||
		!early(d.ReadMapped(ctx, staging, 0, before, patience), cause) {
		return false
	}
	require.Equal(t, []byte{1, 2, 3}, before)

	// While a map waits, nobody else may touch the buffer, and everyone may work.
	// Of two maps one waits for the device and the other is refused at once.
	mapped := make(chan error, 2)
	for range 2 {
		go func() { mapped <- d.ReadMapped(context.Background(), staging, 0, make([]byte, 4), patience) }()
	}
	if !early(<-mapped, pass.ErrInvalid) {
		if err := <-mapped; err != nil {
			require.ErrorIs(t, err, pass.ErrInvalid)
		}
		return false
	}
	_, cleared := d.Submit([]driver.Command{driver.Clear(staging, 0, 4)})
	if !early(cleared, pass.ErrInvalid) || !early(d.DestroyBuffer(staging), pass.ErrInvalid) {
		require.NoError(t, <-mapped)
		return false
	}
	_, err = d.Submit(nil)
	require.NoError(t, err)
	require.NoError(t, <-mapped)
	require.NoError(t, d.Wait(context.Background(), serial, patience))
	require.NoError(t, d.DestroyBuffer(staging))
	return true
}

// ClosesWhileOthersWait checks that Close ends waits and maps for n slow dispatches.
func ClosesWhileOthersWait(t testing.TB, d driver.Device, n int) {
	t.Helper()
	staging, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.MapRead | driver.CopyDst})
	require.NoError(t, err)
	serial := Slow(t, d, n, staging)
	waits := make(chan error, 2)
	go func() { waits <- d.Wait(context.Background(), serial, patience) }()
	go func() { waits <- d.ReadMapped(context.Background(), staging, 0, make([]byte, 4), patience) }()
	time.Sleep(5 * time.Millisecond)
	require.NoError(t, d.Close())
	for range 2 {
		if err := <-waits; err != nil {
			require.ErrorIs(t, err, pass.ErrClosed)
		}
	}
}
