//go:build cgo && !js && (linux || darwin || windows)

package native

import (
	"unsafe"

	"github.com/cogentcore/webgpu/wgpu"
)

// The shim needs the library's handles, which the binding keeps in unexported fields.
// These are the shapes of its structs; a test holds them against the binding.
type (
	oneHandle    struct{ ref unsafe.Pointer }         // Instance, Adapter, Device, pipelines, bind groups, query sets
	bufferHandle struct{ device, ref unsafe.Pointer } // Buffer
)

type single interface {
	wgpu.Instance | wgpu.Adapter | wgpu.Device | wgpu.ComputePipeline | wgpu.BindGroup | wgpu.QuerySet
}

// handleOf reads the handle of a binding object.
func handleOf[T single](object *T) unsafe.Pointer {
	return (*oneHandle)(unsafe.Pointer(object)).ref
}

// wrap makes a binding object of a handle.
func wrap[T single](ref unsafe.Pointer) *T {
	object := new(T)
	(*oneHandle)(unsafe.Pointer(object)).ref = ref
	return object
}

func bufferHandleOf(b *wgpu.Buffer) unsafe.Pointer {
	return (*bufferHandle)(unsafe.Pointer(b)).ref
}
