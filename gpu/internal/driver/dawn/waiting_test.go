//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"context"
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// slow submits dispatches of a kernel that runs for a while, and a copy of its results.
func slow(t testing.TB, d *device, to driver.BufferID) driver.Serial {
	t.Helper()
	n := 5
	if d.kind != driver.CPU {
		n = 500
	}
	id, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage | driver.CopySrc})
	require.NoError(t, err)
	p, g := kernel(t, d, `@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
	var x = a[id.x];
	for (var i = 0u; i < 60000u; i++) { x = x * 1664525u + 1013904223u; x = x ^ (x >> 13u); }
	a[id.x] = x;
}`, id, 256)
	commands := make([]driver.Command, n, n+1)
	for i := range commands {
		commands[i] = driver.Dispatch(p, g, 1, 50, 1)
	}
	serial, err := d.Submit(append(commands, driver.Copy(to, 0, id, 0, 256)))
	require.NoError(t, err)
	return serial
}

func TestWaitIsBoundedAndEnds(t *testing.T) {
	d := openDevice(t, newProvider(t, Options{}), driver.DeviceConfig{})
	staging, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.MapRead | driver.CopyDst})
	require.NoError(t, err)
	serial := slow(t, d, staging)
	start := time.Now()
	require.ErrorIs(t, d.Wait(context.Background(), serial, time.Millisecond), pass.ErrTimeout)
	require.Less(t, time.Since(start), time.Second)

	cause := errors.New("the user went home")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	require.ErrorIs(t, d.Wait(ctx, serial, patience), cause)

	// Maps that end early leave the buffer as it was, and usable.
	before := []byte{1, 2, 3}
	require.ErrorIs(t, d.ReadMapped(context.Background(), staging, 0, before, time.Millisecond), pass.ErrTimeout)
	require.ErrorIs(t, d.ReadMapped(ctx, staging, 0, before, patience), cause)
	require.Equal(t, []byte{1, 2, 3}, before)

	// While a map waits, nobody else may touch the buffer, and everyone may work.
	// Of two maps one waits for the device and the other is refused at once.
	mapped := make(chan error, 2)
	for range 2 {
		go func() { mapped <- d.ReadMapped(context.Background(), staging, 0, make([]byte, 4), patience) }()
	}
	require.ErrorIs(t, <-mapped, pass.ErrInvalid)
	done, err := d.Done()
	require.NoError(t, err)
	require.Less(t, done, serial, "the work is over too soon for this test")
	_, err = d.Submit([]driver.Command{driver.Clear(staging, 0, 4)})
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorIs(t, d.DestroyBuffer(staging), pass.ErrInvalid)
	_, err = d.Submit(nil)
	require.NoError(t, err)
	require.NoError(t, <-mapped)
	require.NoError(t, d.Wait(context.Background(), serial, patience))
	require.NoError(t, d.DestroyBuffer(staging))
}

func TestCloseWhileOthersWait(t *testing.T) {
	d := openDevice(t, newProvider(t, Options{}), driver.DeviceConfig{})
	staging, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.MapRead | driver.CopyDst})
	require.NoError(t, err)
	serial := slow(t, d, staging)
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

// lose makes the library lose the device.
func lose(t *testing.T, d *device, reason string) {
	t.Helper()
	force := findSymbol(d.opened, "wgpuDeviceForceLoss")
	if force == 0 {
		t.Skip("the library cannot be made to lose a device")
	}
	message := []byte(reason)
	purego.SyscallN(force, d.native, 1, uintptr(unsafe.Pointer(&message[0])), uintptr(len(message)))
}

