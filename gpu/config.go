package gpu

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/dawn"
	"github.com/tandem-gpu/tandem/pass"
)

// Config says which adapter [Open] takes and how it is used. The zero value takes the
// best hardware adapter. A field that is set wins over its environment variable.
type Config struct {
	// Adapter chooses one adapter; empty: the best. It is, in this order: an index of
	// [Adapters]; a whole name; "discrete", "integrated", "virtual" or "software", for
	// the best of that kind; a part of a name. Case does not matter. Naming an adapter
	// is the way to a software one. Environment: TANDEM_ADAPTER.
	Adapter string
	// API is "vulkan", "metal" or "d3d12"; empty: the best that the adapter has.
	// Environment: TANDEM_API.
	API string
	// Software lets adapters that compute on the CPU be taken where there is no
	// hardware. Environment: TANDEM_SOFTWARE.
	Software bool
	// Provider is what is behind the API: "native", a library that is linked into the
	// program through cgo, or "dawn", one that is loaded at run time and needs no cgo.
	// Empty: dawn if Library is set, else native; in programs built without cgo, dawn.
	// Environment: TANDEM_PROVIDER.
	Provider string
	// Library is the path of the Dawn library; empty: the one that "make dawn" puts
	// into the user's cache folder. Nothing else is searched. Environment: TANDEM_DAWN.
	Library string
	// Limits lowers what the device may use, so that tests see what a lesser one would
	// do. Zero fields take what the adapter has.
	Limits Limits
	// MemoryBudget bounds the bytes in buffers on the device; beyond it, calls return
	// [pass.ErrOutOfMemory]. 0: no bound but the device's.
	MemoryBudget int64
	// Watchdog bounds how long one part of a run may take before it fails with
	// [pass.ErrTimeout]. 0: a default that is far above what parts are cut to.
	// Environment: TANDEM_WATCHDOG.
	Watchdog time.Duration
	// Logger hears what was found and chosen. nil: nobody does.
	Logger *slog.Logger
}

// Limits are those limits of an adapter that decide how kernels are laid out.
type Limits struct {
	BufferSize     int64 // bytes of one buffer
	BindingSize    int64 // bytes of a buffer that a kernel sees at once
	StorageBuffers int   // buffers that a kernel sees, beside its constants
	Workgroups     int   // workgroups of a dispatch in each dimension
	Invocations    int   // invocations of a workgroup
	SharedMemory   int   // bytes that a workgroup shares
}

// A Variable is an environment variable that [Open] and [Adapters] read.
type Variable struct {
	Name    string // "TANDEM_ADAPTER"
	Meaning string // one line
	Value   string // as it is set now; empty: not set
}

const (
	envAdapter  = "TANDEM_ADAPTER"
	envAPI      = "TANDEM_API"
	envSoftware = "TANDEM_SOFTWARE"
	envProvider = "TANDEM_PROVIDER"
	envWatchdog = "TANDEM_WATCHDOG"
	envDebug    = "TANDEM_DEBUG"
)

// Environment returns the environment variables that Open and Adapters read, with
// their values. The package documentation has the same list.
func Environment() []Variable {
	list := []Variable{
		{Name: envAdapter, Meaning: "adapter to take: index, name or part of it, or kind"},
		{Name: envAPI, Meaning: "API to reach it through: vulkan, metal or d3d12"},
		{Name: envSoftware, Meaning: "1: take a software adapter where there is no hardware"},
		{Name: envProvider, Meaning: "what is behind the API: native or dawn"},
		{Name: dawn.EnvLibrary, Meaning: "path of a Dawn library, which is then used"},
		{Name: dawn.EnvUnchecked, Meaning: "1: indices in kernels go unchecked with dawn"},
		{Name: dawn.EnvNVIDIAF16, Meaning: "0: no f16 on NVIDIA devices under Vulkan with dawn"},
		{Name: dawn.EnvCache, Meaning: "folder where dawn keeps compiled kernels; off: nowhere"},
		{Name: envWatchdog, Meaning: "longest time for one part of a run, such as 30s"},
		{Name: envDebug, Meaning: "1: warnings of the library on standard error, and validation layers"},
	}
	for i := range list {
		list[i].Value = os.Getenv(list[i].Name)
	}
	return list
}

// A request is a Config with the environment applied and every value understood.
type request struct {
	adapter     string // lower case
	adapterFrom string // where adapter was set, for messages
	provider    string // "": not chosen
	dawn        dawn.Options
	api         driver.API
	apiFrom     string
	software    bool
	debug       bool
	limits      driver.Limits
	budget      uint64
	watchdog    time.Duration
	log         *slog.Logger
}

