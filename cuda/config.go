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
	// would do. Zero fields, and those that are more, take what the device has.
	Profile Profile
	// TuneFile is the path of a file that examples/tune wrote: what was measured on this
	// device with this driver and these kernels. One that was made for anything else is an
	// error. Environment: TANDEM_CUDA_TUNE.
	TuneFile string
	// Ways forces choices of kernels: a way, by the name of a [Boundary]; under the empty
	// name one for every boundary that has it. Ways that a boundary does not have are left
	// alone.
	Ways map[string]string
	// MemoryBudget bounds the bytes on the device; beyond it, calls return
	// [pass.ErrOutOfMemory]. 0: no bound but the device's.
	MemoryBudget int64
	// Watchdog bounds how long one part of a run may take before it fails with
	// [pass.ErrTimeout]. 0: a minute, and more for work that is known to be long.
	Watchdog time.Duration
	// Trace, if not nil, makes recordings run kernel by kernel, outside of graphs, and is
	// called after each part of a run with the time of every kernel: from the goroutine of
	// the session, so that with several sessions calls may come at once. A panic in it fails
	// the run. It must close neither the session nor the device, which would wait for it.
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
	envTune    = "TANDEM_CUDA_TUNE"
)

// A Variable is an environment variable that [Open] and [Devices] read.
type Variable struct {
	Name    string // "TANDEM_CUDA_DEVICE"
	Meaning string // one line
	Value   string // as it is set now; empty: not set
}

// Environment returns the environment variables that Open and Devices read, with their
// values.
func Environment() []Variable {
	list := []Variable{
		{Name: envDevice, Meaning: "GPU to take: a number, a UUID, a name or a part of one"},
		{Name: envLibrary, Meaning: "path of the driver's library"},
		{Name: envTier, Meaning: "images to take kernels from: sm_90a, ptx_75, …"},
		{Name: envTune, Meaning: "file of examples/tune, for this device, driver and build"},
	}
	for i := range list {
		list[i].Value = os.Getenv(list[i].Name)
	}
	return list
}

// resolve fills in what the environment says.
func (c Config) resolve() (Config, error) {
	for _, v := range []struct {
		field *string
		name  string
	}{{&c.Device, envDevice}, {&c.Library, envLibrary}, {&c.Tier, envTier}, {&c.TuneFile, envTune}} {
		if *v.field == "" {
			*v.field = os.Getenv(v.name)
		}
	}
	if c.MemoryBudget < 0 || c.Watchdog < 0 {
		return c, fmt.Errorf("MemoryBudget, Watchdog: want at least 0, given %d, %v: %w", c.MemoryBudget, c.Watchdog, pass.ErrInvalid)
	}
	if p := c.Profile; p.Capability < 0 || p.SMs < 0 || p.SharedMemory < 0 {
		return c, fmt.Errorf("Profile: want at least 0, given %+v: %w", p, pass.ErrInvalid)
	}
	if n := c.Profile.Capability; n != 0 && n < leastCapability {
		return c, fmt.Errorf("Profile: Capability: want at least %d, given %d: %w", leastCapability, n, pass.ErrInvalid)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
