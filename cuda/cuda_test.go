package cuda

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest"
)

// The suite on the GPU, or on an emulated one.
func TestConformance(t *testing.T) {
	if !onDevice() {
		library(t, 90)
	}
	cfg := passtest.Config{BySize: true}
	if !onDevice() {
		cfg.Allocs = 500 // the host's driver keeps books
	}
	cfg.Run(t, func(t testing.TB) pass.Device {
		if !onDevice() {
			return emulated(t, drivertest.Hopper(), Config{})
		}
		dev, err := Open(context.Background(), Config{})
		require.NoError(t, err)
		return dev
	})
}
