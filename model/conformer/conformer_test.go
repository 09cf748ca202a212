package conformer

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

func TestTable(t *testing.T) {
	t.Parallel()
	const frames, width = 7, 6
	table := Table(frames, width)
	require.Len(t, table, (2*frames-1)*width)
	for r := range 2*frames - 1 {
		position := float64(frames - 1 - r)
		for i := range width / 2 {
			angle := position / math.Pow(10000, float64(2*i)/width)
			require.InDelta(t, math.Sin(angle), table[r*width+2*i], 1e-7)
			require.InDelta(t, math.Cos(angle), table[r*width+2*i+1], 1e-7)
		}
	}
	short := Table(3, width)
	require.Equal(t, short, table[(frames-3)*width:][:len(short)], "the middle serves fewer frames")
	require.Empty(t, Table(0, width))
}

func TestDual(t *testing.T) {
	t.Parallel()
	u, v := []float32{10, 20}, []float32{100, 200}
	w := pass.LinearWeights{Bias: []float32{1, 2, 3, 4, 5, 6}}
	dual(&w, u, v)
	require.Equal(t, []float32{11, 22, 3, 4, 5, 6}, w.Bias)
	require.Equal(t, []float32{101, 202}, w.Dual)
	w = pass.LinearWeights{}
	dual(&w, u, v)
	require.Equal(t, []float32{10, 20, 0, 0, 0, 0}, w.Bias)
	require.Equal(t, v, w.Dual)
}

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	good := Config{Width: 96, Layers: 2, Heads: 3, Hidden: 128, Kernel: 5}
	require.NoError(t, good.Check())
	for _, change := range []func(*Config){
		func(c *Config) { c.Width = 0 }, func(c *Config) { c.Width = 1 << 40 }, func(c *Config) { c.Layers = -1 },
		func(c *Config) { c.Layers = 1 << 20 }, func(c *Config) { c.Heads = 0 }, func(c *Config) { c.Heads = 5 },
		func(c *Config) { c.Heads = 48 }, func(c *Config) { c.Width, c.Heads = 1024, 2 },
		func(c *Config) { c.Hidden = 1 << 30 }, func(c *Config) { c.Kernel = 4 }, func(c *Config) { c.Kernel = 0 },
	} {
		bad := good
		change(&bad)
		require.ErrorIs(t, bad.Check(), pass.ErrInvalid, "%+v", bad)
	}
}
