package cuda

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/internal/tune"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// A GPU is one that the driver lists.
type GPU struct {
	Ordinal    int
	Name       string
	UUID       string // "GPU-…", as nvidia-smi prints it, who has "MIG-…" for a slice
	Kind       string // "discrete" or "integrated"
	Capability int    // times ten
	SMs        int
	Memory     int64  // bytes
	Driver     string // version of the driver's API: "CUDA 13.0"
	Library    string // path of the driver's library
	Usable     bool
	Reason     string // why it is not usable
}

// Lowest versions that are served.
const (
	leastDriver     = 12000 // CUDA 12.0: graphs with kernel nodes of the second version
	leastCapability = 75
)

// Devices lists the GPUs of the driver, usable or not. Without a driver or without GPUs
// the error wraps [pass.ErrNoDevice] and says why.
func Devices(ctx context.Context, cfg Config) ([]GPU, error) {
	if ctx == nil {
		return nil, fmt.Errorf("cuda: devices: want a context, given nil: %w", pass.ErrInvalid)
	}
	cfg, err := cfg.resolve()
	if err != nil {
		return nil, fmt.Errorf("cuda: devices: %w", err)
	}
	drv, err := driver.Open(cfg.Library)
	if err != nil {
		return nil, fmt.Errorf("cuda: devices: %w", helped(err, cfg.Library))
	}
	list, err := list(ctx, drv)
	if err := errors.Join(err, drv.Close()); err != nil {
		return nil, fmt.Errorf("cuda: devices: %w", err)
	}
	return list, nil
}

// Open returns a device that computes on an NVIDIA GPU. If there is none, or it cannot be
// used, the error wraps [pass.ErrNoDevice] and says why for every GPU that was looked at;
// a Config that makes no sense is [pass.ErrInvalid].
func Open(ctx context.Context, cfg Config) (pass.Device, error) {
	if ctx == nil {
		return nil, fmt.Errorf("cuda: open: want a context, given nil: %w", pass.ErrInvalid)
	}
	cfg, err := cfg.resolve()
	if err != nil {
		return nil, fmt.Errorf("cuda: open: %w", err)
	}
	drv, err := driver.Open(cfg.Library)
	if err != nil {
		return nil, fmt.Errorf("cuda: open: %w", helped(err, cfg.Library))
	}
	dev, err := open(ctx, drv, cfg)
	if err != nil {
		return nil, fmt.Errorf("cuda: open: %w", errors.Join(err, drv.Close()))
	}
	return dev, nil
}

// helped says what to do about a driver that cannot be used.
func helped(err error, path string) error {
	if path != "" {
		return fmt.Errorf("%w; the library was asked for by Config.Library or %s", absent(err), envLibrary)
	}
	return fmt.Errorf("%w; NVIDIA's driver of CUDA %d.%d or later is all that is needed; if it is elsewhere, %s names its library",
		absent(err), leastDriver/1000, leastDriver%1000/10, envLibrary)
}

// absent makes an error one of pass.ErrNoDevice.
func absent(err error) error {
	if errors.Is(err, pass.ErrNoDevice) {
		return err
	}
	return fmt.Errorf("%w: %w", err, pass.ErrNoDevice)
}

// open opens a device of a driver, which it owns if there is no error.
func open(ctx context.Context, drv driver.Driver, cfg Config) (pass.Device, error) {
	gpus, err := list(ctx, drv)
	if err != nil {
		return nil, err
	}
	gpu, err := choose(gpus, cfg.Device)
	if err != nil {
		return nil, err
	}
	d := &device{
		drv: drv, gpu: gpu, thread: driver.NewThread(drv), watchdog: cfg.Watchdog, patience: graphsAfter, trace: cfg.Trace, log: cfg.Logger,
		ledger: ledger{limit: cfg.MemoryBudget}, staging: newStaging(),
	}
	if d.watchdog == 0 {
		d.watchdog = time.Minute
	}
	if err := d.start(cfg); err != nil {
		d.thread.Close()
		return nil, fmt.Errorf("%s: %w", gpu.Name, err)
	}
	dev := opened{backend.New(d), d}
	if err := d.announce(); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return dev, nil
}

