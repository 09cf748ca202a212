//go:build cgo && !js && (linux || darwin || windows)

package native

import (
	"fmt"

	"github.com/cogentcore/webgpu/wgpu"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/guard"
)

var usages = map[driver.BufferUsage]wgpu.BufferUsage{
	driver.MapRead:  wgpu.BufferUsageMapRead,
	driver.MapWrite: wgpu.BufferUsageMapWrite,
	driver.CopySrc:  wgpu.BufferUsageCopySrc,
	driver.CopyDst:  wgpu.BufferUsageCopyDst,
	driver.Storage:  wgpu.BufferUsageStorage,
	driver.Uniform:  wgpu.BufferUsageUniform,
	driver.Resolve:  wgpu.BufferUsageQueryResolve,
}

func usageOf(u driver.BufferUsage) (native wgpu.BufferUsage) {
	for bit, n := range usages {
		if u&bit != 0 {
			native |= n
		}
	}
	return native
}

// maker makes and frees objects for guard.Objects.
type maker struct{ d *device }

// Usable implements guard.Library.
func (m maker) Usable(what string) error { return m.d.usable(what) }

// MakeBuffer implements guard.Library.
func (m maker) MakeBuffer(desc driver.BufferDesc) (*wgpu.Buffer, error) {
	var b *wgpu.Buffer
	err := m.d.guarded(fmt.Sprintf("create buffer %q of %d bytes", desc.Label, desc.Size), func() (err error) {
		b, err = m.d.native.CreateBuffer(&wgpu.BufferDescriptor{Label: desc.Label, Size: desc.Size, Usage: usageOf(desc.Usage)})
		return err
	})
	if err != nil && b != nil {
		b.Release()
	}
	return b, err
}

// FreeBuffer implements guard.Library. Release alone would keep the memory while a bind
// group holds the buffer.
func (m maker) FreeBuffer(b *wgpu.Buffer) {
	b.Destroy()
	b.Release()
}

// MakePipeline implements guard.Library.
func (m maker) MakePipeline(desc driver.PipelineDesc) (*wgpu.ComputePipeline, error) {
	d := m.d
	shared, err := d.layoutFor(desc.Bindings)
	if err != nil {
		return nil, err
	}
	var module *wgpu.ShaderModule
	err = d.guarded(fmt.Sprintf("compile %q", desc.Label), func() (err error) {
		module, err = d.native.CreateShaderModule(&wgpu.ShaderModuleDescriptor{
			Label: desc.Label, WGSLDescriptor: &wgpu.ShaderModuleWGSLDescriptor{Code: desc.Source},
		})
		return err
	})
	if module != nil {
		defer module.Release()
	}
	if err != nil {
		return nil, err
	}
	var p *wgpu.ComputePipeline
	err = d.guarded(fmt.Sprintf("create pipeline %q, entry point %q", desc.Label, desc.Entry), func() (err error) {
		p, err = d.native.CreateComputePipeline(&wgpu.ComputePipelineDescriptor{
			Label: desc.Label, Layout: shared.pipeline,
			Compute: wgpu.ProgrammableStageDescriptor{Module: module, EntryPoint: desc.Entry},
		})
		return err
	})
	if err != nil && p != nil {
		p.Release()
	}
	return p, err
}

// FreePipeline implements guard.Library.
func (m maker) FreePipeline(p *wgpu.ComputePipeline) { p.Release() }

// MakeGroup implements guard.Library.
func (m maker) MakeGroup(p *guard.Pipeline[*wgpu.ComputePipeline], bindings []driver.Binding, buffers []*guard.Buffer[*wgpu.Buffer]) (*wgpu.BindGroup, error) {
	entries := make([]wgpu.BindGroupEntry, len(bindings))
	for i, b := range bindings {
		entries[i] = wgpu.BindGroupEntry{Binding: uint32(i), Buffer: buffers[i].Native, Offset: b.Offset, Size: b.Size}
	}
	var g *wgpu.BindGroup
	err := m.d.guarded(fmt.Sprintf("create bind group for pipeline %q", p.Label), func() (err error) {
		g, err = m.d.native.CreateBindGroup(&wgpu.BindGroupDescriptor{Layout: m.d.layouts[p.Layout].group, Entries: entries})
		return err
	})
	if err != nil && g != nil {
		g.Release()
	}
	return g, err
}

// FreeGroup implements guard.Library.
func (m maker) FreeGroup(g *wgpu.BindGroup) { g.Release() }

// MakeQueries implements guard.Library.
func (m maker) MakeQueries(count uint32) (*wgpu.QuerySet, error) {
	var q *wgpu.QuerySet
	err := m.d.guarded("create queries", func() (err error) {
		q, err = m.d.native.CreateQuerySet(&wgpu.QuerySetDescriptor{Type: wgpu.QueryTypeTimestamp, Count: count})
		return err
	})
	if err != nil && q != nil {
		q.Release()
	}
	return q, err
}

// FreeQueries implements guard.Library.
func (m maker) FreeQueries(q *wgpu.QuerySet) { q.Release() }

// layoutFor finds or makes the layouts for a list of bindings. They live as long as the
// device: there are as many as there are different lists.
func (d *device) layoutFor(kinds []driver.BindingKind) (layout, error) {
	key := d.book.LayoutOf(kinds)
	if l, ok := d.layouts[key]; ok {
		return l, nil
	}
	entries := make([]wgpu.BindGroupLayoutEntry, len(kinds))
	for i, k := range kinds {
		entries[i] = wgpu.BindGroupLayoutEntry{
			Binding: uint32(i), Visibility: wgpu.ShaderStageCompute,
			Buffer: wgpu.BufferBindingLayout{Type: bindingType(k), HasDynamicOffset: k == driver.UniformDynamic},
		}
	}
	var l layout
	err := d.guarded("create bind group layout", func() (err error) {
		l.group, err = d.native.CreateBindGroupLayout(&wgpu.BindGroupLayoutDescriptor{Entries: entries})
		return err
	})
	if err == nil {
		err = d.guarded("create pipeline layout", func() (err error) {
			l.pipeline, err = d.native.CreatePipelineLayout(&wgpu.PipelineLayoutDescriptor{BindGroupLayouts: []*wgpu.BindGroupLayout{l.group}})
			return err
		})
	}
	if err != nil {
		if l.pipeline != nil {
			l.pipeline.Release()
		}
		if l.group != nil {
			l.group.Release()
		}
		return layout{}, err
	}
	d.layouts[key] = l
	return l, nil
}

func bindingType(k driver.BindingKind) wgpu.BufferBindingType {
	switch k {
	case driver.StorageRead:
		return wgpu.BufferBindingTypeReadOnlyStorage
	case driver.StorageReadWrite:
		return wgpu.BufferBindingTypeStorage
	}
	return wgpu.BufferBindingTypeUniform
}
