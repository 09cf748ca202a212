//go:build linux && (amd64 || arm64) && !android

package driver

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ebitengine/purego"
)

// defaultPaths are where the driver's library is; the second in Windows' Linux.
func defaultPaths() []string {
	return []string{"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"}
}

// The reason of a failure is kept for the thread that it happened on.
func openLibrary(path string) (uintptr, error) {
	runtime.LockOSThread()
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

// foundAt returns the path of a library that was loaded by a bare name, if the system says
// where it found it.
func foundAt(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return name
	}
	// libcuda.so.1 is a link to a file that ends with the driver's version.
	stem, _, _ := strings.Cut(filepath.Base(name), ".so")
	for line := range strings.Lines(string(maps)) {
		at := strings.IndexByte(line, '/')
		if at < 0 {
			continue
		}
		path := strings.TrimSpace(line[at:])
		if strings.HasPrefix(filepath.Base(path), stem+".so") {
			return path
		}
	}
	return name
}
