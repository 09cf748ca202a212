package gpu

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// An LSTM of few steps rounds little more than its state: sums in float32 alone would be
// off three times as much. The kernels for many rows and for few give the same bits.
func TestFineSums(t *testing.T) {
	t.Parallel()
	b := newBench(t, driver.DeviceConfig{}, nil)
	most := 1.6e-7
	if onHardware() {
		most = 2.5e-7 // whose divisions are worse
	}
	fine := func(batch int) cases.Case {
		c := lstmCase(batch, 2, 320, 160, 1, 1)
		c.Tolerance = cases.Tolerance{L2: most, Max: 1e-6}
		return c
	}
	many := b.run(t, fine(20), cases.Dense)
	require.Equal(t, [2]any{"tile", true}, [2]any{b.dispatches[0].kernel.kernel.values["Entry"], b.dispatches[0].kernel.kernel.values["Fine"]})
	few := b.run(t, fine(3), cases.Dense)
	require.Equal(t, "few", b.dispatches[0].kernel.kernel.values["Entry"])
	const items = 2 * 2 * 160 // the third is shorter
	require.Equal(t, many["Y"][:items], few["Y"][:items])

	b.run(t, lstmCase(20, 5, 64, 16, 1, 1), cases.Dense)
	require.Equal(t, false, b.dispatches[0].kernel.kernel.values["Fine"])
}

// Fine sums that leave the range of float32 saturate as others do, and NaN stays.
func TestFineSumsBeyondTheirRange(t *testing.T) {
	t.Parallel()
	b := newBench(t, driver.DeviceConfig{}, nil)
	const in, hidden = 40, 24
	ones := slices.Repeat([]float32{1}, 4*hidden*in)
	for _, batch := range []int{1, 20} {
		c := lstmCase(batch, 1, in, hidden, 1, 1)
		c.Op = pass.LSTM{Batch: batch, Time: 1}
		cell := c.Params[0].Weights.(pass.LSTMWeights).Layers[0][0]
		cell.Input = pass.Float32s("ones", ones, 4*hidden, in)
		c.Params = []cases.Param{{Field: "W", Weights: pass.LSTMWeights{Layers: [][]pass.LSTMCell{{cell}}}}}
		x := slices.Clone(c.Inputs[0].Words)
		for i := range batch {
			x[in*i+7], x[in*i+20] = math.Float32bits(math.MaxFloat32), math.Float32bits(math.MaxFloat32)
		}
		x[in*(batch-1)+30] = math.Float32bits(float32(math.NaN()))
		c.Inputs[0].Words = x
		b.run(t, c, cases.Dense)
		require.Equal(t, true, b.dispatches[0].kernel.kernel.values["Fine"])
	}
}
