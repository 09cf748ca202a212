package gpu

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest"
)

// What the native library's binding allocates for each run.
const nativeAllocs = 10

// The suite on the adapter under test, as Open finds it.
func TestConformance(t *testing.T) {
	testAdapter(t)
	cfg := Config{Adapter: kindSoftware, API: "vulkan"}
	if onHardware() {
		cfg.Adapter = ""
	}
	passtest.Config{Allocs: nativeAllocs}.Run(t, func(t testing.TB) pass.Device {
		dev, err := Open(context.Background(), cfg)
		require.NoError(t, err)
		return dev
	})
}

// The suite as a lesser device sees it, whose memory is its own.
func TestConformanceWithLowLimits(t *testing.T) {
	p, a := testAdapter(t)
	limits := driver.Limits{
		MaxStorageBindingSize: 1 << 20, MaxStorageBuffers: 8,
		MaxWorkgroups: 16, MaxInvocations: 256, MaxWorkgroupStorage: 16 << 10,
	}
	passtest.Config{Allocs: nativeAllocs}.Run(t, func(t testing.TB) pass.Device {
		drv, err := p.Open(context.Background(), a.Index, driver.DeviceConfig{Limits: limits})
		require.NoError(t, err)
		return newDevice(drv, a, options{provider: p.Name(), watchdog: time.Minute})
	})
}
