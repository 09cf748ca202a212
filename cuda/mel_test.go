package cuda

import (
	"testing"

	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// What LogMel makes has a third of the error that is allowed: compilers for GPUs join other
// products and sums than the host's do, so that errors there are others.
func TestMelErrors(t *testing.T) {
	t.Parallel()
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	for _, e := range cases.All() {
		if e.Op != "logmel" {
			continue
		}
		c := e.Case()
		c.Tolerance = c.Limits()
		c.Tolerance.L2 /= 3
		c.Tolerance.Max /= 3
		prove(t, dev, c)
	}
}
