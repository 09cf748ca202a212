package drivertest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

const patience = 10 * time.Second

// counter is a device with a kernel that counts its dispatches in a buffer.
type counter struct {
	*testing.T
	*drivertest.Device
	ctx      context.Context
	count    driver.Command
	read     driver.Command
	staging  driver.BufferID
	accepted int
}

func newCounter(t *testing.T, faults drivertest.Faults) *counter {
	c := &counter{T: t, ctx: context.Background()}
	c.Device = drivertest.New(drivertest.Config{
		Faults:   faults,
		Kernels:  map[string]drivertest.Kernel{"count": func(call drivertest.Call) { call.Buffers[0][0]++ }},
		OnSubmit: func(driver.Serial, []driver.Command) { c.accepted++ },
	})
	id, err := c.CreateBuffer(driver.BufferDesc{Size: 256, Usage: driver.Storage | driver.CopySrc})
	require.NoError(t, err)
	c.staging, err = c.CreateBuffer(driver.BufferDesc{Size: 4, Usage: driver.MapRead | driver.CopyDst})
	require.NoError(t, err)
	p, err := c.CreatePipeline(driver.PipelineDesc{Label: "count", Source: "fn main()", Entry: "main", Bindings: []driver.BindingKind{driver.StorageReadWrite}})
	require.NoError(t, err)
	g, err := c.CreateBindGroup(p, []driver.Binding{{Buffer: id, Size: 256}})
	require.NoError(t, err)
	c.count, c.read = driver.Dispatch(p, g, 1, 1, 1), driver.Copy(c.staging, 0, id, 0, 4)
	return c
}

func (c *counter) submit() (driver.Serial, error) {
	return c.Submit([]driver.Command{c.count, c.read})
}

func (c *counter) mustSubmit() driver.Serial {
	c.Helper()
	serial, err := c.submit()
	require.NoError(c, err)
	return serial
}

func (c *counter) value() int {
	c.Helper()
	got := make([]byte, 1)
	require.NoError(c, c.ReadMapped(c.ctx, c.staging, 0, got, patience))
	return int(got[0])
}

func TestLoseAtSubmit(t *testing.T) {
	t.Parallel()
	c := newCounter(t, drivertest.Faults{LoseAtSubmit: 2})
	first := c.mustSubmit()
	_, err := c.submit()
	require.ErrorIs(t, err, pass.ErrDeviceLost)
	require.ErrorIs(t, c.Err(), pass.ErrDeviceLost)
	require.ErrorIs(t, c.Wait(c.ctx, first, patience), pass.ErrDeviceLost)
	_, err = c.CreateBuffer(driver.BufferDesc{Size: 4, Usage: driver.Storage})
	require.ErrorIs(t, err, pass.ErrDeviceLost)
	require.Equal(t, 1, c.accepted)
	require.NoError(t, c.Close())
	require.Zero(t, c.Ledger())
}

func TestLoseAtFinish(t *testing.T) {
	t.Parallel()
	c := newCounter(t, drivertest.Faults{LoseAtFinish: 1, Delay: time.Millisecond})
	serial := c.mustSubmit()
	require.ErrorIs(t, c.Wait(c.ctx, serial, patience), pass.ErrDeviceLost)
	require.NoError(t, c.Close())
}

func TestLose(t *testing.T) {
	t.Parallel()
	c := newCounter(t, drivertest.Faults{})
	c.Lose()
	_, err := c.submit()
	require.ErrorIs(t, err, pass.ErrDeviceLost)
}

func TestFailSubmit(t *testing.T) {
	t.Parallel()
	c := newCounter(t, drivertest.Faults{FailSubmit: 2})
	c.mustSubmit()
	_, err := c.submit()
	require.ErrorIs(t, err, pass.ErrInvalid)
	c.mustSubmit()
	require.Equal(t, 2, c.value())
	require.NoError(t, c.Err())
}

func TestSkippedDispatches(t *testing.T) {
	t.Parallel()
	c := newCounter(t, drivertest.Faults{SkipDispatch: 2})
	for range 3 {
		require.NoError(t, c.Wait(c.ctx, c.mustSubmit(), patience), "it is reported finished")
	}
	require.Equal(t, 2, c.value())
	c.Inject(drivertest.Faults{SkipPipeline: "count"})
	c.mustSubmit()
	require.Equal(t, 2, c.value())
	c.Inject(drivertest.Faults{})
	c.mustSubmit()
	require.Equal(t, 3, c.value())
}

