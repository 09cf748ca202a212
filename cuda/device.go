package cuda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// device is a GPU with a context of its own, as package backend drives it. All calls of
// the driver are made on the context's thread.
type device struct {
	drv        driver.Driver
	thread     *driver.Thread
	context    driver.Context
	gpu        GPU
	attributes attributes
	kernels    *images
	choices    chooser
	watchdog   time.Duration
	patience   int // runs of a recording after which it becomes graphs
	trace      func(Trace)
	log        *slog.Logger
	ledger     ledger
	staging    *staging
	loads      driver.Stream // of transfers

	mu   sync.Mutex // of immediately
	lost atomic.Pointer[error]
}

// attributes are what rules see of the device: as it is, or as a profile says.
type attributes struct {
	capability   int  // times ten
	sms          int  // that the context sees
	sharedMemory int  // bytes that a block may have
	virtual      bool // memory can be mapped at addresses
	clock        int  // kHz
	bandwidth    float64
}

// do runs f on the thread of the context.
func (d *device) do(f func() error) error {
	if err := d.thread.Do(f); err != nil {
		return d.explain(err)
	}
	return nil
}

// explain turns an error of the driver into one of pass, and keeps a loss of the device:
// after some faults nothing can be done in the context any more.
func (d *device) explain(err error) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case e.Fatal():
		lost := fmt.Errorf("%w: %w", err, pass.ErrDeviceLost)
		if d.lost.CompareAndSwap(nil, &lost) {
			d.log.Error("cuda: device lost", "device", d.gpu.Name, "error", err)
		}
		return *d.lost.Load()
	case e.Code == driver.OutOfMemory:
		return fmt.Errorf("%w: %w", err, pass.ErrOutOfMemory)
	}
	return err
}

// gone returns the loss of the device, if it is lost.
func (d *device) gone() error {
	if e := d.lost.Load(); e != nil {
		return *e
	}
	return nil
}

// Info implements backend.Hardware.
func (d *device) Info() pass.Info {
	return pass.Info{
		Backend:  "cuda",
		Name:     d.gpu.Name,
		API:      "cuda",
		Provider: d.gpu.Library,
		Driver:   d.gpu.Driver,
		Kind:     d.gpu.Kind,
		Memory:   d.gpu.Memory,
		Limits: []pass.Limit{
			{Name: "compute capability × 10", Value: int64(d.attributes.capability)},
			{Name: "multiprocessors", Value: int64(d.attributes.sms)},
			{Name: "shared memory bytes", Value: int64(d.attributes.sharedMemory)},
		},
		Variants: d.variants(),
	}
}

// Rate implements backend.Hardware. It is what the units for F32 do at a third of their
// speed, and half of the memory's. Newer drivers do not say how fast a device is clocked.
func (d *device) Rate() pass.Cost {
	clock, bandwidth := 1e9, 200e9
	if d.attributes.clock > 0 {
		clock = float64(d.attributes.clock) * 1e3
	}
	if d.attributes.bandwidth > 0 {
		bandwidth = d.attributes.bandwidth
	}
	return pass.Cost{FLOP: float64(d.attributes.sms) * 128 * 2 * clock / 3, Bytes: bandwidth / 2}
}

// Load implements backend.Hardware.
func (d *device) Load(ctx context.Context, w pass.Weights, shape pass.ParamShape) (backend.Memory, error) {
	if err := d.gone(); err != nil {
		return nil, err
	}
	return d.load(ctx, w, shape)
}

// NewStream implements backend.Hardware.
func (d *device) NewStream(cfg pass.SessionConfig) (backend.Stream, error) {
	if err := d.gone(); err != nil {
		return nil, err
	}
	return newStream(d, cfg)
}

// Close implements backend.Hardware. In a context that is lost nothing can be given up
// but the context itself, which takes all with it; that it says so is no error.
func (d *device) Close() error {
	d.kernels.close()
	err := d.do(func() error {
		d.staging.free(d.drv)
		return errors.Join(d.drv.DestroyStream(d.loads), d.drv.DestroyContext(d.context))
	})
	d.thread.Close()
	if d.gone() != nil {
		err = nil
	}
	if err = errors.Join(err, d.drv.Close()); err != nil {
		return fmt.Errorf("cuda: close: %w", err)
	}
	return nil
}

// until polls until done reports true, at most for limit. It spins first, since most
// work is short, and then sleeps, by a small part of what it has waited already: so an end
// is seen late by no more than that, and the few tens of microseconds that waking takes.
func (d *device) until(limit time.Duration, done func() (bool, error)) error {
	began := time.Now()
	for {
		for range 64 {
			ok, err := done()
			if ok || err != nil {
				return err
			}
		}
		waited := time.Since(began)
		switch {
		case waited < 200*time.Microsecond:
			continue
		case waited > limit:
			return fmt.Errorf("no end after %v: %w", waited.Round(time.Millisecond), pass.ErrTimeout)
		}
		pause(min(max(waited/128, 10*time.Microsecond), time.Millisecond))
	}
}

// immediately runs the launches that f makes, in order, and waits for them. They belong to
// no recording: they touch params and scratch of their own.
func (d *device) immediately(ctx context.Context, f func(c *compiler) error) error {
	return d.following(ctx, f, func() error { return d.settle(d.loads, d.watchdog) })
}

// following is immediately with a wait of the caller's, as for a copy that comes behind.
func (d *device) following(ctx context.Context, f func(c *compiler) error, wait func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	c := &compiler{d: d, ctx: ctx, plan: &backend.Plan{}, constant: map[string]*memory{}}
	c.step = pass.Checked{Op: pass.Fill{}}
	defer func() {
		for _, m := range c.held {
			m.Free()
		}
	}()
	if err := f(c); err != nil {
		return err
	}
	err := d.do(func() error {
		for i := range c.launches {
			if err := d.drv.Launch(c.launches[i].driver(), d.loads); err != nil {
				return fmt.Errorf("kernel %s: %w", c.launches[i].entry.Name, err)
			}
		}
		return nil
	})
	if late := wait(); err == nil {
		err = late
	}
	return err
}

// settle waits until what a stream has been given so far is done, at most for limit. It
// does not ask for an empty stream, since others may go on to fill it.
func (d *device) settle(s driver.Stream, limit time.Duration) error {
	var e driver.Event
	err := d.do(func() (err error) {
		if e, err = d.drv.CreateEvent(); err != nil {
			return err
		}
		return d.drv.Record(e, s)
	})
	if err == nil {
		err = d.until(limit, func() (done bool, err error) {
			err = d.do(func() error {
				done, err = d.drv.QueryEvent(e)
				return err
			})
			return done, err
		})
	}
	if e != 0 {
		d.do(func() error { return d.drv.DestroyEvent(e) })
	}
	return err
}
