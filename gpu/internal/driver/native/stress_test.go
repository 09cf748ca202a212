//go:build cgo && !js && (linux || darwin || windows)

package native

import (
	"testing"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
)

// The binding crashes here: it lets the library keep pointers to Go variables.
func TestMapsWhileCollecting(t *testing.T) {
	d := openDevice(t, newProvider(t), driver.DeviceConfig{})
	drivertest.Collect(t)
	drivertest.RoundTrips(t, d, drivertest.Rounds(5000), func() {})
}

func TestEightGoroutinesWhileCollecting(t *testing.T) {
	d := openDevice(t, newProvider(t), driver.DeviceConfig{})
	drivertest.Collect(t)
	drivertest.Hammer(t, d, 8, drivertest.Rounds(30))
}

func TestManySubmissions(t *testing.T) {
	d := openDevice(t, newProvider(t), driver.DeviceConfig{})
	drivertest.ManySubmissions(t, d, drivertest.Rounds(4000), 4<<20)
}

func TestOpenAndClose(t *testing.T) {
	drivertest.OpenAndClose(t, newProvider(t), drivertest.Rounds(100), 8<<20)
}
