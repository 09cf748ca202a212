//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/guard"
	"github.com/tandem-gpu/tandem/pass"
)

// closeTimeout bounds how long Close waits for submitted work.
const closeTimeout = 10 * time.Second

type (
	books   = guard.Book[handle, handle, handle, handle]
	objects = guard.Objects[handle, handle, handle, handle]
)

// layout is what pipelines with equal bindings share.
type layout struct {
	group    handle
	pipeline handle
}

// device implements driver.Device and driver.Timer.
type device struct {
	*library
	objects
	name     string
	kind     driver.AdapterType
	id       uintptr // in devices
	cache    *blobCache
	cacheID  uintptr
	instance handle
	native   handle
	queue    handle

	late lateErrors
	done atomic.Uint64 // newest submission reported finished

	// mu covers the calls that change something, and everything below.
	mu       sync.Mutex
	idle     sync.Cond // signalled when busy drops to 0
	book     *books
	layouts  map[int]layout
	futures  [driver.MaxInFlight]uint64 // of submissions, by serial
	steps    []step                     // reused by Submit
	commands handle                     // of Submit, in memory that the library reads
	doneInfo *callbackInfo              // of Submit
	doneArgs [12]uintptr                // of Submit
	args     [12]uintptr                // of quick
	oldest   driver.Serial              // of those whose callback was not seen to run
	serial   driver.Serial              // newest submission
	busy     int                        // calls that wait with a claim on an object
	closing  bool
	closed   bool
	owed     []uint64 // futures of maps that ended early, whose callbacks are still to come
	final    error    // Err after Close

	closeOnce sync.Once
	closeErr  error
}

// open asks for the device and tries every feature on it.
func (p *provider) open(ctx context.Context, a adapter, from handle, cfg driver.DeviceConfig, granted driver.Limits, features driver.Feature) (driver.Device, error) {
	l := p.library
	var required limits
	if uint32(l.call(adapterGetLimits, from, uintptr(unsafe.Pointer(&required)))) != statusSuccess {
		return nil, fmt.Errorf("dawn: open %s (%s): the adapter is gone: %w", a.Name, a.API, pass.ErrNoDevice)
	}
	required.fill(granted)
	d := &device{library: l, name: a.Name, kind: a.Type, instance: p.instance, layouts: map[int]layout{}, oldest: 1}
	d.idle.L, d.late.name = &d.mu, a.Name
	d.book = guard.New[handle, handle, handle, handle](granted, features, cfg.MemoryBudget)
	d.objects = guard.NewObjects(&d.mu, d.book, maker{d})
	d.id = devices.add(d)
	d.doneInfo = &callbackInfo{mode: modeWaitAnyOnly, callback: theCallbacks().done, userdata1: d.id}
	wanted := l.numbersOf(features)
	desc := &deviceDescriptor{
		label: textOf(cfg.Label), featureCount: uintptr(len(wanted)), features: &wanted[0], limits: &required,
		lost:       callbackInfo{mode: modeAllowSpontaneous, callback: theCallbacks().lost, userdata1: d.id},
		uncaptured: functionInfo{callback: theCallbacks().uncaptured, userdata1: d.id},
	}
	d.extend(desc, p.options)
	op := begin(nil, theCallbacks().object)
	future := l.start(op, adapterRequestDevice, 2, from, uintptr(unsafe.Pointer(desc)), 0, 0)
	err := l.await(ctx, p.instance, future, requestTimeout, op)
	if err != nil {
		l.abandon(p.instance, future, op, deviceRelease)
		d.forget()
		return nil, fmt.Errorf("dawn: open %s (%s): %w", a.Name, a.API, err)
	}
	defer op.free()
	if op.status != statusSuccess || op.object == 0 {
		err = errors.New(orUnknown(oneLine(op.message)))
		d.forget()
		return nil, fmt.Errorf("dawn: open %s (%s): %w", a.Name, a.API, errors.Join(err, pass.ErrNoDevice))
	}
	// The device outlives the provider.
	l.call(instanceAddRef, d.instance)
	d.native = op.object
	d.queue = l.call(deviceGetQueue, d.native)
	if err := d.tryFeatures(features); err != nil {
		d.Close()
		return nil, fmt.Errorf("dawn: open %s (%s): %w", a.Name, a.API, err)
	}
	return d, nil
}

// numbersOf lists the library's numbers of the features to ask for.
func (l *library) numbersOf(features driver.Feature) []uint32 {
	numbers := []uint32{l.features[implicitSynchronization]}
	asked := map[feature]bool{}
	for _, o := range offered {
		for _, f := range o.needs {
			if features&o.feature != 0 && !asked[f] {
				asked[f] = true
				numbers = append(numbers, l.features[f])
			}
		}
	}
	return numbers
}

