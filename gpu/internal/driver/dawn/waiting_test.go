//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"context"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

// many is how many slow dispatches take long enough.
func many(d *device) int {
	if d.kind != driver.CPU {
		return 500
	}
	return 5
}

func TestWaitIsBoundedAndEnds(t *testing.T) {
	d := openDevice(t, newProvider(t, Options{}), driver.DeviceConfig{})
	drivertest.WaitsEnd(t, d, many(d))
}

func TestCloseWhileOthersWait(t *testing.T) {
	d := openDevice(t, newProvider(t, Options{}), driver.DeviceConfig{})
	drivertest.ClosesWhileOthersWait(t, d, many(d))
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
	drivertest.SaysThatItIsLost(t, d, func(reason string) { lose(t, d, reason) })
}

// The loss ends waits that have begun. Work that was over before that shows nothing.
func TestLossEndsWaits(t *testing.T) {
	p := newProvider(t, Options{})
	for factor := 1; factor <= 32; factor *= 2 {
		d := openDevice(t, p, driver.DeviceConfig{})
		staging, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.MapRead | driver.CopyDst})
		require.NoError(t, err)
		serial := drivertest.Slow(t, d, factor*many(d), staging)
		waits := make(chan error, 2)
		go func() { waits <- d.Wait(context.Background(), serial, patience) }()
		go func() { waits <- d.ReadMapped(context.Background(), staging, 0, make([]byte, 4), patience) }()
		time.Sleep(5 * time.Millisecond)
		lose(t, d, "gone")
		ended := true
		for range 2 {
			if err := <-waits; err == nil {
				ended = false
			} else {
				require.ErrorIs(t, err, pass.ErrDeviceLost)
			}
		}
		if ended {
			return
		}
	}
	t.Fatal("no wait ended before its work")
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
