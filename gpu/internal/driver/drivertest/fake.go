package drivertest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/guard"
	"github.com/tandem-gpu/tandem/pass"
)

// Kernel stands in for a compute kernel.
type Kernel func(Call)

// Call is one dispatch.
type Call struct {
	Pipeline string    // the pipeline's label
	Groups   [3]uint32 // workgroups in x, y and z
	Buffers  [][]byte  // what each binding sees, dynamic offset applied; writes are kept
}

// Config configures a device in memory.
type Config struct {
	// Limits replaces DefaultLimits field by field where not zero.
	Limits   driver.Limits
	Features driver.Feature
	// MemoryBudget bounds the bytes in live buffers; zero is no bound.
	MemoryBudget uint64
	// Kernels are found by a pipeline's label, else by its entry point. A pipeline
	// without one does nothing.
	Kernels map[string]Kernel
	// OnSubmit, if set, sees every list of commands that was accepted. It must not
	// keep it, nor call the device.
	OnSubmit func(driver.Serial, []driver.Command)
	Faults   Faults
	// CloseTimeout bounds how long Close waits for work; 100 ms if zero.
	CloseTimeout time.Duration
}

// DefaultLimits are the limits of the WebGPU standard.
func DefaultLimits() driver.Limits {
	return driver.Limits{
		MaxBufferSize: 256 << 20, MaxStorageBindingSize: 128 << 20, MaxUniformBindingSize: 64 << 10,
		MaxStorageBuffers: 8, MaxUniformBuffers: 12, MaxDynamicUniforms: 8, MaxBindings: 1000, MaxBindGroups: 4,
		MaxWorkgroups: 65535, MaxInvocations: 256, MaxWorkgroupSizeX: 256, MaxWorkgroupSizeY: 256, MaxWorkgroupSizeZ: 64,
		MaxWorkgroupStorage: 16 << 10, StorageOffsetAlignment: 256, UniformOffsetAlignment: 256,
	}
}

// memory is the fake's buffer.
type memory struct {
	data    []byte
	lastUse driver.Serial
}

type (
	books   = guard.Book[*memory, Kernel, struct{}, []uint64]
	objects = guard.Objects[*memory, Kernel, struct{}, []uint64]
)

// Device is a device in memory. It implements driver.Device and driver.Timer. Work is
// done when it is seen to finish, in order, so that whoever looks too early finds the
// old data.
type Device struct {
	objects
	config Config

	mu      sync.Mutex
	book    *books
	pending []*work
	writes  []func()
	serial  driver.Serial
	done    driver.Serial
	err     error
	lost    bool
	closed  bool
	due     time.Time // when the newest submission finishes
	faults  faultState
	clock   uint64
}

// work is a submission that has not finished.
type work struct {
	serial    driver.Serial
	steps     []func()
	due       time.Time
	hang      bool
	lose      bool
	lateError bool
}

// New opens a device in memory.
func New(config Config) *Device {
	limits := DefaultLimits().Override(config.Limits)
	d := &Device{config: config, book: guard.New[*memory, Kernel, struct{}, []uint64](limits, config.Features, config.MemoryBudget)}
	d.objects = guard.NewObjects(&d.mu, d.book, maker{d})
	d.faults.Faults = config.Faults
	return d
}

func (d *Device) usable(what string) error {
	if d.closed {
		return fmt.Errorf("drivertest: %s: the device is closed: %w", what, pass.ErrClosed)
	}
	if d.lost {
		return d.err
	}
	return nil
}

// maker makes and frees objects for guard.Objects.
type maker struct{ d *Device }

// Usable implements guard.Library.
func (m maker) Usable(what string) error { return m.d.usable(what) }

// MakeBuffer implements guard.Library.
func (m maker) MakeBuffer(desc driver.BufferDesc) (*memory, error) {
	if f := &m.d.faults; f.hit(&f.allocs, f.FailAlloc) {
		return nil, fmt.Errorf("drivertest: create buffer %q of %d bytes: injected: %w", desc.Label, desc.Size, pass.ErrOutOfMemory)
	}
	return &memory{data: make([]byte, desc.Size)}, nil
}

// MakePipeline implements guard.Library. It reads no WGSL, but refuses a source whose
// brackets do not match or that does not have the entry point.
func (m maker) MakePipeline(desc driver.PipelineDesc) (Kernel, error) {
	if strings.Count(desc.Source, "(") != strings.Count(desc.Source, ")") {
		return nil, fmt.Errorf("drivertest: compile %q: brackets do not match: %w", desc.Label, pass.ErrInvalid)
	}
	if !strings.Contains(desc.Source, "fn "+desc.Entry+"(") {
		return nil, fmt.Errorf("drivertest: create pipeline %q: no entry point %q: %w", desc.Label, desc.Entry, pass.ErrInvalid)
	}
	kernel, ok := m.d.config.Kernels[desc.Label]
	if !ok {
		kernel = m.d.config.Kernels[desc.Entry]
	}
	return kernel, nil
}

// MakeGroup implements guard.Library.
func (maker) MakeGroup(*guard.Pipeline[Kernel], []driver.Binding, []*guard.Buffer[*memory]) (struct{}, error) {
	return struct{}{}, nil
}

// MakeQueries implements guard.Library.
func (maker) MakeQueries(count uint32) ([]uint64, error) { return make([]uint64, count), nil }

// FreeBuffer implements guard.Library: the collector does it, as for the others.
func (maker) FreeBuffer(*memory) {}

// FreePipeline implements guard.Library.
func (maker) FreePipeline(Kernel) {}

// FreeGroup implements guard.Library.
func (maker) FreeGroup(struct{}) {}

// FreeQueries implements guard.Library.
func (maker) FreeQueries([]uint64) {}

// Err implements driver.Device.
func (d *Device) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.progress()
	return d.err
}

// Ledger implements driver.Device.
func (d *Device) Ledger() driver.Ledger {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.book.Ledger()
	l.InFlight = len(d.pending)
	return l
}

// Close implements driver.Device.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	limit := d.config.CloseTimeout
	if limit == 0 {
		limit = 100 * time.Millisecond
	}
	for start := time.Now(); ; {
		d.progress()
		if len(d.pending) == 0 || d.lost || time.Since(start) > limit {
			break
		}
		d.mu.Unlock()
		time.Sleep(pollInterval)
		d.mu.Lock()
	}
	left := len(d.pending)
	d.closed, d.pending, d.writes = true, nil, nil
	d.Abandon()
	if left > 0 && !d.lost {
		return fmt.Errorf("drivertest: close: %d submissions not finished after %v: %w", left, limit, pass.ErrTimeout)
	}
	return nil
}

const pollInterval = 100 * time.Microsecond

// await looks until done reports true. It is called, and returns, with the lock held.
func (d *Device) await(ctx context.Context, what string, timeout time.Duration, done func() bool) error {
	for start := time.Now(); ; {
		if err := d.usable(what); err != nil {
			return err
		}
		d.progress()
		switch {
		case d.err != nil:
			return d.err
		case done():
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("drivertest: %s: %w", what, context.Cause(ctx))
		case time.Since(start) >= timeout:
			return fmt.Errorf("drivertest: %s: not finished after %v: %w", what, timeout, pass.ErrTimeout)
		}
		d.mu.Unlock()
		time.Sleep(pollInterval)
		d.mu.Lock()
	}
}
