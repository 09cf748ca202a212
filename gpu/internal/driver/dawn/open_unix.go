//go:build (linux || darwin) && (amd64 || arm64) && !android && !ios

package dawn

import (
	"runtime"

	"github.com/ebitengine/purego"
)

// openLibrary loads a library for the rest of the process: unloading would take code
// away from threads of its own.
func openLibrary(path string) (uintptr, error) {
	runtime.LockOSThread() // the reason of a failure is kept for the thread that it happened on
	defer runtime.UnlockOSThread()
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func findSymbol(library uintptr, name string) uintptr {
	p, err := purego.Dlsym(library, name)
	if err != nil {
		return 0
	}
	return p
}
