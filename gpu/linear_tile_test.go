package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
)

// kernelLimits returns limits for the choice of kernels.
func kernelLimits(invocations, workgroupBytes uint32) driver.Limits {
	return driver.Limits{
		MaxInvocations: invocations, MaxWorkgroupSizeX: invocations, MaxWorkgroupStorage: workgroupBytes,
		MaxStorageBindingSize: 1 << 30, MaxBufferSize: 1 << 30, MaxWorkgroups: 65535, StorageOffsetAlignment: 256,
	}
}

func TestChooseTile(t *testing.T) {
	t.Parallel()
	large := kernelLimits(1024, 48<<10)
	for _, c := range []struct {
		rows, columns, k int
		limits           driver.Limits
		size             int
		long             bool
	}{
		{4096, 4096, 4096, large, 128, false},
		{1500, 1280, 5120, large, 128, false},
		{1500, 1280, longSum, large, 128, false},
		{1500, 1280, longSum + 1, large, 64, true}, // 128 has twice the registers then
		{1500, 384, 1536, large, 64, false},
		{1024, 258, 256, large, 32, false},
		{75000, 258, 256, large, 128, false},
		{75000, 1, 128, large, 64, false}, // no better than 32
		{37, 164, 65, large, 32, false},
		{0, 0, 1, large, 32, false},
		{4096, 4096, 64, kernelLimits(256, 16<<10), 128, false},
		{4096, 4096, 64, kernelLimits(255, 16<<10), 64, false},
		{4096, 4096, 64, kernelLimits(256, 16<<10-1), 64, false},
		{4096, 4096, 64, kernelLimits(64, 16<<10), 32, false},
		{4096, 4096, 64, kernelLimits(256, 4096), 32, false},
	} {
		got := chooseTile(c.rows, c.columns, c.k, c.limits)
		require.Equal(t, [2]any{c.size, c.long}, [2]any{got.size, got.long}, "%+v", c)
		require.LessOrEqual(t, got.workgroupBytes(), int(c.limits.MaxWorkgroupStorage))
		require.Equal(t, 2*got.size, got.size/got.rows*(got.size/got.columns), "an invocation for each register tile")
	}
}

func TestChooseFew(t *testing.T) {
	t.Parallel()
	large := kernelLimits(256, 48<<10)
	require.Equal(t, few{8, 1}, chooseFew(1, 1280, large))
	require.Equal(t, few{16, 1}, chooseFew(1, 51865, large))
	require.Equal(t, few{8, 4}, chooseFew(3, 4, large))
	require.Equal(t, few{8, 8}, chooseFew(8, 1280, large))
	require.Equal(t, few{16, 8}, chooseFew(8, 1280, kernelLimits(256, 16<<10)), "16 KiB hold eight rows of 128 values only")
	require.Equal(t, 2, few{16, 8}.rowsEach())
	require.Equal(t, 1, few{8, 8}.rowsEach())
}

func TestChooseRecurrence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hidden, batch, directions int
		limits                    driver.Limits
		want                      recurrentTile
	}{
		{128, 1, 1, kernelLimits(1024, 48<<10), recurrentTile{128, 4, 1, true}},
		{128, 256, 1, kernelLimits(1024, 48<<10), recurrentTile{128, 4, 2, true}},
		{128, 4096, 1, kernelLimits(1024, 48<<10), recurrentTile{128, 4, 4, true}},
		{128, 1, 1, kernelLimits(256, 16<<10), recurrentTile{128, 2, 1, true}},
		{128, 256, 1, kernelLimits(64, 16<<10), recurrentTile{64, 1, 2, true}},
		{640, 1, 1, kernelLimits(1024, 48<<10), recurrentTile{512, 1, 1, true}},
		{640, 1, 2, kernelLimits(256, 16<<10), recurrentTile{256, 1, 1, true}},
		{1, 1, 1, kernelLimits(256, 16<<10), recurrentTile{32, 2, 1, true}},
		{3000, 1, 1, kernelLimits(256, 16<<10), recurrentTile{256, 1, 1, false}},
	} {
		got := chooseRecurrence(c.hidden, c.batch, c.directions, c.limits)
		require.Equal(t, c.want, got, "%+v", c)
		require.LessOrEqual(t, got.workgroupBytes(c.hidden), int(c.limits.MaxWorkgroupStorage))
		one := chooseRecurrence(c.hidden, 1, c.directions, c.limits)
		require.Equal(t, [2]int{one.width, one.slices}, [2]int{got.width, got.slices}, "the order of sums depends on the batch")
	}
}
