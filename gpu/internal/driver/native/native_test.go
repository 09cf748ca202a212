//go:build cgo && !js && (linux || darwin || windows)

package native

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
)

const patience = 5 * time.Minute

// newProvider returns a provider with at least one adapter. Without one the test is
// skipped, or fails if TANDEM_REQUIRE_GPU=1.
func newProvider(t testing.TB) driver.Provider {
	t.Helper()
	p, err := New(Options{Debug: os.Getenv("TANDEM_GPU_DEBUG") != ""})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	if _, err := p.Adapters(context.Background()); err != nil {
		if os.Getenv("TANDEM_REQUIRE_GPU") == "1" {
			t.Fatalf("TANDEM_REQUIRE_GPU=1, and there is no adapter: %v", err)
		}
		t.Skipf("SKIPPED, no WebGPU adapter (Debian: apt-get install libvulkan1 mesa-vulkan-drivers): %v", err)
	}
	return p
}

func openDevice(t testing.TB, p driver.Provider, cfg driver.DeviceConfig) driver.Device {
	t.Helper()
	d, err := p.Open(context.Background(), drivertest.Best(t, p).Index, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, d.Close())
		require.Zero(t, d.Ledger())
	})
	return d
}

func TestConformance(t *testing.T) {
	p := newProvider(t)
	a := drivertest.Best(t, p)
	t.Logf("%s, %s, %s", a.Name, a.API, a.Type)
	drivertest.Run(t, func(t testing.TB) driver.Device {
		return openDevice(t, p, driver.DeviceConfig{
			Label: t.Name(), MemoryBudget: drivertest.Budget, Features: a.Features & driver.FeatureTimestamps,
		})
	})
}

// A device opened with low limits is one: all of the suite runs on it.
func TestConformanceLowLimits(t *testing.T) {
	p := newProvider(t)
	low := driver.Limits{
		MaxBufferSize: 32 << 20, MaxStorageBindingSize: 1 << 20, MaxWorkgroups: 16, MaxWorkgroupStorage: 16 << 10,
		MaxStorageBuffers: 8, StorageOffsetAlignment: 256, UniformOffsetAlignment: 256,
	}
	drivertest.Run(t, func(t testing.TB) driver.Device {
		d := openDevice(t, p, driver.DeviceConfig{Limits: low, MemoryBudget: drivertest.Budget})
		require.Equal(t, drivertest.Best(t, p).Limits.Override(low), d.Limits())
		return d
	})
}

func TestMappedStorage(t *testing.T) {
	p := newProvider(t)
	a := drivertest.Best(t, p)
	if a.Features&driver.FeatureMappedStorage == 0 {
		t.Skipf("%s has no mapped storage", a.Name)
	}
	ctx := context.Background()
	d := openDevice(t, p, driver.DeviceConfig{Features: driver.FeatureMappedStorage})
	id, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.MapWrite | driver.MapRead | driver.Storage})
	require.NoError(t, err)
	pipeline, group := drivertest.AddOne(t, d, id)
	want := []byte{41, 0, 0, 0}
	require.NoError(t, d.WriteMapped(ctx, id, 0, want, patience))
	_, err = d.Submit([]driver.Command{driver.Dispatch(pipeline, group, 1, 1, 1)})
	require.NoError(t, err)
	got := make([]byte, 4)
	require.NoError(t, d.ReadMapped(ctx, id, 0, got, patience))
	require.Equal(t, []byte{42, 0, 0, 0}, got)
}
