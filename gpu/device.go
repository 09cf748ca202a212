package gpu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// defaultWatchdog is far above the time that parts are cut to, and below what makes a
// user give up.
const defaultWatchdog = 30 * time.Second

// options say how a device is used.
type options struct {
	provider string        // for Info
	watchdog time.Duration // longest time for one part of a run; 0: defaultWatchdog
	staged   bool          // go through staging buffers even where memory can be mapped
	log      *slog.Logger  // nil: nobody hears
}

// device is an open adapter as package backend drives it.
type device struct {
	drv      driver.Device
	adapter  driver.Adapter
	limits   driver.Limits
	rate     pass.Cost
	mapped   bool // buffers can be written and read where they are
	provider string
	watchdog time.Duration
	log      *slog.Logger
	kernels  *kernels
	compile  func(*compiler) error
	staging  *staging
	newest   atomic.Uint64 // driver.Serial of the newest submission

	mu    sync.Mutex
	loads *timeline  // of uploads that belong to no stream; made when first needed
	spare [2]*memory // stand in for empty operands that are read, and written
}

// newDevice makes a device of an open adapter, and owns it.
func newDevice(drv driver.Device, adapter driver.Adapter, opt options) pass.Device {
	return backend.New(newHardware(drv, adapter, opt))
}

func newHardware(drv driver.Device, adapter driver.Adapter, opt options) *device {
	d := &device{
		drv: drv, adapter: adapter, limits: drv.Limits(), rate: slowRate(adapter),
		mapped:   drv.Features()&driver.FeatureMappedStorage != 0 && !opt.staged,
		provider: opt.provider, watchdog: opt.watchdog, log: opt.log,
		kernels: newKernels(drv), compile: (*compiler).compile,
	}
	if d.watchdog == 0 {
		d.watchdog = defaultWatchdog
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.staging = newStaging(d)
	return d
}

// Info implements backend.Hardware.
func (d *device) Info() pass.Info {
	return pass.Info{
		Backend:  "gpu",
		Name:     d.adapter.Name,
		API:      string(d.adapter.API),
		Provider: d.provider,
		Driver:   d.adapter.Driver,
		Kind:     kindOf(d.adapter),
		Limits: []pass.Limit{
			{Name: "buffer bytes", Value: int64(min(d.limits.MaxBufferSize, 1<<63-1))},
			{Name: "binding bytes", Value: int64(min(d.limits.MaxStorageBindingSize, 1<<63-1))},
			{Name: "storage bindings", Value: int64(d.limits.MaxStorageBuffers)},
			{Name: "workgroups", Value: int64(d.limits.MaxWorkgroups)},
			{Name: "invocations", Value: int64(d.limits.MaxInvocations)},
			{Name: "shared memory bytes", Value: int64(d.limits.MaxWorkgroupStorage)},
		},
		Variants: []pass.Variant{
			{Name: "matrix", Reason: whyNoMatrix(d.adapter, d.provider)},
			{Name: "mapped memory", Used: d.mapped, Reason: d.whyMapped()},
		},
	}
}

func (d *device) whyMapped() string {
	switch {
	case d.mapped:
		return "the device's memory is the host's"
	case d.drv.Features()&driver.FeatureMappedStorage != 0:
		return "switched off"
	}
	return fmt.Sprintf("a %s adapter; uploads are staged", kindOf(d.adapter))
}

// Rate implements backend.Hardware.
func (d *device) Rate() pass.Cost { return d.rate }

// slowRate is that of a slow integrated GPU, or of the cores of a small machine. The
// pace that parts are cut by is corrected by what they take.
func slowRate(a driver.Adapter) pass.Cost {
	if kindOf(a) == kindSoftware {
		return pass.Cost{FLOP: 5e9, Bytes: 4e9}
	}
	return pass.Cost{FLOP: 100e9, Bytes: 20e9}
}

// dispatchSeconds is how long one dispatch may take by the device's rate. Systems
// reset devices whose work takes some seconds, and nothing divides a dispatch.
const dispatchSeconds = 0.5

// Load implements backend.Hardware. It returns when the device holds the weights.
func (d *device) Load(ctx context.Context, w pass.Weights, shape pass.ParamShape) (backend.Memory, error) {
	info, err := pack(w, d.limits)
	if err != nil {
		return nil, err
	}
	t, err := d.loadTimeline()
	if err != nil {
		return nil, d.first(err)
	}
	p := &param{shape: shape, packed: info}
	if err := d.fill(ctx, p, t); err != nil {
		p.Free()
		return nil, d.first(err)
	}
	for i := range p.packed.buffers {
		p.packed.buffers[i].fill = nil // it holds the weights
	}
	return p, nil
}

func (d *device) fill(ctx context.Context, p *param, t *timeline) error {
	// A reader may be slow: half of the ring is kept from it, for those who run.
	select {
	case d.staging.loads <- struct{}{}:
		defer func() { <-d.staging.loads }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	u := newUpload(d, t)
	defer u.close()
	for i, b := range p.packed.buffers {
		m, err := d.alloc(fmt.Sprintf("param %d of %d", i+1, len(p.packed.buffers)), b.words)
		if err != nil {
			return err
		}
		p.buffers = append(p.buffers, m)
		if err := u.stream(ctx, m, 0, b.words, b.fill); err != nil {
			return err
		}
	}
	if err := u.flush(ctx); err != nil {
		return err
	}
	return t.verify(ctx)
}

// loadTimeline returns the timeline of uploads that belong to no stream.
func (d *device) loadTimeline() (*timeline, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.loads == nil {
		t, err := newTimeline(d)
		if err != nil {
			return nil, err
		}
		d.loads = t
	}
	return d.loads, nil
}

// NewStream implements backend.Hardware.
func (d *device) NewStream(cfg pass.SessionConfig) (backend.Stream, error) {
	t, err := newTimeline(d)
	if err != nil {
		return nil, d.first(err)
	}
	return &stream{d: d, label: cfg.Label, timeline: t}, nil
}

// Close implements backend.Hardware. What is alive on the device after everything of
// the backend is freed was leaked; closing the device frees it all the same.
func (d *device) Close() error {
	d.loads.free()
	for _, m := range d.spare {
		m.Free()
	}
	d.staging.free()
	d.kernels.free()
	if l := d.drv.Ledger(); l.Buffers+l.Pipelines+l.BindGroups+l.Queries != 0 {
		d.log.Warn("gpu: objects left at close", "ledger", l)
	}
	return d.drv.Close()
}

// waitForRoom waits until the oldest of the submissions in flight is done, after the
// device has refused another one.
func (d *device) waitForRoom() error {
	oldest := max(d.newest.Load(), driver.MaxInFlight) - driver.MaxInFlight + 1
	return d.drv.Wait(context.Background(), driver.Serial(oldest), d.watchdog)
}

// raise notes a submission; goroutines may come here in another order than they
// submitted.
func (d *device) raise(serial driver.Serial) {
	for {
		old := d.newest.Load()
		if uint64(serial) <= old || d.newest.CompareAndSwap(old, uint64(serial)) {
			return
		}
	}
}

// first returns err, or in its place the first error that the device met while it
// worked, if that explains it: a timeout, or the loss of the device.
func (d *device) first(err error) error {
	if err == nil {
		return nil
	}
	first := d.drv.Err()
	if first != nil && (errors.Is(err, pass.ErrTimeout) || errors.Is(first, pass.ErrDeviceLost)) {
		return first
	}
	return err
}
