package drivertest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// SaysThatItIsLost checks that a device which lose makes the library lose says so on every
// call, with the reason in one line, and can be closed.
func SaysThatItIsLost(t testing.TB, d driver.Device, lose func(reason string)) {
	t.Helper()
	ctx := context.Background()
	id, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage | driver.CopyDst})
	require.NoError(t, err)
	staging, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.MapRead | driver.CopyDst})
	require.NoError(t, err)
	p, g := AddOne(t, d, id)
	serial, err := d.Submit([]driver.Command{driver.Dispatch(p, g, 1, 1, 1)})
	require.NoError(t, err)
	require.NoError(t, d.Wait(ctx, serial, patience))
	lose("fell off\n  the bus\n")

	lost := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, pass.ErrDeviceLost)
		require.ErrorContains(t, err, "fell off; the bus")
	}
	lost(d.Err())
	_, err = d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage})
	lost(err)
	_, err = d.CreatePipeline(driver.PipelineDesc{Label: "x", Entry: "main", Source: "@compute @workgroup_size(1) fn main() { }"})
	lost(err)
	_, err = d.CreateBindGroup(p, []driver.Binding{{Buffer: id, Size: 256}})
	lost(err)
	_, err = d.Submit([]driver.Command{driver.Dispatch(p, g, 1, 1, 1)})
	lost(err)
	_, err = d.Done()
	lost(err)
	_, err = d.(driver.Timer).CreateQueries(1)
	lost(err)
	lost(d.Wait(ctx, serial, patience))
	lost(d.ReadMapped(ctx, staging, 0, make([]byte, 4), patience))
	lost(d.WriteMapped(ctx, staging, 0, make([]byte, 4), patience))
	lost(d.Write(id, 0, make([]byte, 4)))
	lost(d.DestroyBuffer(id))
	lost(d.DestroyPipeline(p))
	lost(d.DestroyBindGroup(g))
	require.NoError(t, d.Close())
	lost(d.Err())
}
