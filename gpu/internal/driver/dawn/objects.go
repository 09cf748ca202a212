//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/guard"
	"github.com/tandem-gpu/tandem/pass"
)

// compileTimeout bounds how long the library may compile a kernel.
const compileTimeout = 5 * time.Minute

// usageOf translates usages: the library's order is another.
func usageOf(u driver.BufferUsage) (native uint64) {
	for i, bit := range [...]uint64{0x1, 0x2, 0x4, 0x8, 0x80, 0x40, 0x200} {
		if u&(1<<i) != 0 {
			native |= bit
		}
	}
	return native
}

// maker makes and frees objects for guard.Objects.
type maker struct{ d *device }

// Usable implements guard.Library.
func (m maker) Usable(what string) error { return m.d.usable(what) }

// MakeBuffer implements guard.Library.
func (m maker) MakeBuffer(desc driver.BufferDesc) (handle, error) {
	d := m.d
	n := &bufferDescriptor{label: textOf(desc.Label), usage: usageOf(desc.Usage), size: desc.Size}
	var b handle
	err := d.scoped(fmt.Sprintf("create buffer %q of %d bytes", desc.Label, desc.Size), func() {
		b = d.call(deviceCreateBuffer, d.native, uintptr(unsafe.Pointer(n)))
	})
	if err == nil && b == 0 {
		err = fmt.Errorf("dawn: create buffer %q of %d bytes: the library has none: %w", desc.Label, desc.Size, pass.ErrOutOfMemory)
	}
	if err != nil {
		m.FreeBuffer(b)
		return 0, err
	}
	return b, nil
}

// FreeBuffer implements guard.Library. It gives back the memory also of buffers that bind
// groups hold.
func (m maker) FreeBuffer(b handle) {
	if b != 0 {
		m.d.call(bufferDestroy, b)
		m.d.call(bufferRelease, b)
	}
}

// MakePipeline implements guard.Library. Kernels compile side by side, without the lock.
func (m maker) MakePipeline(desc driver.PipelineDesc) (handle, error) {
	d := m.d
	shared, err := d.layoutFor(desc.Bindings)
	if err != nil {
		return 0, err
	}
	module, err := d.module(desc.Label, desc.Source)
	if err != nil {
		return 0, err
	}
	defer d.call(shaderModuleRelease, module)
	return d.compile(desc, shared.pipeline, module)
}

// FreePipeline implements guard.Library.
func (m maker) FreePipeline(p handle) { m.d.call(pipelineRelease, p) }

// MakeGroup implements guard.Library.
func (m maker) MakeGroup(p *guard.Pipeline[handle], bindings []driver.Binding, buffers []*guard.Buffer[handle]) (handle, error) {
	d := m.d
	entries := make([]groupEntry, len(bindings))
	for i, b := range bindings {
		entries[i] = groupEntry{binding: uint32(i), buffer: buffers[i].Native, offset: b.Offset, size: b.Size}
	}
	desc := &groupDescriptor{layout: d.layouts[p.Layout].group, count: uintptr(len(entries)), entries: unsafe.SliceData(entries)}
	var g handle
	err := d.scoped(fmt.Sprintf("create bind group for pipeline %q", p.Label), func() {
		g = d.call(deviceCreateBindGroup, d.native, uintptr(unsafe.Pointer(desc)))
	})
	if err != nil && g != 0 {
		m.FreeGroup(g)
	}
	return g, err
}

// FreeGroup implements guard.Library.
func (m maker) FreeGroup(g handle) { m.d.call(bindGroupRelease, g) }

// MakeQueries implements guard.Library.
func (m maker) MakeQueries(count uint32) (handle, error) { return m.d.querySet(count) }

// FreeQueries implements guard.Library.
func (m maker) FreeQueries(q handle) {
	m.d.call(querySetDestroy, q)
	m.d.call(querySetRelease, q)
}