// resolve applies the environment where a field is not set.
func (cfg Config) resolve(getenv func(string) string) (request, error) {
	r := request{log: cfg.Logger, software: cfg.Software, watchdog: cfg.Watchdog}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	pick := func(value, field, variable string) (string, string) {
		if value == "" {
			value, field = getenv(variable), variable
		}
		return strings.ToLower(strings.TrimSpace(value)), field
	}
	r.adapter, r.adapterFrom = pick(cfg.Adapter, "Adapter", envAdapter)
	api, from := pick(cfg.API, "API", envAPI)
	switch r.api, r.apiFrom = driver.API(api), from; r.api {
	case "", driver.Vulkan, driver.Metal, driver.D3D12:
	default:
		return request{}, fmt.Errorf("gpu: %s: want vulkan, metal or d3d12, given %q: %w", from, api, pass.ErrInvalid)
	}
	var err error
	provider, from := pick(cfg.Provider, "Provider", envProvider)
	if err = r.setProvider(provider, from, cfg.Library, getenv); err != nil {
		return request{}, err
	}
	if r.debug, err = boolean(getenv, envDebug); err != nil {
		return request{}, err
	}
	if !r.software {
		if r.software, err = boolean(getenv, envSoftware); err != nil {
			return request{}, err
		}
	}
	from = "Watchdog"
	if value := getenv(envWatchdog); r.watchdog == 0 && value != "" {
		from = envWatchdog
		if r.watchdog, err = time.ParseDuration(value); err != nil {
			return request{}, fmt.Errorf("gpu: %s: want a time such as 30s, given %q: %w", from, value, pass.ErrInvalid)
		}
	}
	if r.watchdog < 0 {
		return request{}, fmt.Errorf("gpu: %s: want at least 0, given %v: %w", from, r.watchdog, pass.ErrInvalid)
	}
	if cfg.MemoryBudget < 0 {
		return request{}, fmt.Errorf("gpu: MemoryBudget: want at least 0, given %d: %w", cfg.MemoryBudget, pass.ErrInvalid)
	}
	r.budget = uint64(cfg.MemoryBudget)
	r.limits, err = cfg.Limits.driver()
	return r, err
}

func boolean(getenv func(string) string, name string) (bool, error) {
	value := getenv(name)
	if value == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("gpu: %s: want 1 or 0, given %q: %w", name, value, pass.ErrInvalid)
	}
	return b, nil
}

// driver returns the limits as the seam has them.
func (l Limits) driver() (driver.Limits, error) {
	var err error
	wide := func(name string, n int64) uint64 {
		if n < 0 && err == nil {
			err = fmt.Errorf("gpu: Limits.%s: want at least 0, given %d: %w", name, n, pass.ErrInvalid)
		}
		return uint64(max(n, 0))
	}
	narrow := func(name string, n int) uint32 {
		if int64(n) > 1<<32-1 && err == nil {
			err = fmt.Errorf("gpu: Limits.%s: want at most %d, given %d: %w", name, uint32(1<<32-1), n, pass.ErrInvalid)
		}
		return uint32(wide(name, int64(n)))
	}
	return driver.Limits{
		MaxBufferSize:         wide("BufferSize", l.BufferSize),
		MaxStorageBindingSize: wide("BindingSize", l.BindingSize),
		MaxStorageBuffers:     narrow("StorageBuffers", l.StorageBuffers),
		MaxWorkgroups:         narrow("Workgroups", l.Workgroups),
		MaxInvocations:        narrow("Invocations", l.Invocations),
		MaxWorkgroupStorage:   narrow("SharedMemory", l.SharedMemory),
	}, err
}

// limitsOf returns what of the seam's limits decides how kernels are laid out.
func limitsOf(l driver.Limits) Limits {
	return Limits{
		BufferSize:     int64(min(l.MaxBufferSize, 1<<63-1)),
		BindingSize:    int64(min(l.MaxStorageBindingSize, 1<<63-1)),
		StorageBuffers: int(min(l.MaxStorageBuffers, 1<<31-1)),
		Workgroups:     int(min(l.MaxWorkgroups, 1<<31-1)),
		Invocations:    int(min(l.MaxInvocations, 1<<31-1)),
		SharedMemory:   int(min(l.MaxWorkgroupStorage, 1<<31-1)),
	}
}
