//go:build (linux || darwin) && (amd64 || arm64) && !android && !ios

package dawn

import "github.com/ebitengine/purego"

// openLibrary loads a library for the rest of the process: unloading would take code
// away from threads of its own.
func openLibrary(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func findSymbol(library uintptr, name string) uintptr {
	p, err := purego.Dlsym(library, name)
	if err != nil {
		return 0
	}
	return p
}
