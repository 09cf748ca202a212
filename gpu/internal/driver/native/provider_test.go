//go:build cgo && !js && (linux || darwin || windows)

package native

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cogentcore/webgpu/wgpu"
	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

func TestAdapters(t *testing.T) {
	p := newProvider(t)
	list, err := p.Adapters(context.Background())
	require.NoError(t, err)
	for i, a := range list {
		t.Logf("%d: %s (%s, %s, %s, driver %q, features %v)", i, a.Name, a.Vendor, a.API, a.Type, a.Driver, a.Features)
		t.Logf("%+v", a.Limits)
		require.Equal(t, i, a.Index)
		require.NotEmpty(t, a.Name)
		require.False(t, strings.HasPrefix(a.Name, "0x"), "the name is a number")
		require.Contains(t, []driver.API{driver.Vulkan, driver.Metal, driver.D3D12}, a.API)
		require.GreaterOrEqual(t, a.Limits.MaxBufferSize, uint64(1<<28))
		require.GreaterOrEqual(t, a.Limits.MaxStorageBuffers, uint32(8))
		require.Zero(t, a.Features&(driver.FeatureF16|driver.FeatureSubgroups), "this library cannot compile them")
	}
	again, err := p.Adapters(context.Background())
	require.NoError(t, err)
	require.Equal(t, list, again)
}

func TestOpenRefusals(t *testing.T) {
	p := newProvider(t)
	ctx := context.Background()
	a := drivertest.Best(t, p)
	for _, index := range []int{-1, 1000} {
		_, err := p.Open(ctx, index, driver.DeviceConfig{})
		require.ErrorIs(t, err, pass.ErrNoDevice)
	}
	_, err := p.Open(ctx, a.Index, driver.DeviceConfig{Limits: driver.Limits{MaxInvocations: 1 << 20, MaxWorkgroups: 1 << 30}})
	require.ErrorIs(t, err, pass.ErrUnsupported)
	require.ErrorContains(t, err, "MaxInvocations wanted 1048576, offered ")
	require.ErrorContains(t, err, "MaxWorkgroups wanted 1073741824, offered ")
	_, err = p.Open(ctx, a.Index, driver.DeviceConfig{Features: driver.FeatureSubgroups})
	require.ErrorIs(t, err, pass.ErrUnsupported)
	require.ErrorContains(t, err, "features wanted subgroups")

	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = p.Open(ended, a.Index, driver.DeviceConfig{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestProviderClose(t *testing.T) {
	p := newProvider(t)
	d, err := p.Open(context.Background(), drivertest.Best(t, p).Index, driver.DeviceConfig{})
	require.NoError(t, err)
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	_, err = p.Adapters(context.Background())
	require.ErrorIs(t, err, pass.ErrClosed)

	// Open devices outlive the provider.
	serial, err := d.Submit(nil)
	require.NoError(t, err)
	require.NoError(t, d.Wait(context.Background(), serial, patience))
	require.NoError(t, d.Close())
}

const childVariable = "TANDEM_NATIVE_TEST_CHILD"

// TestMain lets the test program stand in for a program on a machine with a broken
// installation: it lists adapters and prints the error.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	p, err := New(Options{})
	if err == nil {
		_, err = p.Adapters(context.Background())
	}
	if err == nil {
		os.Stdout.WriteString("no error\n")
	} else {
		os.Stdout.WriteString(err.Error() + "\n")
	}
	os.Exit(0)
}

// child runs the stand-in and returns what it printed; it must not crash or print to
// standard error.
func child(t *testing.T, name string, args []string, env ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "XDG_RUNTIME_DIR=") && !strings.HasPrefix(v, "VK_") {
			command.Env = append(command.Env, v)
		}
	}
	command.Env = append(append(command.Env, childVariable+"=1"), env...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(t, err, "%s", stderr.String())
	require.Empty(t, stderr.String())
	return strings.TrimSpace(string(out))
}

func TestBrokenDriverPath(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the Vulkan loader is the only way on Linux alone")
	}
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing.json")
	nonsense := filepath.Join(t.TempDir(), "nonsense.json")
	require.NoError(t, os.WriteFile(nonsense, []byte(`{"file_format_version": "1.0.0", "ICD": {"library_path": "/nowhere.so", "api_version": "1.3.0"}}`), 0o600))
	for _, variable := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
		for path, state := range map[string]string{missing: "cannot be read", nonsense: "is there"} {
			got := child(t, os.Args[0], nil, variable+"="+path)
			require.Contains(t, got, "native: no adapter: ")
			require.Contains(t, got, variable+" names "+path+", which "+state)
			require.True(t, strings.HasSuffix(got, pass.ErrNoDevice.Error()), got)
			require.NotContains(t, got, "\n")
		}
	}
}