// announce tells the caller's logger of the device.
func (d *device) announce() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("config.Logger: panic: %v: %w", r, pass.ErrInvalid)
		}
	}()
	d.log.Info("cuda: opened", "device", d.gpu.Name, "driver", d.gpu.Driver, "library", d.gpu.Library, "kernels", d.kernels.tier())
	return nil
}

// start makes the context and what every device has.
func (d *device) start(cfg Config) error {
	err := d.do(func() (err error) {
		if d.context, err = d.drv.CreateContext(d.gpu.Ordinal); err != nil {
			return fmt.Errorf("context: %w", err)
		}
		if d.attributes, err = readAttributes(d.drv, d.gpu.Ordinal); err != nil {
			return err
		}
		d.loads, err = d.drv.CreateStream(0)
		return err
	})
	if err == nil {
		d.attributes = cfg.Profile.over(d.attributes)
		d.kernels, err = newImages(d, cfg.Tier)
	}
	if err == nil && cfg.Tier != "" { // rules must not ask more of a kernel than what it was compiled for
		switch tier := d.kernels.chosen.Capability; {
		case cfg.Profile.Capability == 0:
			d.attributes.capability = tier
		case cfg.Profile.Capability < tier:
			err = fmt.Errorf("Profile: want a capability of at least that of tier %s, given %d: %w", cfg.Tier, cfg.Profile.Capability, pass.ErrInvalid)
		}
	}
	if err == nil {
		d.choices.forced = maps.Clone(cfg.Ways)
		if err = d.choices.load(cfg.TuneFile, d.key()); err != nil {
			err = fmt.Errorf("%w: %w", err, pass.ErrInvalid) // asked for, and wrong: no other device makes it right
		}
	}
	if err != nil && d.context != 0 {
		if d.kernels != nil {
			d.kernels.close()
		}
		d.do(func() error {
			d.drv.SetCurrent(d.context) // which the call that failed may not have left so
			if d.loads != 0 {
				d.drv.DestroyStream(d.loads)
			}
			return d.drv.DestroyContext(d.context)
		})
	}
	if err != nil && !errors.Is(err, pass.ErrInvalid) && !errors.Is(err, pass.ErrOutOfMemory) {
		err = absent(err)
	}
	return err
}

// key says on what measurements on this device are made.
func (d *device) key() tune.Key {
	return tune.Key{
		Device: d.gpu.Name, Capability: d.attributes.capability, SMs: d.attributes.sms,
		Driver: d.gpu.Driver, Kernels: kernels.Digest(),
	}
}

// over puts what a profile says over what a device has.
func (p Profile) over(a attributes) attributes {
	lesser := func(has *int, said int) {
		if said != 0 {
			*has = min(*has, said)
		}
	}
	lesser(&a.capability, p.Capability)
	lesser(&a.sms, p.SMs)
	lesser(&a.sharedMemory, p.SharedMemory)
	return a
}

// list asks a driver what there is.
func list(ctx context.Context, drv driver.Driver) ([]GPU, error) {
	version, err := drv.Version()
	if err != nil {
		return nil, fmt.Errorf("version of the driver: %w", absent(err))
	}
	name := fmt.Sprintf("CUDA %d.%d", version/1000, version%1000/10)
	if version < leastDriver {
		return nil, fmt.Errorf("the driver is of %s, CUDA %d.%d or later is needed: %w", name, leastDriver/1000, leastDriver%1000/10, pass.ErrNoDevice)
	}
	n, err := drv.DeviceCount()
	if err == nil && n <= 0 {
		err = errors.New("the driver lists no GPU")
	}
	if err != nil {
		if visible, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok {
			err = fmt.Errorf("%w; CUDA_VISIBLE_DEVICES=%q lets only those be seen", err, visible)
		}
		return nil, fmt.Errorf("%s: %w", name, absent(err))
	}
	var gpus []GPU
	for i := range n {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		g := GPU{Ordinal: i, Driver: name, Library: drv.Path()}
		if err := g.read(drv); err != nil {
			g.Reason = err.Error()
		} else if g.Capability < leastCapability {
			g.Reason = fmt.Sprintf("compute capability %d.%d, %d.%d or later is needed", g.Capability/10, g.Capability%10, leastCapability/10, leastCapability%10)
		} else if g.SMs <= 0 {
			g.Reason = fmt.Sprintf("the driver says that it has %d multiprocessors", g.SMs)
		}
		g.Usable = g.Reason == ""
		gpus = append(gpus, g)
	}
	return gpus, nil
}

