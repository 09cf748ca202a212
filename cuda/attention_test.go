package cuda

import (
	"testing"

	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest"
)

// The cases of attention and caches in Fast: the suite runs ops without weights in its first
// math alone, and their kernels differ.
func TestAttentionFast(t *testing.T) {
	t.Parallel()
	library(t, 90)
	passtest.Config{Math: []pass.Math{pass.Fast}, Ops: []string{"attention", "attend"}}.Run(t, func(t testing.TB) pass.Device {
		return emulated(t, drivertest.Hopper(), Config{})
	})
}

// Devices with little shared memory compute attention of many queries in FP32.
func TestAttentionWithoutSharedMemory(t *testing.T) {
	t.Parallel()
	library(t, 90)
	passtest.Config{Math: []pass.Math{pass.Exact}, Ops: []string{"attention", "attend"}}.Run(t, func(t testing.TB) pass.Device {
		return emulated(t, drivertest.Hopper(), Config{Ways: map[string]string{"": "split"}})
	})
}
