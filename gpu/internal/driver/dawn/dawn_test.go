//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

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

// skip skips the test aloud, or fails it if TANDEM_REQUIRE_DAWN=1.
func skip(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("TANDEM_REQUIRE_DAWN") == "1" {
		t.Fatalf("TANDEM_REQUIRE_DAWN=1: %v", err)
	}
	t.Skipf("SKIPPED, no Dawn library or no adapter for it (make dawn-test brings both): %v", err)
}

// newProvider returns a provider with at least one adapter. Without one the test is
// skipped.
func newProvider(t testing.TB, options Options) *provider {
	t.Helper()
	options, err := options.FromEnvironment(os.Getenv)
	require.NoError(t, err)
	if options.Cache == "" {
		options.Cache = cacheOff
	}
	p, err := New(options)
	if err != nil {
		skip(t, err)
	}
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	if _, err := p.Adapters(context.Background()); err != nil {
		skip(t, err)
	}
	return p.(*provider)
}

func openDevice(t testing.TB, p driver.Provider, cfg driver.DeviceConfig) *device {
	t.Helper()
	d, err := p.Open(context.Background(), drivertest.Best(t, p).Index, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, d.Close())
		require.Zero(t, d.Ledger())
	})
	return d.(*device)
}

func TestAdapters(t *testing.T) {
	p := newProvider(t, Options{})
	list, err := p.Adapters(context.Background())
	require.NoError(t, err)
	t.Logf("library %s, column %s", p.Library(), p.library.name)
	for i, a := range list {
		t.Logf("%d: %s (%s, %s, %s, driver %q, features %v, subgroups %d to %d)", i, a.Name, a.Vendor, a.API, a.Type, a.Driver, a.Features, a.MinSubgroup, a.MaxSubgroup)
		t.Logf("matrices %v", a.Matrices)
		t.Logf("%+v", a.Limits)
		require.Equal(t, i, a.Index)
		require.NotEmpty(t, a.Name)
		require.Contains(t, []driver.API{driver.Vulkan, driver.Metal, driver.D3D12}, a.API)
		require.GreaterOrEqual(t, a.Limits.MaxBufferSize, uint64(1<<28))
		require.GreaterOrEqual(t, a.Limits.MaxStorageBuffers, uint32(8))
	}
	again, err := p.Adapters(context.Background())
	require.NoError(t, err)
	require.Equal(t, list, again)
}

func TestConformance(t *testing.T) {
	p := newProvider(t, Options{})
	features := drivertest.Best(t, p).Features &^ driver.FeatureMappedStorage // it allows what the suite wants refused
	drivertest.Run(t, func(t testing.TB) driver.Device {
		return openDevice(t, p, driver.DeviceConfig{Label: t.Name(), MemoryBudget: drivertest.Budget, Features: features})
	})
}

// A device opened with low limits is one: all of the suite runs on it.
func TestConformanceLowLimits(t *testing.T) {
	p := newProvider(t, Options{})
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

func TestConformanceUnchecked(t *testing.T) {
	p := newProvider(t, Options{Unchecked: true})
	drivertest.Run(t, func(t testing.TB) driver.Device {
		return openDevice(t, p, driver.DeviceConfig{MemoryBudget: drivertest.Budget})
	})
}
