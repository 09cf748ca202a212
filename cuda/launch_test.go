package cuda

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

// Every op that has a field Exact is asked for it.
func TestDemandsExact(t *testing.T) {
	t.Parallel()
	asked := 0
	for _, op := range []pass.Op{
		pass.LSTM{}, pass.Gemm{}, pass.Conv1D{}, pass.Map{}, pass.Magnitude{}, pass.Copy{}, pass.Fill{}, pass.LayerNorm{}, pass.GroupNorm{},
		pass.PoolNorm{}, pass.L2Norm{}, pass.Softmax{}, pass.LogSoftmax{}, pass.Argmax{}, pass.Rope{}, pass.Add{}, pass.Scale{}, pass.SwiGLU{},
		pass.GLU{}, pass.Embed{}, pass.Permute{}, pass.Advance{}, pass.StatsPool{}, pass.Attention{}, pass.Attend{}, pass.Append{}, pass.Conv2D{},
		pass.ConvGLU{}, pass.DepthwiseConv2D{}, pass.LogMel{},
	} {
		require.False(t, demandsExact(op), "%T", op)
		v := reflect.New(reflect.TypeOf(op)).Elem()
		if f := v.FieldByName("Exact"); f.IsValid() {
			f.SetBool(true)
			require.True(t, demandsExact(v.Interface().(pass.Op)), "%T", op)
			asked++
		}
	}
	require.Equal(t, 6, asked)
}

// Blocks of a product of few rows take so many groups of columns that none begins when the
// others end.
func TestFewEach(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ groups, resident, want int }{
		{1, 528, 1}, {320, 528, 1}, {528, 528, 1}, {576, 528, 2}, {1280, 528, 3}, {3242, 528, 7}, {3242, 80, 14},
	} {
		require.Equal(t, c.want, fewEach(c.groups, c.resident), "%+v", c)
	}
}

// What launches keep is apart and aligned, in however many pieces it lies.
func TestStore(t *testing.T) {
	t.Parallel()
	var s store
	var all [][]byte
	for i := range 300 {
		b := make([]byte, 1+i*7%1000)
		for k := range b {
			b[k] = byte(i)
		}
		kept := s.bytes(b)
		require.Zero(t, reflect.ValueOf(kept).Pointer()%64)
		all = append(all, kept)
	}
	for i, kept := range all {
		require.Len(t, kept, 1+i*7%1000)
		for _, v := range kept {
			require.Equal(t, byte(i), v)
		}
	}
	a, b := s.ranges([]touch{{from: 1}}), s.ranges([]touch{{from: 2}, {from: 3}})
	_ = append(a, touch{from: 9})
	require.Equal(t, []touch{{from: 2}, {from: 3}}, b)
}
