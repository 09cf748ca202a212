// Package native drives Vulkan, Metal and Direct3D 12 through the WebGPU library that the
// cogentcore/webgpu module brings along, linked through cgo.
//
// That library answers many mistakes with an abort of the process, keeps pointers to Go
// memory, reports errors to whichever goroutine looks next and prints to standard error.
// So the package is built in three layers: package guard refuses whatever would abort;
// the binding makes adapters, buffers, layouts and pipelines; and a small shim in C does
// what the binding cannot do safely: the instance, the device with its callbacks, mapping,
// and whole submissions in one call. One mutex a device covers every call into the library,
// and is never held while waiting: a wait polls in slices and backs off. It is held while
// the library compiles a pipeline, and while a software driver does a submission's work in
// the submitting call, as Mesa's does when an earlier one is unfinished.
//
// Without cgo, and on other systems, [New] fails and says what still works.
package native

// Options configures the provider.
type Options struct {
	// Debug lets the library print warnings to standard error and turns on the
	// validation layers of the system where they are installed.
	Debug bool
}
