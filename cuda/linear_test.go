package cuda

import (
	"testing"

	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest"
)

// Every way to divide a product, on the cases of Gemm. The rule takes most of them for
// large shapes only.
func TestGemmWays(t *testing.T) {
	for _, way := range []string{
		"128x128", "128x32", "wide 128x256", "wide 128x256, clusters of 2", "wide 128x192", "wide 128x128", "wide 128x128, clusters of 2",
	} {
		t.Run(way, func(t *testing.T) {
			library(t, 90)
			passtest.Config{Ops: []string{"gemm"}, BySize: true}.Run(t, func(t testing.TB) pass.Device {
				return emulated(t, drivertest.Hopper(), Config{Ways: map[string]string{"": way}})
			})
		})
	}
}

// The kernels as they are compiled for devices before capability 8.0.
func TestGemmOnTuring(t *testing.T) {
	library(t, 75)
	passtest.Config{Ops: []string{"gemm"}, BySize: true}.Run(t, func(t testing.TB) pass.Device {
		return emulated(t, drivertest.Turing(), Config{})
	})
}
