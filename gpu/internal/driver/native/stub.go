//go:build !cgo || js || !(linux || darwin || windows)

package native

import (
	"fmt"
	"runtime"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// New fails: this build has no native library in it.
func New(Options) (driver.Provider, error) {
	return nil, fmt.Errorf("native: WebGPU through the native library needs cgo: this program was built for %s/%s "+
		"without it (CGO_ENABLED=0, no C compiler, or a platform the library is not made for); "+
		"the cpu backend, and WebGPU through a Dawn library loaded at run time, work without cgo: %w",
		runtime.GOOS, runtime.GOARCH, pass.ErrNoDevice)
}