// A device that the library has lost says so on every call, and can be closed.
func TestLostDevice(t *testing.T) {
	d := openDevice(t, newProvider(t, Options{}), driver.DeviceConfig{})
	ctx := context.Background()
	id, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage | driver.CopyDst})
	require.NoError(t, err)
	staging, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.MapRead | driver.CopyDst})
	require.NoError(t, err)
	p, g := addOne(t, d, id)
	serial, err := d.Submit([]driver.Command{driver.Dispatch(p, g, 1, 1, 1)})
	require.NoError(t, err)
	require.NoError(t, d.Wait(ctx, serial, patience))
	lose(t, d, "fell off\n  the bus\n")

	lost := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, pass.ErrDeviceLost)
		require.ErrorContains(t, err, "fell off; the bus")
	}
	lost(d.Err())
	_, err = d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage})
	lost(err)
	_, err = d.CreatePipeline(driver.PipelineDesc{Label: "x", Entry: "main", Source: "@compute @workgroup_size(1) fn main() { }"})
	lost(err)
	_, err = d.CreateBindGroup(p, []driver.Binding{{Buffer: id, Size: 256}})
	lost(err)
	_, err = d.Submit([]driver.Command{driver.Dispatch(p, g, 1, 1, 1)})
	lost(err)
	_, err = d.Done()
	lost(err)
	_, err = d.CreateQueries(1)
	lost(err)
	lost(d.Wait(ctx, serial, patience))
	lost(d.ReadMapped(ctx, staging, 0, make([]byte, 4), patience))
	lost(d.WriteMapped(ctx, staging, 0, make([]byte, 4), patience))
	lost(d.Write(id, 0, make([]byte, 4)))
	lost(d.DestroyBuffer(id))
	lost(d.DestroyPipeline(p))
	lost(d.DestroyBindGroup(g))
	require.NoError(t, d.Close())
	lost(d.Err())
}

// The loss ends waits that have begun.
func TestLossEndsWaits(t *testing.T) {
	d := openDevice(t, newProvider(t, Options{}), driver.DeviceConfig{})
	staging, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.MapRead | driver.CopyDst})
	require.NoError(t, err)
	serial := slow(t, d, staging)
	waits := make(chan error, 2)
	go func() { waits <- d.Wait(context.Background(), serial, patience) }()
	go func() { waits <- d.ReadMapped(context.Background(), staging, 0, make([]byte, 4), patience) }()
	time.Sleep(5 * time.Millisecond)
	lose(t, d, "gone")
	for range 2 {
		require.ErrorIs(t, <-waits, pass.ErrDeviceLost)
	}
}

// What the library reports outside of any call becomes the device's own error, and does
// not land on the next call.
func TestLateError(t *testing.T) {
	d := openDevice(t, newProvider(t, Options{}), driver.DeviceConfig{})
	onUncaptured(d.id, errorOutOfMemory, "came\n late\n")
	id, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage | driver.CopyDst})
	require.NoError(t, err)
	require.NoError(t, d.Write(id, 0, make([]byte, 4)))
	serial, err := d.Submit(nil)
	require.NoError(t, err)
	for range 2 {
		require.ErrorIs(t, d.Err(), pass.ErrOutOfMemory)
		require.ErrorContains(t, d.Err(), "came; late")
	}
	require.ErrorIs(t, d.Wait(context.Background(), serial, patience), pass.ErrOutOfMemory)
}

// The library may tell of a loss in an error alone.
func TestLossInAnError(t *testing.T) {
	d := openDevice(t, newProvider(t, Options{}), driver.DeviceConfig{})
	onUncaptured(d.id, errorValidation, "vkQueueSubmit failed with VK_ERROR_DEVICE_LOST")
	for range 2 {
		_, err := d.Submit(nil)
		require.ErrorIs(t, err, pass.ErrDeviceLost)
	}
	require.ErrorIs(t, d.Err(), pass.ErrDeviceLost)
}

// What comes after the caller has gone is given back.
func TestAbandon(t *testing.T) {
	p := newProvider(t, Options{})
	op := begin(nil, theCallbacks().object)
	options := &adapterOptions{featureLevel: featureLevelCore, backend: p.adapters[0].wish.backend}
	future := p.library.start(op, instanceRequestAdapter, 2, p.instance, uintptr(unsafe.Pointer(options)), 0, 0)
	id := op.id
	p.library.abandon(p.instance, future, op, adapterRelease)
	require.Eventually(t, func() bool {
		_, waiting := operations.get(id)
		return !waiting
	}, patience, time.Millisecond)
}

func TestSentinels(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]error{
		"vkAllocateMemory failed with VK_ERROR_OUT_OF_DEVICE_MEMORY": pass.ErrOutOfMemory,
		"Failed to allocate: out of memory":                          pass.ErrOutOfMemory,
		"[Device \"tandem\"] is lost.":                               pass.ErrDeviceLost,
		"vkQueueSubmit failed with VK_ERROR_DEVICE_LOST":             pass.ErrDeviceLost,
		"entry point \"x\" doesn't exist":                            pass.ErrInvalid,
	} {
		require.Equal(t, want, sentinelFor(errorValidation, message), message)
	}
	require.Equal(t, pass.ErrOutOfMemory, sentinelFor(errorOutOfMemory, ""))
}
