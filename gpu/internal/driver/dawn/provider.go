//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// requestTimeout bounds how long the library may look for an adapter or open one.
const requestTimeout = 30 * time.Second

type provider struct {
	options Options
	library *library

	mu       sync.Mutex
	closed   bool
	instance handle
	adapters []adapter
}

// New loads the library and returns the provider. Errors wrap pass.ErrNoDevice: the
// library is not there, is not one, or is of a version that is not taken.
func New(options Options) (driver.Provider, error) {
	path, err := Find(options.Library)
	if err != nil {
		return nil, err
	}
	l, err := load(path)
	if err != nil {
		return nil, err
	}
	return &provider{options: options, library: l}, nil
}

// Name implements driver.Provider.
func (p *provider) Name() string { return "dawn" }

// Library implements driver.Loaded.
func (p *provider) Library() string { return p.library.path }

// Adapters implements driver.Provider.
func (p *provider) Adapters(ctx context.Context) ([]driver.Adapter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.enumerate(ctx); err != nil {
		return nil, err
	}
	list := make([]driver.Adapter, len(p.adapters))
	for i, a := range p.adapters {
		list[i] = a.Adapter
	}
	return list, nil
}

// wish is a way to ask for an adapter. The library has no list of them: it answers each
// wish with the one that fits best.
type wish struct {
	backend    uint32
	preference uint32 // 0: none, 1: low power, 2: high performance
	fallback   uint32 // 1: a software implementation
}

func wishes() (list []wish) {
	backends := []uint32{backendVulkan}
	switch runtime.GOOS {
	case "darwin":
		backends = []uint32{backendMetal}
	case "windows":
		backends = []uint32{backendD3D12, backendVulkan}
	}
	for _, b := range backends {
		for _, preference := range []uint32{2, 1} {
			list = append(list, wish{backend: b, preference: preference})
		}
		list = append(list, wish{backend: b, fallback: 1})
	}
	return list
}

// enumerate fills the list once.
func (p *provider) enumerate(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("dawn: list adapters: %w", context.Cause(ctx))
	case p.closed:
		return fmt.Errorf("dawn: list adapters: the provider is closed: %w", pass.ErrClosed)
	case p.adapters != nil:
		return nil
	}
	if p.instance == 0 {
		var err error
		if p.instance, err = p.library.shareInstance(); err != nil {
			return err
		}
	}
	var reasons []error
	list := p.library.listed(p.options.NoNVIDIAF16)
	if list == nil {
		quietly(p.options.Debug, func() { list, reasons = p.ask(ctx) })
	}
	if list == nil {
		// The library looks for drivers when the instance is made: start afresh.
		p.library.forgetInstance(p.instance)
		p.library.call(instanceRelease, p.instance)
		p.instance = 0
		reason := distinct(reasons)
		if runtime.GOOS != "darwin" {
			reason += "; " + driver.VulkanVariables(os.Getenv) + "; Dawn refuses old drivers, such as that of Mesa 22.3"
		}
		return fmt.Errorf("dawn: no adapter: library %s: %s: %w", p.library.path, reason, pass.ErrNoDevice)
	}
	p.adapters = list
	p.library.keep(p.options.NoNVIDIAF16, list)
	return nil
}

// listed returns the adapters that a provider with the same settings found before. They
// are asked for once a process, like the instance, since drivers keep memory of each
// asking.
func (l *library) listed(noF16 bool) []adapter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.adapters[noF16]
}

func (l *library) keep(noF16 bool, list []adapter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.adapters == nil {
		l.adapters = map[bool][]adapter{}
	}
	l.adapters[noF16] = list
}

// ask asks for every kind of adapter; what is answered twice is listed once.
func (p *provider) ask(ctx context.Context) (list []adapter, reasons []error) {
	for _, w := range wishes() {
		a, err := p.request(ctx, w)
		if err != nil {
			reasons = append(reasons, err)
			continue
		}
		a.Index = len(list)
		if known(list, a) {
			p.library.call(adapterRelease, a.handle)
			continue
		}
		list = append(list, a)
	}
	return list, reasons
}

// known reports whether the list has the adapter already.
func known(list []adapter, a adapter) bool {
	for _, b := range list {
		if a.API == b.API && a.VendorID == b.VendorID && a.DeviceID == b.DeviceID && a.Name == b.Name && a.Type == b.Type {
			return true
		}
	}
	return false
}