// extend chains the settings and the cache of compiled kernels.
func (d *device) extend(desc *deviceDescriptor, options Options) {
	var on []string
	if options.Unchecked {
		on = append(on, "disable_robustness")
	}
	toggles := newToggles(d.library, on, []string{"timestamp_quantization"})
	desc.next = unsafe.Pointer(toggles)
	if d.cache = openCache(options.Cache); d.cache != nil {
		d.cacheID = caches.add(d.cache)
		toggles.next = unsafe.Pointer(&cacheDescriptor{
			chained: chained{sType: d.cacheType}, isolationKey: textOf("tandem"),
			load:  functionInfo{callback: theCallbacks().load, userdata1: d.cacheID},
			store: functionInfo{callback: theCallbacks().store, userdata1: d.cacheID},
		})
	}
}

// forget takes the device out of the registries: later callbacks find nobody.
func (d *device) forget() {
	devices.remove(d.id)
	if d.cache != nil {
		caches.remove(d.cacheID)
	}
}

// Err implements driver.Device.
func (d *device) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.final
	}
	return d.late.failure()
}

// Ledger implements driver.Device.
func (d *device) Ledger() driver.Ledger {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.book.Ledger()
	if !d.closed {
		l.InFlight = int(uint64(d.serial) - d.done.Load())
	}
	return l
}

// usable is nil while calls may go to the library.
func (d *device) usable(what string) error {
	if d.closing {
		return fmt.Errorf("dawn: %s: the device is closed: %w", what, pass.ErrClosed)
	}
	return d.late.loss()
}

// scoped runs a call of the library inside error scopes, so that its errors are known
// to be its own. The scopes may be the thread's.
func (d *device) scoped(what string, call func()) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	filters := [...]uintptr{filterInternal, filterOutOfMemory, filterValidation}
	for _, f := range filters {
		d.call(devicePushErrorScope, d.native, f)
	}
	call()
	var first error
	for range filters {
		kind, message, err := d.popScope()
		if err != nil {
			return fmt.Errorf("dawn: %s: %w", what, err)
		}
		if first == nil && kind != errorNone {
			message = oneLine(message)
			first = fmt.Errorf("dawn: %s: %s: %w", what, message, d.late.sort(kind, message))
		}
	}
	if err := d.late.loss(); err != nil {
		return err
	}
	return first
}

// popScope ends the innermost error scope and returns its error.
func (d *device) popScope() (kind uint32, message string, err error) {
	op := begin(nil, theCallbacks().scope)
	defer op.free()
	future := d.start(op, devicePopErrorScope, 1, d.native, 0, 0, 0)
	if err := d.await(context.Background(), d.instance, future, requestTimeout, op); err != nil {
		return 0, "", err
	}
	if op.status != statusSuccess {
		return errorNone, "", nil
	}
	return op.kind, op.message, nil
}

// claim marks the start of a wait that holds an object of the device; the lock is held.
func (d *device) claim() { d.busy++ }

func (d *device) unclaim() {
	if d.busy--; d.busy == 0 {
		d.idle.Broadcast()
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
	for d.busy > 0 {
		d.idle.Wait()
	}
	start := time.Now()
	for d.late.loss() == nil && d.done.Load() < uint64(d.serial) {
		if d.reap(); d.done.Load() >= uint64(d.serial) {
			break
		}
		if time.Since(start) > closeTimeout {
			// Freeing what the device may write to would be worse than keeping it.
			d.final, d.closed = d.late.failure(), true
			d.Abandon()
			return fmt.Errorf("dawn: close %s: work not finished after %v, its memory is kept: %w", d.name, closeTimeout, pass.ErrTimeout)
		}
		d.wait(d.instance, d.futures[d.serial%driver.MaxInFlight], uint64(slice))
	}
	d.release()
	return nil
}

// release frees everything, children first.
func (d *device) release() {
	d.late.keep()
	d.final, d.closed = d.late.failure(), true
	d.FreeAll()
	for _, l := range d.layouts {
		d.call(pipelineLayoutRelease, l.pipeline)
		d.call(bindGroupLayoutRelease, l.group)
	}
	d.layouts = nil
	d.call(queueRelease, d.queue)
	d.call(deviceDestroy, d.native)
	d.call(deviceRelease, d.native)
	// Callbacks that are still to come come now.
	for ; d.oldest <= d.serial; d.oldest++ {
		d.wait(d.instance, d.futures[d.oldest%driver.MaxInFlight], 0)
	}
	for _, future := range d.owed {
		d.wait(d.instance, future, uint64(slice))
	}
	d.owed = nil
	d.call(instanceProcessEvents, d.instance)
	d.call(instanceRelease, d.instance)
	d.forget()
}
