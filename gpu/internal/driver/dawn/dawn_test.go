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

// best is the first adapter that is no software, else the first.
func best(t testing.TB, p driver.Provider) driver.Adapter {
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

func openDevice(t testing.TB, p driver.Provider, cfg driver.DeviceConfig) *device {
	t.Helper()
	d, err := p.Open(context.Background(), best(t, p).Index, cfg)
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
	features := best(t, p).Features &^ driver.FeatureMappedStorage // it allows what the suite wants refused
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
		require.Equal(t, best(t, p).Limits.Override(low), d.Limits())
		return d
	})
}

func TestConformanceUnchecked(t *testing.T) {
	p := newProvider(t, Options{Unchecked: true})
	drivertest.Run(t, func(t testing.TB) driver.Device {
		return openDevice(t, p, driver.DeviceConfig{MemoryBudget: drivertest.Budget})
	})
}

// addOne makes a kernel that adds 1 to 64 words of a buffer.
func addOne(t testing.TB, d driver.Device, id driver.BufferID) (driver.PipelineID, driver.BindGroupID) {
	t.Helper()
	return kernel(t, d, `@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { a[id.x] = a[id.x] + 1u; }`, id, 256)
}

// kernel makes a pipeline with one buffer that it reads and writes.
func kernel(t testing.TB, d driver.Device, source string, id driver.BufferID, size uint64) (driver.PipelineID, driver.BindGroupID) {
	t.Helper()
	p, err := d.CreatePipeline(driver.PipelineDesc{
		Label: t.Name(), Entry: "main", Bindings: []driver.BindingKind{driver.StorageReadWrite}, Source: source,
	})
	require.NoError(t, err)
	g, err := d.CreateBindGroup(p, []driver.Binding{{Buffer: id, Size: size}})
	require.NoError(t, err)
	return p, g
}
