//go:build cgo && !js && (linux || darwin || windows)

package native

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/cogentcore/webgpu/wgpu"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/guard"
	"github.com/tandem-gpu/tandem/pass"
)

// closeTimeout bounds how long Close waits for submitted work.
const closeTimeout = 10 * time.Second

type (
	books   = guard.Book[*wgpu.Buffer, *wgpu.ComputePipeline, *wgpu.BindGroup, *wgpu.QuerySet]
	objects = guard.Objects[*wgpu.Buffer, *wgpu.ComputePipeline, *wgpu.BindGroup, *wgpu.QuerySet]
)

// layout is what pipelines with equal bindings share.
type layout struct {
	group    *wgpu.BindGroupLayout
	pipeline *wgpu.PipelineLayout
}

// device implements driver.Device and driver.Timer.
type device struct {
	objects
	name   string
	native *wgpu.Device
	ref    unsafe.Pointer // of native
	queue  unsafe.Pointer
	// stretch is how many commands go to the device at a time; 0: all. A software device
	// runs what it is given before the call returns, and the lock is held meanwhile.
	stretch C.size_t

	// mu covers all calls into the library and everything below. The library keeps one
	// stack of error scopes a device: without it an error would land on another
	// goroutine's call.
	mu         sync.Mutex
	idle       sync.Cond // signalled when mapping drops to 0
	state      *C.tandem_state
	cerror     *C.tandem_error
	book       *books
	layouts    map[int]layout
	commands   []C.tandem_command // reused by Submit
	serial     driver.Serial      // newest submission
	mapping    int                // ReadMapped and WriteMapped calls in progress
	orphans    []*C.tandem_mapping
	firstError error
	lostReason string
	closing    bool

	closeOnce sync.Once
	closeErr  error
}

func newDevice(a adapter, ref unsafe.Pointer, state *C.tandem_state, cerror *C.tandem_error, limits driver.Limits, features driver.Feature, budget uint64) *device {
	cerror._type = 0
	d := &device{
		name: a.Name, native: wrap[wgpu.Device](ref), ref: ref,
		queue: unsafe.Pointer(C.wgpuDeviceGetQueue(C.WGPUDevice(ref))),
		state: state, cerror: cerror, layouts: map[int]layout{},
		book: guard.New[*wgpu.Buffer, *wgpu.ComputePipeline, *wgpu.BindGroup, *wgpu.QuerySet](limits, features, budget),
	}
	d.objects = guard.NewObjects(&d.mu, d.book, maker{d})
	d.idle.L = &d.mu
	if a.Type != driver.CPU {
		d.stretch = 192
	}
	return d
}

// setStretch is for tests.
func (d *device) setStretch(commands int) { d.stretch = C.size_t(commands) }

// Err implements driver.Device.
func (d *device) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state == nil {
		return d.firstError
	}
	return d.failure()
}

// Ledger implements driver.Device.
func (d *device) Ledger() driver.Ledger {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.book.Ledger()
	if d.state != nil {
		l.InFlight = int(d.serial - driver.Serial(d.state.done))
	}
	return l
}

// guarded runs a call of the binding inside error scopes, and turns its panics into
// errors.
func (d *device) guarded(what string, call func() error) (err error) {
	C.tandem_push(d.ref)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
		C.tandem_pop(d.ref, d.cerror)
		if scope := d.take(what); scope != nil {
			err = scope
		} else if err != nil {
			err = d.libraryError(what, C.WGPUErrorType_Validation, err.Error())
		}
	}()
	return call()
}

// Done implements driver.Device.
func (d *device) Done() (driver.Serial, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("done"); err != nil {
		return 0, err
	}
	C.tandem_poll(d.ref)
	return driver.Serial(d.state.done), d.failure()
}

// Wait implements driver.Device.
func (d *device) Wait(ctx context.Context, serial driver.Serial, timeout time.Duration) error {
	d.mu.Lock()
	err := d.usable("wait")
	newest := d.serial
	d.mu.Unlock()
	if err != nil {
		return err
	}
	if serial > newest {
		return fmt.Errorf("native: wait: submission %d was not made, the newest is %d: %w", serial, newest, pass.ErrInvalid)
	}
	return d.await(ctx, fmt.Sprintf("wait for submission %d", serial), timeout, func() bool {
		return driver.Serial(d.state.done) >= serial
	})
}

// await polls until done, which is called under the lock.
func (d *device) await(ctx context.Context, what string, timeout time.Duration, done func() bool) error {
	start := time.Now()
	for {
		d.mu.Lock()
		err := d.usable(what)
		finished := false
		if err == nil {
			C.tandem_poll(d.ref)
			finished = done()
			err = d.failure()
		}
		d.mu.Unlock()
		switch {
		case err != nil:
			return err
		case finished:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("native: %s: %w", what, context.Cause(ctx))
		}
		elapsed := time.Since(start)
		if elapsed >= timeout {
			return fmt.Errorf("native: %s: not finished after %v: %w", what, elapsed.Round(time.Microsecond), pass.ErrTimeout)
		}
		pause(elapsed, timeout-elapsed)
	}
}

// pause backs off: short work is seen at once, long work costs no processor time. The
// runtime's own sleep takes a millisecond at least on most systems, so shorter ones are
// the C library's.
func pause(elapsed, left time.Duration) {
	switch {
	case elapsed < 30*time.Microsecond:
		runtime.Gosched()
	case elapsed < 5*time.Millisecond && runtime.GOOS != "windows":
		C.tandem_nap(C.uint32_t(min(max(elapsed/16, 10*time.Microsecond), left).Nanoseconds()))
	default:
		time.Sleep(min(time.Millisecond, left))
	}
}

// Close implements driver.Device.
func (d *device) Close() error {
	if d == nil {
		return nil
	}
	d.closeOnce.Do(func() { d.closeErr = d.close() })
	return d.closeErr
}

func (d *device) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closing = true
	for d.mapping > 0 {
		d.idle.Wait()
	}
	start := time.Now()
	for d.state.lost == 0 && driver.Serial(d.state.done) < d.serial {
		C.tandem_poll(d.ref)
		elapsed := time.Since(start)
		if elapsed > closeTimeout {
			// Freeing what the device may write to would be worse than keeping it.
			d.failure()
			d.state = nil
			d.Abandon()
			return fmt.Errorf("native: close %s: work not finished after %v, its memory is kept: %w", d.name, closeTimeout, pass.ErrTimeout)
		}
		d.mu.Unlock()
		pause(elapsed, closeTimeout)
		d.mu.Lock()
	}
	d.release()
	return nil
}

// release frees everything, children first. The state outlives the device, whose
// release may still run callbacks.
func (d *device) release() {
	d.failure()
	d.FreeAll()
	for _, l := range d.layouts {
		l.pipeline.Release()
		l.group.Release()
	}
	d.layouts = nil
	C.wgpuQueueRelease(C.WGPUQueue(d.queue))
	d.native.Release()
	for _, m := range d.orphans {
		C.free(unsafe.Pointer(m))
	}
	C.free(unsafe.Pointer(d.cerror))
	C.free(unsafe.Pointer(d.state))
	d.orphans, d.cerror, d.state, d.commands = nil, nil, nil, nil
}