// Nothing is printed to standard error by a successful start either.
func TestSilence(t *testing.T) {
	newProvider(t)
	require.Equal(t, "no error", child(t, os.Args[0], nil))
}

// The loader is hidden behind an empty file in a mount namespace of its own, where the
// machine allows that.
func TestNoLoader(t *testing.T) {
	loaders, _ := filepath.Glob("/usr/lib/*-linux-gnu/libvulkan.so.1")
	unshare, err := exec.LookPath("unshare")
	if err != nil || len(loaders) != 1 || exec.Command(unshare, "--mount", "true").Run() != nil {
		t.Skip("needs a Vulkan loader, unshare and the right to use it")
	}
	t.Parallel()
	got := child(t, unshare, []string{"--mount", "sh", "-c", `mount --bind /dev/null "$1" && exec "$2"`, "sh", loaders[0], os.Args[0]})
	require.Contains(t, got, "native: no adapter: ")
	require.True(t, strings.HasSuffix(got, pass.ErrNoDevice.Error()), got)
}

func TestLookedFor(t *testing.T) {
	t.Parallel()
	lib, icd := t.TempDir(), t.TempDir()
	env := map[string]string{}
	ask := func() string {
		return lookedForVulkan(func(k string) string { return env[k] }, []string{filepath.Join(lib, "a"), lib}, []string{icd})
	}
	require.Contains(t, ask(), "the Vulkan loader libvulkan.so.1 was not found in "+lib)
	require.Contains(t, ask(), "no driver manifest in "+icd)
	require.Contains(t, ask(), "are not set")
	require.NoError(t, os.WriteFile(filepath.Join(lib, "libvulkan.so.1"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(icd, "x.json"), nil, 0o600))
	env["VK_DRIVER_FILES"] = "/no/such:" + lib
	require.Contains(t, ask(), "the Vulkan loader "+filepath.Join(lib, "libvulkan.so.1")+" offers no device")
	require.Contains(t, ask(), "driver manifests "+filepath.Join(icd, "x.json"))
	require.Contains(t, ask(), "VK_DRIVER_FILES names /no/such, which cannot be read; VK_DRIVER_FILES names "+lib+", which is there")
}

func TestBounded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	hang, discarded := make(chan int), make(chan int)
	call := func() (int, error) {
		cancel() // not before: a call whose context has ended is not made
		return <-hang, nil
	}
	_, err := bounded(ctx, "test", call, func(n int) { discarded <- n })
	require.ErrorIs(t, err, context.Canceled)
	hang <- 7
	require.Equal(t, 7, <-discarded)
	_, err = bounded(ctx, "test", call, nil)
	require.ErrorIs(t, err, context.Canceled, "it was over before the call")
	value, err := bounded(t.Context(), "test", func() (int, error) { return 8, nil }, nil)
	require.NoError(t, err)
	require.Equal(t, 8, value)
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		info                    wgpu.AdapterInfo
		name, description, kind string
	}{
		{wgpu.AdapterInfo{Name: "0x0", VendorId: 0x10005, DriverDescription: "llvmpipe ", AdapterType: wgpu.AdapterTypeCPU}, "llvmpipe", "", "cpu"},
		{wgpu.AdapterInfo{Name: "NVIDIA H200", VendorId: 0x10de, DriverDescription: "580.1", AdapterType: wgpu.AdapterTypeDiscreteGPU}, "NVIDIA H200", "580.1", "discrete"},
		{wgpu.AdapterInfo{Name: "0x2335", VendorId: 0x10de, DeviceId: 0x2335, AdapterType: wgpu.AdapterTypeCPU}, "NVIDIA device 0x2335", "", "virtual"},
		{wgpu.AdapterInfo{Name: "", VendorId: 0x77, DeviceId: 1, AdapterType: wgpu.AdapterTypeUnknown}, "0x77 device 0x1", "", "unknown"},
		{wgpu.AdapterInfo{Name: "Iris", VendorId: 0x8086, AdapterType: wgpu.AdapterTypeIntegratedGPU}, "Iris", "", "integrated"},
	} {
		name, description := names(c.info)
		require.Equal(t, c.name, name)
		require.Equal(t, c.description, description)
		require.EqualValues(t, c.kind, typeOf(c.info))
	}
}

func TestSentinels(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]error{
		"Validation Error; Not enough memory left": pass.ErrOutOfMemory,
		"Out of memory":              pass.ErrOutOfMemory,
		"Parent device is lost":      pass.ErrDeviceLost,
		"Unable to find entry point": pass.ErrInvalid,
	} {
		require.Equal(t, want, sentinelFor(1, message), message)
	}
	require.Equal(t, pass.ErrOutOfMemory, sentinelFor(2, ""))
	require.Equal(t, pass.ErrDeviceLost, sentinelFor(5, ""))
}
