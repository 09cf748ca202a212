package cuda

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/cuda/internal/emulate"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// hostDriver is the driver of tests with kernels of its own.
type hostDriver struct{ *drivertest.Driver }

func (hostDriver) Archive() *kernels.Archive { return kernels.Nominal() }

// libraries are the kernels for the emulator, by the capability that it has.
var libraries sync.Map

// library returns the kernels for the emulator; nil on a GPU, which has its own. Tests that
// need them are skipped where they have not been compiled, unless TANDEM_REQUIRE_EMULATED is
// set, and with TANDEM_EMULATED=0.
func library(t testing.TB, capability int) *emulate.Library {
	t.Helper()
	if onDevice() {
		return nil
	}
	return compiled(t, capability)
}

func compiled(t testing.TB, capability int) *emulate.Library {
	t.Helper()
	if os.Getenv("TANDEM_EMULATED") == "0" {
		t.Skip("SKIPPED: TANDEM_EMULATED=0")
	}
	name := "libtandem_cuda.so"
	switch {
	case capability < 80:
		name = "libtandem_cuda_75.so"
	case capability < 90:
		name = "libtandem_cuda_80.so"
	}
	path, err := filepath.Abs(filepath.Join("..", "build", name))
	require.NoError(t, err)
	open, _ := libraries.LoadOrStore(name, sync.OnceValues(func() (*emulate.Library, error) { return emulate.Open(path) }))
	lib, err := open.(func() (*emulate.Library, error))()
	if errors.Is(err, os.ErrNotExist) && os.Getenv("TANDEM_REQUIRE_EMULATED") == "" {
		t.Skipf("SKIPPED: the kernels are not compiled for the emulator; make cuda-emulated does it (%v)", err)
	}
	require.NoError(t, err)
	return lib
}

// emulatedDriver returns a driver on the host whose kernels run in the emulator.
func emulatedDriver(t testing.TB, gpu drivertest.Profile) hostDriver {
	lib := compiled(t, gpu.Capability)
	return hostDriver{drivertest.New(drivertest.Config{
		Path:    "emulator",
		Devices: []drivertest.Profile{gpu},
		Kernel: func(name string, l driver.Launch) error {
			return lib.Launch(name, emulate.Launch{Grid: l.Grid, Block: l.Block, Shared: l.Shared, Cooperative: l.Cooperative, Args: l.Args})
		},
	})}
}

// emulated opens the backend on an emulated GPU, or on the GPU that there is as if it were
// that one: with the kernels that such a device can take, and what rules say of it. Graphs
// are made with recordings, so that kernels run in any order that their dependencies allow.
func emulated(t testing.TB, gpu drivertest.Profile, cfg Config) pass.Device {
	t.Helper()
	dev, err := tryEmulated(t, gpu, cfg)
	require.NoError(t, err)
	return dev
}

func tryEmulated(t testing.TB, gpu drivertest.Profile, cfg Config) (dev pass.Device, err error) {
	t.Helper()
	defer func() {
		if dev != nil { // neither an error nor a test that is skipped
			dev.(opened).hw.patience = 0
		}
	}()
	if cfg.Logger == nil {
		cfg.Logger = used.logger()
	}
	if onDevice() {
		if cfg.Profile.SMs == 0 {
			cfg.Profile.SMs = gpu.SMs
		}
		cfg.Profile.Capability, cfg.Profile.SharedMemory = gpu.Capability, gpu.SharedMemory
		dev, err := Open(context.Background(), cfg)
		if err == nil && os.Getenv("TANDEM_REQUIRE_IMAGES") == "" {
			images := dev.(opened).hw.kernels
			if _, absent := images.archive.Image("move", images.chosen); absent != nil {
				dev.Close()
				t.Skipf("SKIPPED: this build has no images for %s; make kernels compiles them", images.chosen.Name)
			}
		}
		return dev, err
	}
	gpu.Clock, gpu.MemoryClock = 1, 1 // the emulator's pace, by which runs are divided
	cfg, err = cfg.resolve()
	require.NoError(t, err)
	return open(context.Background(), emulatedDriver(t, gpu), cfg)
}

// onDevice reports whether TANDEM_DEVICES names "cuda": then there is a GPU, and tests that
// need one run.
func onDevice() bool {
	return slices.Contains(strings.Split(os.Getenv("TANDEM_DEVICES"), ","), "cuda")
}
