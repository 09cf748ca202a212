//go:build windows && amd64

package driver

import (
	"os"
	"path/filepath"
	"syscall"
)

// defaultPaths is the system's folder, and no other: a bare name would be looked for
// next to the program first.
func defaultPaths() []string {
	root := os.Getenv("SystemRoot")
	if root == "" {
		root = `C:\Windows`
	}
	return []string{filepath.Join(root, "System32", "nvcuda.dll")}
}

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

// foundAt returns where a library was loaded from: its path is given in full.
func foundAt(path string) string { return path }
