//go:build !((linux && (amd64 || arm64) && !android) || (windows && amd64))

package driver

import (
	"fmt"
	"runtime"

	"github.com/tandem-gpu/tandem/pass"
)

// Open fails: there is no driver for this system.
func Open(string) (Driver, error) {
	return nil, fmt.Errorf("driver: CUDA runs on Linux (amd64, arm64) and Windows (amd64), not on %s/%s: %w", runtime.GOOS, runtime.GOARCH, pass.ErrNoDevice)
}
