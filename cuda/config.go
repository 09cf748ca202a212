package cuda

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/tandem-gpu/tandem/pass"
)

// Config says which GPU [Open] takes and how it is used. The zero value takes the first
// that the driver lists. A field that is set wins over its environment variable.
type Config struct {
	// Device chooses a GPU: a number of [Devices], a UUID as nvidia-smi prints it, a whole
	// name or a part of one; case does not matter. Empty: the first usable one.
	// Environment: TANDEM_CUDA_DEVICE.
	Device string
	// Library is the path of the driver's library; empty: libcuda.so.1 or nvcuda.dll, where
	// the system has it. Environment: TANDEM_CUDA_LIBRARY.
	Library string
	// Tier forces the images that kernels are taken from: "sm_90a", "ptx_75", … . Empty: the
	// best for the device. Environment: TANDEM_CUDA_TIER.
	Tier string
	// Profile makes kernels be chosen as for a lesser device, so that tests see what it
	// would do. Zero fields take what the device has.
	Profile Profile
	// MemoryBudget bounds the bytes on the device; beyond it, calls return
	// [pass.ErrOutOfMemory]. 0: no bound but the device's.
	MemoryBudget int64
	// Watchdog bounds how long one part of a run may take before it fails with
	// [pass.ErrTimeout]. 0: a minute, and more for work that is known to be long.
	Watchdog time.Duration
	// Trace, if not nil, makes recordings run kernel by kernel, outside of graphs, and is
	// called after each run with the time of every kernel.
	Trace func(Trace)
	// Logger hears what was found and chosen. nil: nobody does.
	Logger *slog.Logger
}

// A Profile is what rules that choose kernels see of a device.
type Profile struct {
	Capability   int // times ten: 75, 80, 90
	SMs          int // multiprocessors
	SharedMemory int // bytes that a block may have
}

// A Trace is the times of one run.
type Trace struct {
	Label string // of the recording
	Spans []Span // in the order of its ops
}

// A Span is the time of one kernel.
type Span struct {
	Op      int    // number in the recording
	Name    string // of the op
	Kernel  string
	Seconds float64
	Cost    pass.Cost
}

const (
	envDevice  = "TANDEM_CUDA_DEVICE"
	envLibrary = "TANDEM_CUDA_LIBRARY"
	envTier    = "TANDEM_CUDA_TIER"
)

// resolve fills in what the environment says.
func (c Config) resolve() (Config, error) {
	for _, v := range []struct {
		field *string
		name  string
	}{{&c.Device, envDevice}, {&c.Library, envLibrary}, {&c.Tier, envTier}} {
		if *v.field == "" {
			*v.field = os.Getenv(v.name)
		}
	}
	if c.MemoryBudget < 0 || c.Watchdog < 0 {
		return c, fmt.Errorf("MemoryBudget, Watchdog: want at least 0, given %d, %v: %w", c.MemoryBudget, c.Watchdog, pass.ErrInvalid)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
