//go:build windows && amd64

package dawn

import "syscall"

// openLibrary loads a library for the rest of the process: unloading would take code
// away from threads of its own.
func openLibrary(path string) (uintptr, error) {
	h, err := syscall.LoadLibrary(path)
	return uintptr(h), err
}

func findSymbol(library uintptr, name string) uintptr {
	p, err := syscall.GetProcAddress(syscall.Handle(library), name)
	if err != nil {
		return 0
	}
	return p
}
