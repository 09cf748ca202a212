package cuda

import (
	"fmt"
	"testing"

	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// What LogMel makes has a third of the error that is allowed: compilers for GPUs join other
// products and sums than the host's do, so that errors there are others.
func TestMelErrors(t *testing.T) {
	t.Parallel()
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	for _, e := range cases.All() {
		if e.Op == "logmel" {
			proveTightly(t, dev, e.Case())
		}
	}
}

// Transforms after pre-emphasis: those that lanes hold, down to two samples, those that
// they do not, the longest of two floats a number, and a longer one.
func TestMelEmphasis(t *testing.T) {
	t.Parallel()
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	for i, fft := range []int{2, 4, 8, 16, 64, 128, 256, 400, 480, 2048, 3000} {
		frame := fft - i%3*fft/8
		w := pass.MelWeights{Window: cases.Recipe("window", 2, frame, 0.4, 0.6), FFT: fft, Hop: max(fft/3, 1), Mels: 3, Gain: 0.3,
			Bank: cases.Recipe("bank", 2, 3*(fft/2+1), 0.5, 1), PreEmphasis: 0.9, PerFrame: i%2 > 0,
			PadLeft: i % 4, PadRight: i % 3, Padding: pass.Padding(i / 2 % 2)}
		n := 3*fft + 7
		proveTightly(t, dev, cases.Case{Name: fmt.Sprintf("logmel-emphasis-%d", fft), Op: pass.LogMel{Samples: n}, Outputs: []string{"Y"},
			Params: []cases.Param{{Field: "W", Weights: w}},
			Inputs: []cases.Tensor{cases.F32("X", cases.Recipe("sound", 2, n, 0.25, 1), 1, 1, n)}})
	}
}

// proveTightly proves a case with a third of its tolerance.
func proveTightly(t *testing.T, dev pass.Device, c cases.Case) {
	t.Helper()
	c.Tolerance = c.Limits()
	c.Tolerance.L2 /= 3
	c.Tolerance.Max /= 3
	prove(t, dev, c)
}
