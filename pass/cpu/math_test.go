package cpu

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// functions are those of this package beside what they compute, in float64.
var functions = []struct {
	name  string
	here  func(float32) float32
	truth func(float64) float64
}{
	{"sigmoid", sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
	{"tanh", tanh, math.Tanh},
	{"silu", silu, func(x float64) float64 { return x / (1 + math.Exp(-x)) }},
	{"gelu", gelu, func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) }},
}

func TestFunctionsAreWithinAnUlp(t *testing.T) {
	t.Parallel()
	for _, f := range functions {
		t.Run(f.name, func(t *testing.T) {
			check := func(x float32) {
				want := f.truth(float64(x))
				// Half an ulp to round, and at most half to be off; below the normal
				// numbers ulps are all alike.
				require.InDelta(t, want, float64(f.here(x)), math.Abs(want)*0x1p-23+0x1p-149, "at %v", x)
			}
			for x := float32(-90); x <= 90; x += 0.0037 {
				check(x)
			}
			for x := float32(1e-38); x < 1; x *= 1.013 { // where differences would cancel
				check(x)
				check(-x)
			}
		})
	}
}

func TestFunctionsSaturate(t *testing.T) {
	t.Parallel()
	inf := float32(math.Inf(1))
	for _, x := range []float32{100, 1e4, math.MaxFloat32, inf} {
		require.EqualValues(t, 1, sigmoid(x), "at %v", x)
		require.EqualValues(t, 1, tanh(x), "at %v", x)
		require.EqualValues(t, -1, tanh(-x), "at %v", -x)
		require.Equal(t, x, silu(x), "at %v", x)
		require.Equal(t, x, gelu(x), "at %v", x)
	}
	for _, x := range []float32{-201, -1e4, -math.MaxFloat32, -inf} {
		require.Zero(t, sigmoid(x), "at %v", x)
		require.Zero(t, silu(x), "at %v", x)
		require.Zero(t, gelu(x), "at %v", x)
	}
	for _, f := range functions {
		require.True(t, math.IsNaN(float64(f.here(float32(math.NaN())))), f.name)
	}
}

func TestExp(t *testing.T) {
	t.Parallel()
	for x := -199.0; x < 199; x += 0.0113 {
		require.InEpsilon(t, math.Exp(x), exp(x), 1e-8, "at %v", x)
	}
}

func TestEpilogueSpecialValues(t *testing.T) {
	t.Parallel()
	nan, zero := float32(math.NaN()), float32(math.Copysign(0, -1))
	for _, e := range []pass.Epilogue{pass.ReLU, pass.Leaky(0.1), pass.None} {
		c := make([]float32, 3)
		newEpilogue(e).apply(c, []float32{nan, zero, 2})
		require.True(t, math.IsNaN(float64(c[0])), "%v passes NaN", e)
		require.True(t, math.Signbit(float64(c[1])), "%v passes −0", e)
		require.EqualValues(t, 2, c[2], "%v", e)
	}
	c := []float32{-3}
	newEpilogue(pass.ReLU).apply(c, c)
	require.Zero(t, c[0])
}
