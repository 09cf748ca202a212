//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	_, err := Find(filepath.Join(dir, "nothing.so"))
	require.ErrorIs(t, err, pass.ErrNoDevice)
	require.ErrorContains(t, err, "nothing.so: no such file")
	_, err = Find(dir)
	require.ErrorIs(t, err, pass.ErrNoDevice)
	require.ErrorContains(t, err, dir+" is no file")
	// A bare name would be searched for by the system: it becomes a path.
	t.Chdir(dir)
	_, err = Find("libm.so.6")
	require.ErrorIs(t, err, pass.ErrNoDevice)

	if runtime.GOOS != "linux" {
		return
	}
	_, err = Find("")
	require.ErrorIs(t, err, pass.ErrNoDevice)
	require.ErrorContains(t, err, "the cache folder's; set TANDEM_DAWN for another")
	want := filepath.Join(dir, "tandem", "dawn", Version, "libwebgpu_dawn.so")
	require.NoError(t, os.MkdirAll(filepath.Dir(want), 0o700))
	require.NoError(t, os.WriteFile(want, nil, 0o600))
	got, err := Find("")
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// What "make dawn" fetches is what is looked for.
func TestVersionIsTheScripts(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the script is not for Windows")
	}
	script, err := os.ReadFile("../../../../.ci/dawn")
	require.NoError(t, err)
	require.Contains(t, string(script), "\nversion="+Version+"\n")
	require.Contains(t, string(script), "name="+LibraryName()+"\n")
}

func TestFromEnvironment(t *testing.T) {
	t.Parallel()
	env := map[string]string{EnvLibrary: "/a.so", EnvUnchecked: "1", EnvNVIDIAF16: "0", EnvCache: "off"}
	getenv := func(name string) string { return env[name] }
	got, err := Options{}.FromEnvironment(getenv)
	require.NoError(t, err)
	require.Equal(t, Options{Library: "/a.so", Unchecked: true, NoNVIDIAF16: true, Cache: "off"}, got)
	got, err = Options{Library: "/b.so", Cache: "/c"}.FromEnvironment(getenv)
	require.NoError(t, err)
	require.Equal(t, "/b.so", got.Library)
	require.Equal(t, "/c", got.Cache)
	env = map[string]string{EnvUnchecked: "0", EnvNVIDIAF16: "1"}
	got, err = Options{}.FromEnvironment(getenv)
	require.NoError(t, err)
	require.Zero(t, got)
	for _, name := range []string{EnvUnchecked, EnvNVIDIAF16} {
		env = map[string]string{name: "maybe"}
		_, err = Options{}.FromEnvironment(getenv)
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, name)
	}
}

// refused loads a file that is no usable library and returns the message.
func refused(t *testing.T, path string) string {
	t.Helper()
	_, err := New(Options{Library: path})
	require.ErrorIs(t, err, pass.ErrNoDevice)
	require.ErrorContains(t, err, path)
	require.NotContains(t, err.Error(), "\n")
	return err.Error()
}

func TestNotALibrary(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), LibraryName())
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700))
	t.Log(refused(t, path))
}

func TestAnotherLibrary(t *testing.T) {
	t.Parallel()
	found, _ := filepath.Glob("/lib/*-linux-gnu/libm.so.6")
	if len(found) == 0 {
		t.Skip("no libm of the system to load instead")
	}
	require.Contains(t, refused(t, found[0]), "no function wgpuCreateInstance: not a WebGPU library")
}

// TANDEM_DAWN_OLD lists libraries of 2025, which must be refused with the reason.
func TestOldLibraries(t *testing.T) {
	old := filepath.SplitList(os.Getenv("TANDEM_DAWN_OLD"))
	if len(old) == 0 {
		t.Skip("TANDEM_DAWN_OLD lists no libraries")
	}
	for _, path := range old {
		message := refused(t, path)
		t.Log(message)
		require.Contains(t, message, "2025")
		require.Contains(t, message, "which is not taken")
	}
}

const childVariable = "TANDEM_DAWN_TEST_CHILD"

