//go:build cgo && !js && (linux || darwin || windows)

package native

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/cogentcore/webgpu/wgpu"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// OpenGL is never taken: looking for it prints to standard error and opens windows'
// display connections.
const backends = wgpu.InstanceBackendVulkan | wgpu.InstanceBackendMetal | wgpu.InstanceBackendDX12

// maxBufferSize stands in for the limit of adapters that name none: above it the
// library's own sums could overflow before it asks the driver.
const maxBufferSize = 1 << 40

const (
	flagDebug         = 1 << 0
	flagValidation    = 1 << 1
	flagDiscardLabels = 1 << 2
)

type provider struct {
	options Options

	mu       sync.Mutex
	closed   bool
	instance *wgpu.Instance
	adapters []adapter
}

type adapter struct {
	driver.Adapter
	native *wgpu.Adapter
}

// New returns the provider. Nothing is loaded before Adapters or Open is called.
func New(options Options) (driver.Provider, error) {
	return &provider{options: options}, nil
}

func (p *provider) Name() string { return "native" }

func (p *provider) Adapters(ctx context.Context) ([]driver.Adapter, error) {
	return bounded(ctx, "list adapters", func() ([]driver.Adapter, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if err := p.enumerate(); err != nil {
			return nil, err
		}
		list := make([]driver.Adapter, len(p.adapters))
		for i, a := range p.adapters {
			list[i] = a.Adapter
		}
		return list, nil
	}, func([]driver.Adapter) {})
}

// bounded runs a call that may hang in a driver, and leaves it behind when ctx ends;
// discard gets what it returns after that.
func bounded[T any](ctx context.Context, what string, call func() (T, error), discard func(T)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	if ctx.Err() != nil {
		return none, fmt.Errorf("native: %s: %w", what, context.Cause(ctx))
	}
	if ctx.Done() == nil {
		return call()
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := call()
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		go func() {
			if a := <-answers; a.err == nil {
				discard(a.value)
			}
		}()
		return none, fmt.Errorf("native: %s: the system's drivers have not answered: %w", what, context.Cause(ctx))
	}
}

// enumerate fills the list once. Asking again would leak what the library allocates
// for every description.
func (p *provider) enumerate() (err error) {
	if p.closed {
		return fmt.Errorf("native: list adapters: the provider is closed: %w", pass.ErrClosed)
	}
	if p.adapters != nil {
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("native: list adapters: %v: %w", r, pass.ErrNoDevice)
		}
	}()
	level, flags := wgpu.LogLevelOff, C.uint32_t(flagDiscardLabels)
	if p.options.Debug {
		level, flags = wgpu.LogLevelWarn, flagDebug|flagValidation
	}
	wgpu.SetLogLevel(level)
	if p.instance == nil {
		var ref C.WGPUInstance
		quietly(func() { ref = C.tandem_create_instance(C.uint32_t(backends), flags) })
		if ref == nil {
			return fmt.Errorf("native: the library could not be started: %w", pass.ErrNoDevice)
		}
		p.instance = wrap[wgpu.Instance](unsafe.Pointer(ref))
	}
	var list []adapter
	for _, native := range p.instance.EnumerateAdapters(&wgpu.InstanceEnumerateAdapterOptons{Backends: backends}) {
		a, ok := describe(native)
		if !ok {
			native.Release()
			continue
		}
		a.Index = len(list)
		list = append(list, a)
	}
	if list == nil {
		// The library looks for drivers when the instance is made: start afresh.
		p.instance.Release()
		p.instance = nil
		return fmt.Errorf("native: no adapter: %s: %w", lookedFor(), pass.ErrNoDevice)
	}
	p.adapters = list
	return nil
}

func describe(native *wgpu.Adapter) (adapter, bool) {
	info := native.GetInfo()
	a := adapter{native: native, Adapter: driver.Adapter{
		Vendor: driver.VendorName(info.VendorId), VendorID: info.VendorId, DeviceID: info.DeviceId,
		API: apiOf(info.BackendType), Type: typeOf(info),
	}}
	a.Name, a.Driver = names(info)
	var limits C.WGPULimits
	if C.tandem_adapter_limits(handleOf(native), &limits) == 0 {
		return adapter{}, false
	}
	a.Limits = limitsFrom(&limits)
	a.Limits.MaxBufferSize = min(a.Limits.MaxBufferSize, maxBufferSize)
	for _, f := range nativeFeatures() {
		if native.HasFeature(f.native) {
			a.Features |= f.feature
		}
	}
	return a, true
}

type nativeFeature struct {
	feature driver.Feature
	native  wgpu.FeatureName
}

// nativeFeatures are those that work. The library lists f16, but its front end does not
// read it; and from version 22 on, time stamps outside of a pass need a feature that it
// cannot be asked for.
func nativeFeatures() []nativeFeature {
	features := []nativeFeature{{driver.FeatureMappedStorage, wgpu.NativeFeatureMappablePrimaryBuffers}}
	if wgpu.GetVersion()>>24 < 22 {
		features = append(features, nativeFeature{driver.FeatureTimestamps, wgpu.FeatureNameTimestampQuery})
	}
	return features
}

func (p *provider) Open(ctx context.Context, index int, cfg driver.DeviceConfig) (driver.Device, error) {
	return bounded(ctx, fmt.Sprintf("open adapter %d", index), func() (driver.Device, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if err := p.enumerate(); err != nil {
			return nil, err
		}
		if index < 0 || index >= len(p.adapters) {
			return nil, fmt.Errorf("native: open adapter %d: there are %d: %w", index, len(p.adapters), pass.ErrNoDevice)
		}
		a := p.adapters[index]
		limits, features, err := a.Grant(cfg)
		if err != nil {
			return nil, err
		}
		return open(a, cfg, limits, features)
	}, func(d driver.Device) { d.Close() })
}

// open asks for the device. State lives in C until the device is gone.
func open(a adapter, cfg driver.DeviceConfig, limits driver.Limits, features driver.Feature) (driver.Device, error) {
	var required C.WGPULimits
	if C.tandem_adapter_limits(handleOf(a.native), &required) == 0 {
		return nil, fmt.Errorf("native: open %s (%s): the adapter is gone: %w", a.Name, a.API, pass.ErrNoDevice)
	}
	setLimits(&required, limits)
	var wanted []C.uint32_t
	for _, f := range nativeFeatures() {
		if features&f.feature != 0 {
			wanted = append(wanted, C.uint32_t(f.native))
		}
	}
	label := C.CString(cfg.Label)
	defer C.free(unsafe.Pointer(label))
	state := (*C.tandem_state)(C.calloc(1, C.sizeof_tandem_state))
	failed := (*C.tandem_error)(C.calloc(1, C.sizeof_tandem_error))
	ref := C.tandem_request_device(handleOf(a.native), label, unsafe.SliceData(wanted), C.size_t(len(wanted)), &required, state, failed)
	if ref == nil {
		reason := oneLine(C.GoString(&failed.message[0]))
		C.free(unsafe.Pointer(state))
		C.free(unsafe.Pointer(failed))
		return nil, fmt.Errorf("native: open %s (%s): %s: %w", a.Name, a.API, reason, pass.ErrNoDevice)
	}
	return newDevice(a, unsafe.Pointer(ref), state, failed, limits, features, cfg.MemoryBudget), nil
}

func (p *provider) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, a := range slices.Backward(p.adapters) {
		a.native.Release()
	}
	p.adapters = nil
	if p.instance != nil {
		p.instance.Release()
		p.instance = nil
	}
	return nil
}