// read fills in what a driver says of a GPU.
func (g *GPU) read(drv driver.Driver) error {
	var err error
	if g.Name, err = drv.DeviceName(g.Ordinal); err != nil {
		return err
	}
	id, err := drv.DeviceUUID(g.Ordinal)
	if err != nil {
		return err
	}
	g.UUID = fmt.Sprintf("GPU-%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	memory, err := drv.DeviceMemory(g.Ordinal)
	if err != nil {
		return err
	}
	g.Memory = int64(memory)
	a, err := readAttributes(drv, g.Ordinal)
	if err != nil {
		return err
	}
	g.Capability, g.SMs = a.capability, a.sms
	integrated, err := drv.Attribute(g.Ordinal, driver.Integrated)
	if err != nil {
		return err
	}
	g.Kind = "discrete"
	if integrated != 0 {
		g.Kind = "integrated"
	}
	return nil
}

// readAttributes asks for what rules depend on. A slice of a GPU says how many
// multiprocessors it has itself.
func readAttributes(drv driver.Driver, ordinal int) (attributes, error) {
	var a attributes
	var major, minor, virtual, memoryClock, bus int
	for _, want := range []struct {
		to   *int
		what driver.Attribute
	}{
		{&major, driver.CapabilityMajor}, {&minor, driver.CapabilityMinor}, {&a.sms, driver.Multiprocessors},
		{&a.sharedMemory, driver.SharedMemoryOptIn}, {&virtual, driver.VirtualMemory},
		{&a.clock, driver.ClockRate}, {&memoryClock, driver.MemoryClockRate}, {&bus, driver.MemoryBusWidth},
	} {
		var err error
		if *want.to, err = drv.Attribute(ordinal, want.what); err != nil {
			return a, err
		}
	}
	a.capability = 10*major + minor
	a.virtual = virtual != 0
	a.bandwidth = 2 * float64(memoryClock) * 1e3 * float64(bus) / 8
	return a, nil
}

// choose returns the GPU that a Config names.
func choose(gpus []GPU, name string) (GPU, error) {
	var reasons []string
	for round := range 3 { // numbers and whole names before parts of names
		for _, g := range gpus {
			var match bool
			switch round {
			case 0:
				id := strings.Replace(strings.ToUpper(name), "MIG-", "GPU-", 1) // of a slice
				match = name == "" || name == strconv.Itoa(g.Ordinal) || strings.EqualFold(id, g.UUID)
			case 1:
				match = strings.EqualFold(name, g.Name)
			case 2:
				match = strings.Contains(strings.ToLower(g.Name), strings.ToLower(name))
			}
			if !match {
				continue
			}
			if g.Usable {
				return g, nil
			}
			reasons = append(reasons, fmt.Sprintf("%d (%s): %s", g.Ordinal, g.Name, g.Reason))
		}
		if reasons != nil {
			return GPU{}, fmt.Errorf("%s: %w", strings.Join(reasons, "; "), pass.ErrNoDevice)
		}
	}
	for _, g := range gpus {
		reasons = append(reasons, fmt.Sprintf("%d (%s)", g.Ordinal, g.Name))
	}
	return GPU{}, fmt.Errorf("no GPU is called %q; there are %s: %w", name, strings.Join(reasons, ", "), pass.ErrNoDevice)
}
