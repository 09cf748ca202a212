//go:build cgo && !js && (linux || darwin || windows)

package native

import (
	"fmt"

	"github.com/cogentcore/webgpu/wgpu"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
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

func (d *device) CreateBuffer(desc driver.BufferDesc) (driver.BufferID, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("create buffer"); err != nil {
		return 0, err
	}
	if err := d.book.CheckBuffer(desc); err != nil {
		return 0, err
	}
	var b *wgpu.Buffer
	err := d.guarded(fmt.Sprintf("create buffer %q of %d bytes", desc.Label, desc.Size), func() (err error) {
		b, err = d.native.CreateBuffer(&wgpu.BufferDescriptor{Label: desc.Label, Size: desc.Size, Usage: usageOf(desc.Usage)})
		return err
	})
	if err != nil {
		if b != nil {
			b.Release()
		}
		return 0, err
	}
	id, err := d.book.AddBuffer(desc, b)
	if err != nil {
		b.Release()
	}
	return id, err
}

func (d *device) DestroyBuffer(id driver.BufferID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("destroy buffer"); err != nil {
		return err
	}
	o, err := d.book.RemoveBuffer(id)
	if err != nil {
		return err
	}
	// Release alone keeps the memory while a bind group holds the buffer.
	o.Native.Destroy()
	o.Native.Release()
	return nil
}

func (d *device) CreatePipeline(desc driver.PipelineDesc) (driver.PipelineID, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("create pipeline"); err != nil {
		return 0, err
	}
	if err := d.book.CheckPipeline(desc); err != nil {
		return 0, err
	}
	shared, err := d.layoutFor(desc.Bindings)
	if err != nil {
		return 0, err
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
		return 0, err
	}
	var p *wgpu.ComputePipeline
	err = d.guarded(fmt.Sprintf("create pipeline %q, entry point %q", desc.Label, desc.Entry), func() (err error) {
		p, err = d.native.CreateComputePipeline(&wgpu.ComputePipelineDescriptor{
			Label: desc.Label, Layout: shared.pipeline,
			Compute: wgpu.ProgrammableStageDescriptor{Module: module, EntryPoint: desc.Entry},
		})
		return err
	})
	if err != nil {
		if p != nil {
			p.Release()
		}
		return 0, err
	}
	id, err := d.book.AddPipeline(desc, p)
	if err != nil {
		p.Release()
	}
	return id, err
}

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

func (d *device) DestroyPipeline(id driver.PipelineID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("destroy pipeline"); err != nil {
		return err
	}
	p, err := d.book.RemovePipeline(id)
	if err != nil {
		return err
	}
	p.Native.Release()
	return nil
}

func (d *device) CreateBindGroup(pipeline driver.PipelineID, bindings []driver.Binding) (driver.BindGroupID, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("create bind group"); err != nil {
		return 0, err
	}
	p, buffers, err := d.book.CheckGroup(pipeline, bindings)
	if err != nil {
		return 0, err
	}
	entries := make([]wgpu.BindGroupEntry, len(bindings))
	for i, b := range bindings {
		entries[i] = wgpu.BindGroupEntry{Binding: uint32(i), Buffer: buffers[i].Native, Offset: b.Offset, Size: b.Size}
	}
	var g *wgpu.BindGroup
	err = d.guarded(fmt.Sprintf("create bind group for pipeline %q", p.Label), func() (err error) {
		g, err = d.native.CreateBindGroup(&wgpu.BindGroupDescriptor{Layout: d.layouts[p.Layout].group, Entries: entries})
		return err
	})
	if err != nil {
		if g != nil {
			g.Release()
		}
		return 0, err
	}
	id, err := d.book.AddGroup(p, bindings, buffers, g)
	if err != nil {
		g.Release()
	}
	return id, err
}

func (d *device) DestroyBindGroup(id driver.BindGroupID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("destroy bind group"); err != nil {
		return err
	}
	g, err := d.book.RemoveGroup(id)
	if err != nil {
		return err
	}
	g.Native.Release()
	return nil
}

func (d *device) CreateQueries(count uint32) (driver.QueryID, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("create queries"); err != nil {
		return 0, err
	}
	if err := d.book.CheckQueries(count); err != nil {
		return 0, err
	}
	var q *wgpu.QuerySet
	err := d.guarded("create queries", func() (err error) {
		q, err = d.native.CreateQuerySet(&wgpu.QuerySetDescriptor{Type: wgpu.QueryTypeTimestamp, Count: count})
		return err
	})
	if err != nil {
		if q != nil {
			q.Release()
		}
		return 0, err
	}
	id, err := d.book.AddQueries(count, q)
	if err != nil {
		q.Release()
	}
	return id, err
}

func (d *device) DestroyQueries(id driver.QueryID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("destroy queries"); err != nil {
		return err
	}
	q, err := d.book.RemoveQueries(id)
	if err != nil {
		return err
	}
	q.Native.Release()
	return nil
}
