package goldens

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// The check vectors of the recipe, for seed 1.
func TestRecipe(t *testing.T) {
	t.Parallel()
	require.Equal(t, uint64(0x8108462D5960CEF5), newRecipe("input.x", 0, 1, 1, 0).base)
	for _, c := range []struct {
		name          string
		scale, offset float32
		want          []float32
	}{
		{"input.x", 1, 0, []float32{0.80493808, -0.97421253, 0.43815970, 0.36018288}},
		{"model.decoder.embed_tokens.weight", 0.35, 0, []float32{-0.19651510, -0.08083087, -0.22971274, -0.23759463}},
		{"lstm.weight_ih_l0", 0.33541, 0, []float32{0.30784029, 0.15298861, 0.07683939, -0.18638919}},
		{"resnet.bn1.running_var", 0.5, 1, []float32{1.30293083, 1.45450687, 0.74581879, 0.99283719}},
	} {
		got := make([]float32, 4)
		Values(got, c.name, 1, c.scale, c.offset)
		for i, w := range c.want {
			require.InDelta(t, w, got[i], 5e-9, "%s: value %d", c.name, i)
		}
		r := newRecipe(c.name, 1, 4, c.scale, c.offset)
		read, err := pass.Tensor{Type: pass.F32, Shape: []int{4}, Data: r}.Float32s()
		require.NoError(t, err)
		require.Equal(t, got, read)
	}
}

func TestRecipeReadsAnywhere(t *testing.T) {
	t.Parallel()
	r := newRecipe("x", 7, 3, 1, 0)
	all := make([]byte, 12)
	n, err := r.ReadAt(all, 0)
	require.NoError(t, err)
	require.Equal(t, 12, n)
	for from := range 13 {
		b := make([]byte, 12)
		n, err := r.ReadAt(b, int64(from))
		require.Equal(t, 12-from, n)
		require.Equal(t, all[from:], b[:n])
		if from > 0 {
			require.ErrorIs(t, err, io.EOF)
		}
	}
	_, err = r.ReadAt(all, -1)
	require.ErrorIs(t, err, pass.ErrInvalid)
}