// distinct joins the messages of errors, each once.
func distinct(list []error) string {
	var parts []string
	seen := map[string]bool{}
	for _, err := range list {
		if text := err.Error(); !seen[text] {
			seen[text] = true
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "; ")
}

// shareInstance returns a reference to the process's instance of the library. It is never
// given back: drivers run out of something that instances take and do not return.
// NVIDIA's, of version 580, offers no device any more after some thirty of them.
func (l *library) shareInstance() (handle, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == 0 {
		instance, err := l.newInstance()
		if err != nil {
			return 0, err
		}
		l.kept = instance
	}
	l.call(instanceAddRef, l.kept)
	return l.kept, nil
}

// forgetInstance lets the next provider make an instance of its own.
func (l *library) forgetInstance(instance handle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == instance {
		l.kept = 0
		l.call(instanceRelease, instance)
	}
}

// newInstance makes an instance that waits with time-outs and admits matrix units,
// which the library files under unsafe.
func (l *library) newInstance() (handle, error) {
	if !l.boolean(hasInstanceFeature, uintptr(l.timedWaits)) {
		return 0, fmt.Errorf("dawn: library %s: it cannot wait with a time-out: %w", l.path, pass.ErrNoDevice)
	}
	features := []uint32{l.timedWaits}
	if l.boolean(hasInstanceFeature, uintptr(l.manyDevices)) {
		features = append(features, l.manyDevices)
	}
	toggles := newToggles(l, []string{"allow_unsafe_apis"}, nil)
	desc := &instanceDescriptor{next: unsafe.Pointer(toggles), featureCount: uintptr(len(features)), features: &features[0]}
	instance := l.call(createInstance, uintptr(unsafe.Pointer(desc)))
	if instance == 0 {
		return 0, fmt.Errorf("dawn: library %s: it could not be started: %w", l.path, pass.ErrNoDevice)
	}
	return instance, nil
}

// newToggles builds the list of settings for an instance, an adapter or a device. Names
// that the library does not know have no effect.
func newToggles(l *library, on, off []string) *togglesDescriptor {
	t := &togglesDescriptor{chained: chained{sType: l.togglesType}}
	t.enabledCount, t.enabled = cStrings(on)
	t.disabledCount, t.disabled = cStrings(off)
	return t
}

func cStrings(list []string) (uintptr, **byte) {
	if len(list) == 0 {
		return 0, nil
	}
	pointers := make([]*byte, len(list))
	for i, s := range list {
		pointers[i] = unsafe.StringData(s + "\x00")
	}
	return uintptr(len(list)), &pointers[0]
}

// request asks for an adapter and describes it.
func (p *provider) request(ctx context.Context, w wish) (adapter, error) {
	h, err := p.requestHandle(ctx, w)
	if err != nil {
		return adapter{}, err
	}
	a, err := p.library.describe(h)
	if err != nil {
		p.library.call(adapterRelease, h)
		return adapter{}, err
	}
	a.wish = w
	return a, nil
}

func (p *provider) requestHandle(ctx context.Context, w wish) (handle, error) {
	l := p.library
	on := []string{"use_vulkan_memory_model", "use_dxc"}
	if !p.options.NoNVIDIAF16 {
		on = append(on, "vulkan_enable_f16_on_nvidia")
	}
	options := &adapterOptions{
		next:         unsafe.Pointer(newToggles(l, on, nil)),
		featureLevel: featureLevelCore, powerPreference: w.preference, forceFallback: w.fallback, backend: w.backend,
	}
	op := begin(nil, theCallbacks().object)
	future := l.start(op, instanceRequestAdapter, 2, p.instance, uintptr(unsafe.Pointer(options)), 0, 0)
	if err := l.await(ctx, p.instance, future, requestTimeout, op); err != nil {
		l.abandon(p.instance, future, op, adapterRelease)
		return 0, fmt.Errorf("%s: %w", apiOf(w.backend), err)
	}
	defer op.free()
	if op.status != statusSuccess || op.object == 0 {
		return 0, fmt.Errorf("%s: %s", apiOf(w.backend), orUnknown(oneLine(op.message)))
	}
	return op.object, nil
}

// slice is the longest single wait: contexts and losses are noticed between two.
const slice = 10 * time.Millisecond

// await waits in slices for the future until the operation is finished.
func (l *library) await(ctx context.Context, instance handle, future uint64, timeout time.Duration, op *operation) error {
	start := time.Now()
	next := time.Duration(0)
	for {
		ran := l.wait(instance, future, uint64(next))
		if ok, err := op.finished(); ok || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		elapsed := time.Since(start)
		if elapsed >= timeout {
			return fmt.Errorf("not finished after %v: %w", elapsed.Round(time.Microsecond), pass.ErrTimeout)
		}
		next = min(slice, timeout-elapsed)
		if ran {
			// Another goroutine's wait took the callback, or something is wrong with
			// the future: do not spin.
			time.Sleep(min(50*time.Microsecond, timeout-elapsed))
		}
	}
}

// abandon waits in the background for an operation that nobody wants any more, and gives
// back what it made.
func (l *library) abandon(instance handle, future uint64, op *operation, release function) {
	l.call(instanceAddRef, instance)
	go func() {
		defer l.call(instanceRelease, instance)
		if l.await(context.Background(), instance, future, requestTimeout, op) == nil && op.object != 0 {
			l.call(release, op.object)
		}
		op.free()
	}()
}

// Open implements driver.Provider.
func (p *provider) Open(ctx context.Context, index int, cfg driver.DeviceConfig) (driver.Device, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.enumerate(ctx); err != nil {
		return nil, err
	}
	if index < 0 || index >= len(p.adapters) {
		return nil, fmt.Errorf("dawn: open adapter %d: there are %d: %w", index, len(p.adapters), pass.ErrNoDevice)
	}
	a := p.adapters[index]
	limits, features, err := a.Grant(cfg)
	if err != nil {
		return nil, err
	}
	// An adapter may be good for one device only.
	h, err := p.requestHandle(ctx, a.wish)
	if err != nil {
		return nil, fmt.Errorf("dawn: open %s: the adapter is gone: %w", a.Name, errors.Join(err, pass.ErrNoDevice))
	}
	defer p.library.call(adapterRelease, h)
	return p.open(ctx, a, h, cfg, limits, features)
}

// Close implements driver.Provider.
func (p *provider) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.adapters = nil
	if p.instance != 0 {
		p.library.call(instanceRelease, p.instance)
		p.instance = 0
	}
	return nil
}
