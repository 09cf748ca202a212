package drivertest

import (
	"encoding/binary"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
)

// wgsl is a kernel of the suite with its double for the device in memory.
type wgsl struct {
	label    string
	source   string
	bindings []driver.BindingKind
	double   Kernel
}

func (k wgsl) desc() driver.PipelineDesc {
	return driver.PipelineDesc{Label: k.label, Source: k.source, Entry: "main", Bindings: k.bindings}
}

var (
	addOne = wgsl{
		label: "add one", bindings: []driver.BindingKind{driver.StorageReadWrite},
		source: `@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { a[id.x] = a[id.x] + 1u; }`,
		double: func(c Call) { each(c, func(w uint32) uint32 { return w + 1 }) },
	}
	double = wgsl{
		label: "double", bindings: []driver.BindingKind{driver.StorageReadWrite},
		source: `@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { a[id.x] = a[id.x] * 2u; }`,
		double: func(c Call) { each(c, func(w uint32) uint32 { return 2 * w }) },
	}
	addUniform = wgsl{
		label: "add uniform", bindings: []driver.BindingKind{driver.StorageReadWrite, driver.UniformDynamic},
		source: `@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@group(0) @binding(1) var<uniform> u: vec4<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { a[id.x] = a[id.x] + u.x; }`,
		double: func(c Call) {
			u := binary.LittleEndian.Uint32(c.Buffers[1])
			each(c, func(w uint32) uint32 { return w + u })
		},
	}
	copyWords = wgsl{
		label: "copy words", bindings: []driver.BindingKind{driver.StorageRead, driver.StorageReadWrite},
		source: `@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> b: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { b[id.x] = a[id.x]; }`,
		double: func(c Call) { copy(c.Buffers[1], c.Buffers[0][:min(len(c.Buffers[0]), 4*64*int(c.Groups[0]))]) },
	}
)

// Kernels are the doubles of the suite's kernels.
func Kernels() map[string]Kernel {
	kernels := map[string]Kernel{}
	for _, k := range []wgsl{addOne, double, addUniform, copyWords} {
		kernels[k.label] = k.double
	}
	return kernels
}

// each applies f to the words of the first buffer that 64 invocations a group reach.
func each(c Call, f func(uint32) uint32) {
	data := c.Buffers[0]
	for i := 0; i+4 <= len(data) && i < 4*64*int(c.Groups[0]); i += 4 {
		binary.LittleEndian.PutUint32(data[i:], f(binary.LittleEndian.Uint32(data[i:])))
	}
}