// TestMain lets the test program stand in for a program on a machine with a broken
// installation: it lists adapters and prints the error.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "" {
		os.Exit(m.Run())
	}
	p, err := New(Options{Library: os.Getenv(EnvLibrary)})
	var list []driver.Adapter
	if err == nil {
		list, err = p.Adapters(context.Background())
	}
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(0)
	}
	for _, a := range list {
		os.Stdout.WriteString(a.Name + "\n")
	}
	if err := p.Close(); err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
	}
	os.Exit(0)
}

// child runs the stand-in and returns what it printed; it must not crash or print to
// standard error.
func child(t *testing.T, env ...string) string {
	t.Helper()
	command := exec.Command(os.Args[0])
	if loader := os.Getenv("TANDEM_DAWN_RUN"); loader != "" {
		command = exec.Command(loader, os.Args[0])
	}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "XDG_RUNTIME_DIR=") {
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

func TestNoAdapter(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the Vulkan loader is the only way on Linux alone")
	}
	p := newProvider(t, Options{})
	missing := filepath.Join(t.TempDir(), "missing.json")
	got := child(t, EnvLibrary+"="+p.Library(), "VK_DRIVER_FILES="+missing, "VK_ICD_FILENAMES=")
	t.Log(got)
	require.Contains(t, got, "dawn: no adapter: library "+p.Library()+": vulkan: ")
	require.True(t, strings.HasSuffix(got, pass.ErrNoDevice.Error()), got)
	require.NotContains(t, got, "\n")
}

// Nothing is printed to standard error by a successful start either.
func TestSilence(t *testing.T) {
	p := newProvider(t, Options{})
	require.Equal(t, drivertest.Best(t, p).Name, child(t, EnvLibrary+"="+p.Library()))
}

func TestOpenRefusals(t *testing.T) {
	p := newProvider(t, Options{})
	ctx := context.Background()
	a := drivertest.Best(t, p)
	for _, index := range []int{-1, 1000} {
		_, err := p.Open(ctx, index, driver.DeviceConfig{})
		require.ErrorIs(t, err, pass.ErrNoDevice)
	}
	_, err := p.Open(ctx, a.Index, driver.DeviceConfig{Limits: driver.Limits{MaxInvocations: 1 << 20}})
	require.ErrorIs(t, err, pass.ErrUnsupported)
	require.ErrorContains(t, err, "MaxInvocations wanted 1048576, offered ")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = p.Open(ended, a.Index, driver.DeviceConfig{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestProviderClose(t *testing.T) {
	p := newProvider(t, Options{})
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

// A table with wrong numbers is found out: no abort, and an error that says so.
func TestWrongTable(t *testing.T) {
	p := newProvider(t, Options{})
	a := drivertest.Best(t, p)
	if a.Features&driver.FeatureF16 == 0 || a.Features&driver.FeatureSubgroups == 0 {
		t.Skipf("%s lacks f16 or subgroups", a.Name)
	}
	wrong := &library{path: p.library.path, opened: p.library.opened, column: p.library.column, functions: p.library.functions}
	wrong.features = map[feature]uint32{}
	for f, n := range p.library.features {
		wrong.features[f] = n
	}
	// The number of another feature that the adapter has.
	wrong.features[shaderF16] = p.library.features[timestampQuery]
	q := &provider{library: wrong, options: Options{Cache: cacheOff}}
	defer q.Close()
	_, err := q.Open(context.Background(), 0, driver.DeviceConfig{Features: driver.FeatureF16})
	require.ErrorIs(t, err, pass.ErrUnsupported)
	require.ErrorContains(t, err, "feature f16 was granted but does not work")

	wrong = &library{path: wrong.path, opened: wrong.opened, column: wrong.column, functions: wrong.functions}
	wrong.features[coreFeatures] = 0x7777
	r := &provider{library: wrong}
	defer r.Close()
	_, err = r.Adapters(context.Background())
	require.ErrorIs(t, err, pass.ErrNoDevice)
	require.ErrorContains(t, err, "numbers them in an unknown way")
}
