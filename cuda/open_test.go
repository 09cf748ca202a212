package cuda

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

// hosted opens the backend on a driver whose kernels do nothing.
func hosted(t testing.TB, drv *drivertest.Driver, cfg Config) (pass.Device, error) {
	t.Helper()
	cfg, err := cfg.resolve()
	require.NoError(t, err)
	return open(t.Context(), hostDriver{drv}, cfg)
}

func TestOpenSaysWhyNot(t *testing.T) {
	for name, c := range map[string]struct {
		driver drivertest.Config
		config Config
		is     error
		want   []string
		setup  func(t *testing.T, d *drivertest.Driver)
	}{
		"old driver":    {driver: drivertest.Config{Version: 11080}, is: pass.ErrNoDevice, want: []string{"CUDA 11.8", "CUDA 12.0 or later"}},
		"no device":     {driver: drivertest.Config{None: true}, is: pass.ErrNoDevice, want: []string{"no"}},
		"hidden device": {driver: drivertest.Config{None: true}, is: pass.ErrNoDevice, want: []string{`CUDA_VISIBLE_DEVICES="7"`}, setup: hide},
		"old card": {driver: drivertest.Config{Devices: []drivertest.Profile{{Name: "Quadro P400", Capability: 61, SMs: 2, Memory: 2 << 30}}}, is: pass.ErrNoDevice,
			want: []string{"Quadro P400", "6.1", "7.5 or later"}},
		"bad number": {config: Config{Device: "3"}, is: pass.ErrNoDevice, want: []string{`"3"`, "0 (NVIDIA Test 90)"}},
		"bad name":   {config: Config{Device: "Radeon"}, is: pass.ErrNoDevice, want: []string{`"Radeon"`, "NVIDIA Test 90"}},
		"bad tier":   {config: Config{Tier: "sm_61"}, is: pass.ErrInvalid, want: []string{"tier"}},
		"other tier": {config: Config{Tier: "sm_80"}, is: pass.ErrInvalid, want: []string{"9.0", "sm_80"}},
		"no tune file": {config: Config{TuneFile: filepath.Join(os.TempDir(), "there is no such file")}, is: os.ErrNotExist,
			want: []string{"there is no such file"}},
		"taken": {is: pass.ErrNoDevice, want: []string{"NVIDIA Test 90", "context"},
			setup: func(_ *testing.T, d *drivertest.Driver) {
				d.Fail("CreateContext", 1, driver.DeviceUnavailable)
			}},
		"full": {is: pass.ErrOutOfMemory, want: []string{"NVIDIA Test 90"},
			setup: func(_ *testing.T, d *drivertest.Driver) { d.Fail("CreateStream", 1, driver.OutOfMemory) }},
	} {
		t.Run(name, func(t *testing.T) {
			drv := drivertest.New(c.driver)
			if c.setup != nil {
				c.setup(t, drv)
			}
			dev, err := hosted(t, drv, c.config)
			require.Nil(t, dev)
			require.ErrorIs(t, err, c.is)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			require.Empty(t, drv.Leaks())
		})
	}
}

func hide(t *testing.T, _ *drivertest.Driver) { t.Setenv("CUDA_VISIBLE_DEVICES", "7") }

func TestOpenWithoutDriver(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "libcuda.so.1")
	for range 2 {
		_, err := Open(t.Context(), Config{Library: path})
		require.ErrorIs(t, err, pass.ErrNoDevice)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, "TANDEM_CUDA_LIBRARY")
		_, err = Devices(t.Context(), Config{Library: path})
		require.ErrorIs(t, err, pass.ErrNoDevice)
		require.ErrorContains(t, err, path)
		require.NoError(t, os.WriteFile(path, []byte("not a library"), 0o644))
	}
}

func TestOpenRefusesNonsense(t *testing.T) {
	t.Parallel()
	var none context.Context
	_, err := Open(none, Config{})
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, err = Devices(none, Config{})
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, err = Open(t.Context(), Config{MemoryBudget: -1})
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, err = Open(t.Context(), Config{Watchdog: -1})
	require.ErrorIs(t, err, pass.ErrInvalid)
	for _, p := range []Profile{{Capability: -1}, {SMs: -1}, {SharedMemory: -1}} {
		_, err = Open(t.Context(), Config{Profile: p})
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, "Profile")
	}
}

func TestDeviceIsFoundByAnyName(t *testing.T) {
	t.Parallel()
	twin := drivertest.Hopper()
	other := drivertest.Ampere()
	drv := drivertest.New(drivertest.Config{Devices: []drivertest.Profile{twin, other, twin}})
	gpus, err := list(t.Context(), drv)
	require.NoError(t, err)
	for name, want := range map[string]int{
		"": 0, "0": 0, "1": 1, "2": 2, gpus[2].UUID: 2, "MIG" + gpus[2].UUID[3:]: 2, "nvidia test 86": 1, "test": 0, "86": 1, "NVIDIA Test 90": 0,
	} {
		g, err := choose(gpus, name)
		require.NoError(t, err, name)
		require.Equal(t, want, g.Ordinal, name)
	}
	gpus[0].Usable, gpus[0].Reason = false, "asleep"
	g, err := choose(gpus, "")
	require.NoError(t, err)
	require.Equal(t, 1, g.Ordinal, "the first usable one")
	_, err = choose(gpus, "0")
	require.ErrorContains(t, err, "asleep")
	require.ErrorIs(t, err, pass.ErrNoDevice)
}

func TestInfo(t *testing.T) {
	t.Parallel()
	drv := drivertest.New(drivertest.Config{})
	dev, err := hosted(t, drv, Config{})
	require.NoError(t, err)
	info := dev.Info()
	require.Equal(t, "cuda", info.Backend)
	require.Equal(t, "NVIDIA Test 90", info.Name)
	require.Equal(t, "CUDA 13.0", info.Driver)
	require.Equal(t, "drivertest", info.Provider)
	require.Equal(t, "discrete", info.Kind)
	require.EqualValues(t, 16<<30, info.Memory)
	require.Equal(t, "kernels", info.Variants[0].Name)
	require.Equal(t, "sm_90a", info.Variants[0].Reason)
	require.NoError(t, dev.Close())
	require.NoError(t, dev.Close())
	require.Empty(t, drv.Leaks())
}
