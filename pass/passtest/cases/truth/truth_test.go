package truth

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

func TestEpilogue(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		e       pass.Epilogue
		v, want float64
	}{
		{pass.None, -2, -2},
		{pass.SiLU, 1, 0.7310585786300049},
		{pass.SiLU, -1e30, 0},
		{pass.ReLU, -3, 0},
		{pass.ReLU, 3, 3},
		{pass.Leaky(0.25), -2, -0.5},
		{pass.Leaky(0.25), 2, 2},
		{pass.Residual(0.5), 3, 11.5},
		{pass.GELU, 1, 0.8413447460685429},
		{pass.GELU, -2, -0.045500263896358},
		{pass.GELUResidual, 1, 10.841344746068543},
		{pass.Tanh, 0.5, 0.46211715726000975},
		{pass.Sigmoid, -1, 0.2689414213699951},
	} {
		require.InDelta(t, row.want, Epilogue(row.e, row.v, 10), 1e-12, "%v of %v", row.e, row.v)
	}
	require.True(t, math.IsNaN(Epilogue(pass.ReLU, math.NaN(), 0)))
	require.True(t, math.Signbit(Epilogue(pass.ReLU, math.Copysign(0, -1), 0)))
}

func TestGemm(t *testing.T) {
	t.Parallel()
	w := Linear{N: 2, K: 2, W: []float64{1, 2, 3, 4}, Bias: []float64{10, 20}, Dual: []float64{-1}}
	a := []float64{1, -1, 2, 0}
	require.Equal(t, []float64{9, 19, -2, 12, 26, 1}, Gemm(pass.Gemm{Rows: 2}, w, a, nil))
	require.Equal(t, []float64{19, -2, 26, 1}, Gemm(pass.Gemm{Rows: 2, Columns: pass.Span{From: 1, To: 3}}, w, a, nil))
}

func TestConv1DPads(t *testing.T) {
	t.Parallel()
	w := Conv{Out: 1, In: 1, Kernel: 3, W: []float64{1, 10, 100}}
	x := []float64{1, 2, 3, 4}
	v := pass.Conv1D{In: 4, PadLeft: 2, PadRight: 1}
	require.Equal(t, []float64{100, 210, 321, 432, 43}, Conv1D(v, w, x, []int{4}, nil))
	v.Padding = pass.PadReflect
	require.Equal(t, []float64{123, 212, 321, 432, 343}, Conv1D(v, w, x, []int{4}, nil))
	require.Equal(t, []float64{123, 212, 321, 232, 0}, Conv1D(v, w, x, []int{3}, nil))
	v.Stride, v.Out = 2, pass.Span{From: 1, To: 3}
	require.Equal(t, []float64{321, 343}, Conv1D(v, w, x, []int{4}, nil))
}

// With no input weights and a bias that fixes the gates, an LSTM counts steps.
func TestLSTMCountsSteps(t *testing.T) {
	t.Parallel()
	const open = 100 // a gate of 1
	cell := Cell{Input: make([]float64, 4), Hidden: make([]float64, 4), Bias: []float64{open, open, math.Atanh(0.25), open}}
	w := Recurrent{In: 1, Hidden: 1, Cells: [][]Cell{{cell, cell}}}
	l := pass.LSTM{Batch: 2, Time: 3}
	before := State{H: make([]float64, 6), C: []float64{9, 9, 8, 8, 7, 7}}
	initial := State{H: make([]float64, 6), C: []float64{0, 0, 0, 0, 0, 1}}
	y, after := LSTM(l, w, make([]float64, 6), []int{3, 1}, []int{0, 2}, initial, before)
	tanh := func(n float64) float64 { return math.Tanh(n / 4) }
	require.InDeltaSlice(t, []float64{tanh(1), tanh(3), tanh(2), tanh(2), tanh(3), tanh(1), tanh(1), tanh(5), 0, 0, 0, 0}, y, 1e-12)
	require.InDeltaSlice(t, []float64{0.75, 0.75, 8, 8, 0.25, 1.25}, after.C, 1e-12)
	require.Equal(t, []float64{9, 9, 8, 8, 7, 7}, before.C)
}

func TestCopy(t *testing.T) {
	t.Parallel()
	m := pass.Copy{Batch: 2, Rows: 1, Cols: 2}
	got := Copy(m, []uint32{1, 2, 3, 4, 5, 6, 7, 8}, []uint32{0, 0, 0, 0, 9, 9, 9, 9}, []int{1, 0}, []int{0, 1}, 2, 2)
	require.Equal(t, []uint32{3, 4, 0, 0, 9, 9, 5, 6}, got)
}
