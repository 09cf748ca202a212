package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// What a kernel or a device does not take is refused before it is launched.
func TestLaunchesThatAreRefused(t *testing.T) {
	t.Parallel()
	d := bareDevice(t)
	launch := func(name string, args any, g grid, shared int) error {
		return d.immediately(t.Context(), func(c *compiler) error {
			k := c.call(name)
			switch args := args.(type) {
			case kernels.Fill:
				return run(k, args, g, shared, pass.Cost{})
			case kernels.Tile:
				return run(k, args, g, shared, pass.Cost{})
			}
			return run(k, args, g, shared, pass.Cost{})
		})
	}
	require.NoError(t, launch("move_fill", kernels.Fill{}, grid{1, 1, 1}, 0))
	require.NoError(t, launch("move_fill", kernels.Fill{}, grid{5, 0, 1}, 0), "no blocks")
	for name, c := range map[string]struct {
		kernel string
		args   any
		grid   grid
		shared int
		is     error
		says   string
	}{
		"too many in x":         {"move_fill", kernels.Fill{}, grid{1 << 31, 1, 1}, 0, pass.ErrUnsupported, "2147483647 blocks in dimension 0"},
		"too many in y":         {"move_fill", kernels.Fill{}, grid{1, 65536, 1}, 0, pass.ErrUnsupported, "65535 blocks in dimension 1"},
		"too many in z":         {"move_fill", kernels.Fill{}, grid{1, 1, 65536}, 0, pass.ErrUnsupported, "65535 blocks in dimension 2"},
		"fewer than none":       {"move_fill", kernels.Fill{}, grid{1, -1, 1}, 0, pass.ErrUnsupported, "dimension 1"},
		"parameters of another": {"move_fill", kernels.Tile{}, grid{1, 1, 1}, 0, pass.ErrInvalid, "takes kernels.Fill, given kernels.Tile"},
		"shared memory":         {"move_fill", kernels.Fill{}, grid{1, 1, 1}, 16, pass.ErrInvalid, "takes 0 bytes of shared memory, given 16"},
		"more than there is":    {"tile_64x64_1", kernels.Tile{}, grid{1, 1, 1}, 228 << 10, pass.ErrUnsupported, "the device has 232448"},
		"no such kernel":        {"move_mountains", kernels.Fill{}, grid{1, 1, 1}, 0, pass.ErrUnsupported, "move_mountains"},
	} {
		err := launch(c.kernel, c.args, c.grid, c.shared)
		require.ErrorIs(t, err, c.is, name)
		require.ErrorContains(t, err, c.says, name)
	}
}
