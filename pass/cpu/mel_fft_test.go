package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTransform(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(13, 14))
	for _, n := range []int{2, 4, 6, 8, 10, 14, 18, 30, 98, 242, 320, 400, 512, 2 * 7 * 11 * 13, 2 * 2039, 4096} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			f := newTransform(n)
			s := f.space(make([]float32, f.size()))
			x := make([]float64, n)
			total := 0.0
			for i := range x {
				x[i] = rng.NormFloat64()
				total += x[i] * x[i]
			}
			copy(s.real, x)
			f.run(&s)
			for _, k := range []int{0, 1, 2, n / 7, n/4 + 1, n/2 - 1, n / 2} {
				if k > n/2 {
					continue
				}
				var re, im float64
				for i, v := range x {
					sin, cos := math.Sincos(2 * math.Pi * float64(i*k%n) / float64(n))
					re, im = re+v*cos, im+v*sin
				}
				require.InDelta(t, re*re+im*im, s.power[k], 1e-12*total*math.Sqrt(float64(n)), "bin %d", k)
			}
			sum := 0.0
			for k, p := range s.power {
				if sum += p; k > 0 && k < n/2 {
					sum += p
				}
			}
			require.InEpsilon(t, total*float64(n), sum, 1e-12, "the whole, by Parseval's theorem")
		})
	}
}
