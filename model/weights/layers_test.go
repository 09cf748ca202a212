package weights

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

func TestLinear(t *testing.T) {
	t.Parallel()
	src := memory{}.add("q.weight", count(0, 4), 2, 2).add("q.bias", count(1, 2), 2).
		add("k.weight", count(4, 2), 1, 2).add("v.weight", count(6, 4), 2, 2, 1).add("v.bias", []float32{5, inf}, 2)
	w, err := Linear(src, 2, Rows("q", 2, true), Rows("k", 1, false), Rows("v", 2, false))
	require.NoError(t, err)
	require.Equal(t, "q", w.Name)
	require.Equal(t, []float32{1, 2, 0, 0, 0}, w.Bias)
	var all []float32
	for _, p := range w.Parts {
		v, err := p.Float32s()
		require.NoError(t, err)
		all = append(all, v...)
	}
	require.Equal(t, count(0, 10), all)
	_, err = w.Shape()
	require.NoError(t, err)

	w, err = Linear(src, 2, Rows("k", 1, false))
	require.NoError(t, err)
	require.Nil(t, w.Bias)
	for says, parts := range map[string][]Part{
		`"k.bias": want shape [1]: memory: no k.bias`:           {Rows("q", 2, true), Rows("k", 1, true)},
		`"v.weight": want shape [3 2], given [2 2 1]`:           {Rows("v", 3, true)},
		`"v.bias": want finite values, given NaN or infinity a`: {Rows("v", 2, true)},
	} {
		_, err := Linear(src, 2, parts...)
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
}

func TestConvAndNorm(t *testing.T) {
	t.Parallel()
	src := memory{}.add("c.weight", count(0, 12), 2, 2, 3).add("c.bias", count(1, 2), 2).
		add("d.weight", count(0, 18), 2, 1, 3, 3).add("d.bias", count(3, 2), 2)
	c, err := Conv(src, "c", 2, 2, 3, true)
	require.NoError(t, err)
	require.Equal(t, count(1, 2), c.Bias)
	shape, err := c.Shape()
	require.NoError(t, err)
	require.Equal(t, pass.ConvShape{Out: 2, In: 2, Kernel: 3, Type: pass.F32, Bias: true}, shape)
	c, err = Conv(src, "c", 2, 2, 3, false)
	require.NoError(t, err)
	require.Nil(t, c.Bias)
	_, err = Conv(src, "c", 2, 3, 2, true)
	require.ErrorContains(t, err, `"c.weight": want shape [2 3 2], given [2 2 3]`)
	_, err = Conv(src, "d", 2, 1, 9, true)
	require.ErrorContains(t, err, `"d.weight": want shape [2 1 9]`)

	d, err := Conv2D(src, "d", 2, 1, 3, true)
	require.NoError(t, err)
	require.Equal(t, count(3, 2), d.Bias)
	shape, err = d.Shape()
	require.NoError(t, err)
	require.Equal(t, pass.Conv2DShape{Out: 2, In: 1, Size: 3, Type: pass.F32, Bias: true}, shape)
	_, err = Conv2D(src, "c", 2, 2, 3, true)
	require.ErrorContains(t, err, `"c.weight": want shape [2 2 3 3]`)

	src.add("n.weight", count(1, 4), 4).add("n.bias", count(2, 4), 4)
	n, err := Norm(src, "n", 4, true)
	require.NoError(t, err)
	require.Equal(t, pass.NormWeights{Name: "n", Gain: count(1, 4), Bias: count(2, 4)}, n)
	n, err = Norm(src, "n", 4, false)
	require.NoError(t, err)
	require.Nil(t, n.Bias)
	_, err = Norm(src, "n", 5, true)
	require.ErrorContains(t, err, `"n.weight": want shape [5], given [4]`)
	delete(src, "n.bias")
	_, err = Norm(src, "n", 4, true)
	require.ErrorContains(t, err, `"n.bias"`)
}

func TestLSTM(t *testing.T) {
	t.Parallel()
	const in, hidden = 3, 2
	src := memory{}
	for l, width := range []int{in, 2 * hidden} {
		for d, reverse := range []string{"", "_reverse"} {
			suffix := fmt.Sprintf("_l%d%s", l, reverse)
			src.add("r.weight_ih"+suffix, count(100*l+10*d, 8*width), 8, width)
			src.add("r.weight_hh"+suffix, count(200*l+20*d, 8*hidden), 8, hidden)
			src.add("r.bias_ih"+suffix, count(l, 8), 8)
			src.add("r.bias_hh"+suffix, count(10*d, 8), 8)
		}
	}
	w, err := LSTM(src, "r", in, hidden, 2, 2)
	require.NoError(t, err)
	shape, err := w.Shape()
	require.NoError(t, err)
	require.Equal(t, pass.LSTMShape{In: in, Hidden: hidden, Layers: 2, Directions: 2}, shape)
	require.Equal(t, "r.weight_ih_l1_reverse", w.Layers[1][1].Input.Name)
	require.Equal(t, "r.weight_hh_l0", w.Layers[0][0].Hidden.Name)
	require.Equal(t, []float32{11, 13, 15, 17, 19, 21, 23, 25}, w.Layers[1][1].Bias)

	_, err = LSTM(src, "r", in, hidden, 3, 2)
	require.ErrorContains(t, err, `"r.weight_ih_l2": want shape [8 4]`)
	_, err = LSTM(src, "r", in, hidden, 2, 1)
	require.ErrorContains(t, err, `"r.weight_ih_l1": want shape [8 2], given [8 4]`)
	for _, directions := range []int{0, 3} {
		_, err = LSTM(src, "r", in, hidden, 2, directions)
		require.ErrorIs(t, err, pass.ErrInvalid)
	}
	delete(src, "r.bias_hh_l0")
	_, err = LSTM(src, "r", in, hidden, 2, 2)
	require.ErrorContains(t, err, `"r.bias_hh_l0"`)
	src.add("r.bias_l0", count(7, 8), 8)
	w, err = LSTM(src, "r", in, hidden, 2, 2)
	require.NoError(t, err)
	require.Equal(t, count(7, 8), w.Layers[0][0].Bias, "a sum stands alone")
}

func TestBatchNorm(t *testing.T) {
	t.Parallel()
	src := memory{}.add("bn.weight", []float32{2, -3}, 2).add("bn.bias", []float32{0.5, 1}, 2).
		add("bn.running_mean", []float32{10, 20}, 2).add("bn.running_var", []float32{0.25, 9}, 2)
	b, err := ReadBatchNorm(src, "bn", 2, 1e-5)
	require.NoError(t, err)
	weight, bias := []float32{1, 2, 3, 4, 5, 6}, []float32{7, 8}
	x := []float64{0.5, -1.5, 2}
	for _, given := range [][]float32{nil, bias} {
		w, out, err := b.Fold(pass.Float32s("w", weight, 2, 3, 1, 1), given)
		require.NoError(t, err)
		require.Equal(t, []int{2, 3, 1, 1}, w.Shape)
		folded, err := w.Float32s()
		require.NoError(t, err)
		for i := range 2 {
			y, got := 0.0, float64(out[i])
			if given != nil {
				y = float64(given[i])
			}
			for j, v := range x {
				y += v * float64(weight[3*i+j])
				got += v * float64(folded[3*i+j])
			}
			mean, variance := []float64{10, 20}[i], []float64{0.25, 9}[i]
			want := (y-mean)/math.Sqrt(variance+1e-5)*[]float64{2, -3}[i] + []float64{0.5, 1}[i]
			require.InDelta(t, want, got, 4e-6)
		}
	}
	require.Equal(t, []float32{1, 2, 3, 4, 5, 6}, weight)
	gain, shift := b.Affine()
	require.Equal(t, []float32{float32(b.Gain[0]), float32(b.Gain[1])}, gain)
	require.Equal(t, []float32{float32(b.Shift[0]), float32(b.Shift[1])}, shift)
	require.InDelta(t, 2/math.Sqrt(0.25001), b.Gain[0], 1e-12)
	require.InDelta(t, 1+20*3/math.Sqrt(9.00001), b.Shift[1], 1e-12)

	for _, c := range []struct {
		shape []int
		bias  []float32
	}{{[]int{3, 2}, nil}, {[]int{}, nil}, {[]int{2, 3}, []float32{1}}} {
		_, _, err := b.Fold(pass.Float32s("w", weight, c.shape...), c.bias)
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, `batch norm "bn" into tensor "w": want 2 outputs`)
	}
	_, _, err = b.Fold(pass.Float32s("w", []float32{1, math.MaxFloat32}, 2, 1), nil)
	require.NoError(t, err)
	_, _, err = b.Fold(pass.Float32s("w", []float32{math.MaxFloat32, 1}, 2, 1), nil)
	require.ErrorContains(t, err, "want finite values")
	_, _, err = b.Fold(pass.Float32s("w", []float32{0, 1}, 2, 1), []float32{math.MaxFloat32, 0})
	require.ErrorContains(t, err, "want finite values")

	_, err = ReadBatchNorm(src, "bn", 3, 1e-5)
	require.ErrorContains(t, err, `"bn.weight": want shape [3], given [2]`)
	src.add("bn.running_var", []float32{0.25, -1e-7}, 2)
	_, err = ReadBatchNorm(src, "bn", 2, 1e-5)
	require.ErrorContains(t, err, `"bn.running_var": want values of at least 0`)
	src.add("bn.running_var", []float32{0, 1}, 2)
	_, err = ReadBatchNorm(src, "bn", 2, 0)
	require.ErrorIs(t, err, pass.ErrInvalid)
}
