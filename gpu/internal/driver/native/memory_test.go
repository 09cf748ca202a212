//go:build cgo && !js && (linux || darwin || windows)

package native

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

// A buffer that the limits allow and the memory does not is an error, and the device
// works afterwards.
func TestOutOfMemory(t *testing.T) {
	p := newProvider(t)
	if drivertest.Best(t, p).Limits.MaxBufferSize < 1<<40 {
		t.Skip("the adapter's limits are below any memory")
	}
	d := openDevice(t, p, driver.DeviceConfig{})
	for _, size := range []uint64{1 << 40, 1<<39 + 4} {
		_, err := d.CreateBuffer(driver.BufferDesc{Label: "huge", Size: size, Usage: driver.Storage | driver.CopyDst})
		require.ErrorIs(t, err, pass.ErrOutOfMemory)
		t.Log(err)
	}
	_, err := d.CreateBuffer(driver.BufferDesc{Label: "huge", Size: 1 << 40, Usage: driver.MapRead | driver.CopyDst})
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
	stillWorks(t, d)
}

func stillWorks(t *testing.T, d driver.Device) {
	t.Helper()
	ctx := context.Background()
	id, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage | driver.CopySrc})
	require.NoError(t, err)
	staging, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.MapRead | driver.CopyDst})
	require.NoError(t, err)
	p, g := drivertest.AddOne(t, d, id)
	_, err = d.Submit([]driver.Command{driver.Dispatch(p, g, 1, 1, 1), driver.Copy(staging, 0, id, 0, 256)})
	require.NoError(t, err)
	got := make([]byte, 4)
	require.NoError(t, d.ReadMapped(ctx, staging, 0, got, patience))
	require.Equal(t, []byte{1, 0, 0, 0}, got)
	require.NoError(t, d.DestroyBuffer(id))
	require.NoError(t, d.DestroyBuffer(staging))
	require.NoError(t, d.DestroyPipeline(p))
	require.NoError(t, d.DestroyBindGroup(g))
}