// module parses WGSL.
func (d *device) module(label, code string) (handle, error) {
	source := &shaderSource{chained: chained{sType: wgslSource}, code: textOf(code)}
	desc := &moduleDescriptor{next: unsafe.Pointer(source), label: textOf(label)}
	var m handle
	err := d.scoped(fmt.Sprintf("compile %q", label), func() {
		m = d.call(deviceCreateShaderModule, d.native, uintptr(unsafe.Pointer(desc)))
	})
	if err != nil && m != 0 {
		d.call(shaderModuleRelease, m)
	}
	return m, err
}

// compile makes the pipeline. The lock is released meanwhile.
func (d *device) compile(desc driver.PipelineDesc, layout, module handle) (handle, error) {
	what := fmt.Sprintf("create pipeline %q, entry point %q", desc.Label, desc.Entry)
	n := &pipelineDescriptor{label: textOf(desc.Label), layout: layout, module: module, entry: textOf(desc.Entry)}
	op := begin(nil, theCallbacks().object)
	defer op.free()
	future := d.start(op, deviceCreatePipelineAsync, 2, d.native, uintptr(unsafe.Pointer(n)), 0, 0)
	d.claim()
	d.mu.Unlock()
	err := d.await(context.Background(), d.instance, future, compileTimeout, op)
	d.mu.Lock()
	defer d.unclaim()
	if err != nil {
		return 0, fmt.Errorf("dawn: %s: %w", what, err)
	}
	if loss := d.late.loss(); loss != nil || op.status != statusSuccess || op.object == 0 {
		if op.object != 0 {
			d.call(pipelineRelease, op.object)
		}
		if loss != nil {
			return 0, loss
		}
		message := orUnknown(oneLine(op.message))
		return 0, fmt.Errorf("dawn: %s: %s: %w", what, message, d.late.sort(errorValidation, message))
	}
	return op.object, nil
}

// layoutFor finds or makes the layouts for a list of bindings. They live as long as the
// device: there are as many as there are different lists.
func (d *device) layoutFor(kinds []driver.BindingKind) (layout, error) {
	key := d.book.LayoutOf(kinds)
	if l, ok := d.layouts[key]; ok {
		return l, nil
	}
	entries := make([]layoutEntry, len(kinds))
	for i, k := range kinds {
		entries[i].binding, entries[i].visibility = uint32(i), stageCompute
		entries[i].buffer.kind = bindingType(k)
		if k == driver.UniformDynamic {
			entries[i].buffer.dynamic = 1
		}
	}
	var l layout
	desc := &layoutDescriptor{count: uintptr(len(entries)), entries: unsafe.SliceData(entries)}
	err := d.scoped("create bind group layout", func() {
		l.group = d.call(deviceCreateBindGroupLayout, d.native, uintptr(unsafe.Pointer(desc)))
	})
	if err == nil {
		desc := &pipelineLayoutDescriptor{count: 1, layouts: &l.group}
		err = d.scoped("create pipeline layout", func() {
			l.pipeline = d.call(deviceCreatePipelineLayout, d.native, uintptr(unsafe.Pointer(desc)))
		})
	}
	if err != nil {
		if l.pipeline != 0 {
			d.call(pipelineLayoutRelease, l.pipeline)
		}
		if l.group != 0 {
			d.call(bindGroupLayoutRelease, l.group)
		}
		return layout{}, err
	}
	d.layouts[key] = l
	return l, nil
}

func bindingType(k driver.BindingKind) uint32 {
	switch k {
	case driver.StorageRead:
		return bindingReadOnlyStorage
	case driver.StorageReadWrite:
		return bindingStorage
	}
	return bindingUniform
}

func (d *device) querySet(count uint32) (handle, error) {
	desc := &querySetDescriptor{kind: queryTimestamp, count: count}
	var q handle
	err := d.scoped("create queries", func() {
		q = d.call(deviceCreateQuerySet, d.native, uintptr(unsafe.Pointer(desc)))
	})
	if err != nil && q != 0 {
		d.call(querySetRelease, q)
	}
	return q, err
}
