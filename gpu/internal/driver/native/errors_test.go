//go:build cgo && !js && (linux || darwin || windows)

package native

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// An error outside of every scope, which aborts the process where nobody listens, is
// kept and outranks whatever else Wait would say.
func TestUncapturedError(t *testing.T) {
	d := openDevice(t, newProvider(t), driver.DeviceConfig{}).(*device)
	serial, err := d.Submit(nil)
	require.NoError(t, err)
	id, err := d.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage | driver.CopyDst})
	require.NoError(t, err)
	o, err := d.book.CheckWrite(id, 0, 4)
	require.NoError(t, err)
	d.provoke(o.Native)
	require.ErrorIs(t, d.Err(), pass.ErrInvalid)
	require.ErrorContains(t, d.Err(), "wgpuQueueWriteBuffer")
	require.ErrorIs(t, d.Wait(context.Background(), serial, patience), pass.ErrInvalid)
	require.ErrorIs(t, d.Err(), pass.ErrInvalid, "it stays")
	require.NoError(t, d.Close())
	require.ErrorIs(t, d.Err(), pass.ErrInvalid)
}

// A panic of the binding becomes an error, and the scopes stay in step.
func TestPanicOfTheBinding(t *testing.T) {
	d := openDevice(t, newProvider(t), driver.DeviceConfig{}).(*device)
	for range 3 {
		err := d.guarded("test", func() error { panic("got nil descriptor") })
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, "got nil descriptor")
	}
	_, err := d.CreatePipeline(driver.PipelineDesc{Label: "bad", Entry: "main", Source: "fn ("})
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.NoError(t, d.Err(), "the error was in a scope")
	stillWorks(t, d)
}
