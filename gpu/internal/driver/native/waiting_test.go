//go:build cgo && !js && (linux || darwin || windows)

package native

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
)

func TestWaitIsBoundedAndEnds(t *testing.T) {
	d := openDevice(t, newProvider(t), driver.DeviceConfig{})
	drivertest.WaitsEnd(t, d, 20)
	require.Empty(t, d.(*device).orphans, "the state of maps that ended early")
}

func TestCloseWhileOthersWait(t *testing.T) {
	drivertest.ClosesWhileOthersWait(t, openDevice(t, newProvider(t), driver.DeviceConfig{}), 2)
}

// Close leaves a mapping alone until its copy is done.
func TestCloseWaitsForCopies(t *testing.T) {
	d := openDevice(t, newProvider(t), driver.DeviceConfig{}).(*device)
	d.mu.Lock()
	d.mapping++
	d.mu.Unlock()
	closed := make(chan error)
	go func() { closed <- d.Close() }()
	select {
	case <-closed:
		t.Fatal("closed while a mapping was being copied")
	case <-time.After(20 * time.Millisecond):
	}
	d.mu.Lock()
	d.mapping--
	d.idle.Broadcast()
	d.mu.Unlock()
	require.NoError(t, <-closed)
}

func TestBusy(t *testing.T) {
	d := openDevice(t, newProvider(t), driver.DeviceConfig{}).(*device)
	serial, err := d.Submit(nil)
	require.NoError(t, err)
	require.NoError(t, d.Wait(context.Background(), serial, patience))

	// As if that many were on their way: a software adapter is too quick, or takes
	// its time in Submit.
	d.mu.Lock()
	d.serial += driver.MaxInFlight
	d.mu.Unlock()
	_, err = d.Submit(nil)
	require.ErrorIs(t, err, driver.ErrBusy)
	d.mu.Lock()
	d.serial -= driver.MaxInFlight
	d.mu.Unlock()
	_, err = d.Submit(nil)
	require.NoError(t, err)
}

// A device that the library has lost says so on every call, and can be closed.
func TestLostDevice(t *testing.T) {
	d := openDevice(t, newProvider(t), driver.DeviceConfig{}).(*device)
	drivertest.SaysThatItIsLost(t, d, d.lose)
}
