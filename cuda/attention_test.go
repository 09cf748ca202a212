package cuda

import (
	"testing"

	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest"
)

// The cases of attention and caches in every way there is beside the usual one of Exact: the
// suite runs ops without weights in its first math alone.
func TestAttentionWays(t *testing.T) {
	t.Parallel()
	library(t, 90)
	for _, w := range []struct {
		way  string
		math pass.Math
	}{{"wgmma-turns", pass.Fast}, {"wgmma", pass.Fast}, {"mma", pass.Fast}, {"split", pass.Exact}} {
		t.Run(w.way, func(t *testing.T) {
			t.Parallel()
			passtest.Config{Math: []pass.Math{w.math}, Ops: []string{"attention", "attend"}}.Run(t, func(t testing.TB) pass.Device {
				return emulated(t, drivertest.Hopper(), Config{Ways: map[string]string{"": w.way}})
			})
		})
	}
}
