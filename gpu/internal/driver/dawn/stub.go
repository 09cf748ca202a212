//go:build !(((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64))

package dawn

import (
	"fmt"
	"runtime"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// New fails: libraries cannot be loaded at run time here.
func New(Options) (driver.Provider, error) {
	return nil, fmt.Errorf("dawn: no library can be loaded at run time on %s/%s: %w", runtime.GOOS, runtime.GOARCH, pass.ErrNoDevice)
}