func TestHang(t *testing.T) {
	t.Parallel()
	c := newCounter(t, drivertest.Faults{Hang: 2})
	first, second, third := c.mustSubmit(), c.mustSubmit(), c.mustSubmit()
	require.NoError(t, c.Wait(c.ctx, first, patience))
	require.ErrorIs(t, c.Wait(c.ctx, second, time.Millisecond), pass.ErrTimeout)
	require.ErrorIs(t, c.Wait(c.ctx, third, time.Millisecond), pass.ErrTimeout)
	require.ErrorIs(t, c.ReadMapped(c.ctx, c.staging, 0, make([]byte, 1), time.Millisecond), pass.ErrTimeout)
	require.Equal(t, 2, c.Ledger().InFlight)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(c.ctx)
	cancel(cause)
	require.ErrorIs(t, c.Wait(ctx, second, patience), cause)
	c.Resume()
	require.NoError(t, c.Wait(c.ctx, third, patience))
	require.Equal(t, 3, c.value())

	c.Inject(drivertest.Faults{Hang: 1})
	c.mustSubmit()
	require.ErrorIs(t, c.Close(), pass.ErrTimeout)
	require.Zero(t, c.Ledger())
	require.NoError(t, c.Close())
}

func TestLateError(t *testing.T) {
	t.Parallel()
	c := newCounter(t, drivertest.Faults{LateError: 1, Hang: 2})
	first, second := c.mustSubmit(), c.mustSubmit()
	require.ErrorIs(t, c.Wait(c.ctx, first, patience), pass.ErrInvalid)
	require.ErrorIs(t, c.Wait(c.ctx, second, time.Millisecond), pass.ErrInvalid, "it outranks the time-out")
	require.ErrorIs(t, c.Err(), pass.ErrInvalid)
	c.mustSubmit()
}

func TestFailAlloc(t *testing.T) {
	t.Parallel()
	c := newCounter(t, drivertest.Faults{FailAlloc: 3})
	desc := driver.BufferDesc{Size: 4, Usage: driver.Storage}
	_, err := c.CreateBuffer(desc)
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
	_, err = c.CreateBuffer(desc)
	require.NoError(t, err)
}

// Until a submission is finished, its results are not there.
func TestDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounter(t, drivertest.Faults{Delay: 20 * time.Millisecond})
		start := time.Now()
		first, second := c.mustSubmit(), c.mustSubmit()
		require.ErrorIs(t, c.Wait(c.ctx, first, 0), pass.ErrTimeout)
		require.NoError(t, c.Wait(c.ctx, second, patience))
		require.InDelta(t, 40*time.Millisecond, time.Since(start), float64(time.Millisecond))
	})
}

func TestBusy(t *testing.T) {
	t.Parallel()
	c := newCounter(t, drivertest.Faults{Hang: 1})
	for range driver.MaxInFlight {
		c.mustSubmit()
	}
	_, err := c.submit()
	require.ErrorIs(t, err, driver.ErrBusy)
	c.Resume()
	c.mustSubmit()
}

func TestProvider(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	gone := errors.New("gone")
	p := &drivertest.Provider{
		List:    []driver.Adapter{{Name: "a", Limits: driver.Limits{MaxWorkgroups: 9}}, {Name: "b", Features: driver.FeatureTimestamps}},
		OpenErr: map[int]error{1: gone},
	}
	list, err := p.Adapters(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, list[1].Index)
	require.EqualValues(t, 9, list[0].Limits.MaxWorkgroups)
	require.EqualValues(t, 65535, list[1].Limits.MaxWorkgroups)
	d, err := p.Open(ctx, 0, driver.DeviceConfig{Limits: driver.Limits{MaxWorkgroups: 8}})
	require.NoError(t, err)
	require.EqualValues(t, 8, d.Limits().MaxWorkgroups)
	require.Len(t, p.Opened, 1)
	_, err = p.Open(ctx, 0, driver.DeviceConfig{Features: driver.FeatureTimestamps})
	require.ErrorIs(t, err, pass.ErrUnsupported)
	_, err = p.Open(ctx, 1, driver.DeviceConfig{})
	require.ErrorIs(t, err, gone)
	_, err = p.Open(ctx, 2, driver.DeviceConfig{})
	require.ErrorIs(t, err, pass.ErrNoDevice)
	_, err = (&drivertest.Provider{}).Adapters(ctx)
	require.ErrorIs(t, err, pass.ErrNoDevice)
}
