package driver_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

func TestThread(t *testing.T) {
	t.Parallel()
	d := drivertest.New(drivertest.Config{})
	th := driver.NewThread(d)
	var ctx driver.Context
	require.NoError(t, th.Do(func() (err error) {
		ctx, err = d.CreateContext(0)
		return err
	}))
	_, err := d.Alloc(4)
	require.Error(t, err, "the context must not stay current on the caller's thread")
	// Many goroutines, one call at a time, the context current in each.
	var (
		wait   sync.WaitGroup
		inside int
		errs   [32]error
	)
	for i := range errs {
		wait.Go(func() {
			errs[i] = th.Do(func() error {
				inside++
				defer func() { inside-- }()
				runtime.Gosched()
				if inside != 1 {
					return errors.New("two at a time")
				}
				p, err := d.Alloc(4)
				if err != nil {
					return err
				}
				return d.Free(p)
			})
		})
	}
	wait.Wait()
	require.NoError(t, errors.Join(errs[:]...))
	require.ErrorContains(t, th.Do(func() error { panic("oh") }), "driver: thread: panic: oh")
	sentinel := errors.New("mine")
	require.Equal(t, sentinel, th.Do(func() error { return sentinel }))

	// A lost context does not keep f from running.
	d.Lose(driver.IllegalAddress)
	ran := false
	require.NoError(t, th.Do(func() error { ran = true; return d.DestroyContext(ctx) }))
	require.True(t, ran)
	require.NoError(t, th.Do(func() error { return nil }), "no context is left")
	require.Empty(t, d.Leaks())
	th.Close()
	th.Close()
	(*driver.Thread)(nil).Close()
	require.ErrorIs(t, th.Do(func() error { return nil }), pass.ErrClosed)
}

// A thread that cannot learn which context a call left says so.
func TestThreadThatDoesNotKnow(t *testing.T) {
	t.Parallel()
	d := drivertest.New(drivertest.Config{})
	th := driver.NewThread(d)
	d.Fail("Current", 2, driver.InvalidValue)
	var cause *driver.Error
	require.ErrorAs(t, th.Do(func() error { return nil }), &cause)
	require.Equal(t, driver.InvalidValue, cause.Code)
	require.NoError(t, th.Do(func() error { return nil }))
}

// What was current on the caller's thread is so again.
func TestThreadPutsBack(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d := drivertest.New(drivertest.Config{})
	mine, err := d.CreateContext(0)
	require.NoError(t, err)
	th := driver.NewThread(d)
	var other driver.Context
	require.NoError(t, th.Do(func() (err error) {
		now, err := d.Current()
		if err != nil || now != 0 {
			return fmt.Errorf("%v is current: %w", now, err)
		}
		other, err = d.CreateContext(0)
		return err
	}))
	now, err := d.Current()
	require.NoError(t, err)
	require.Equal(t, mine, now)
	require.NoError(t, th.Do(func() error {
		now, err := d.Current()
		require.Equal(t, other, now)
		return err
	}))
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code  int
		is    error
		fatal bool
	}{
		{driver.OutOfMemory, pass.ErrOutOfMemory, false},
		{driver.NoDevice, pass.ErrNoDevice, false},
		{driver.InvalidDevice, pass.ErrNoDevice, false},
		{driver.NoBinaryForGPU, pass.ErrUnsupported, false},
		{driver.UnsupportedPTXVersion, pass.ErrUnsupported, false},
		{driver.IllegalAddress, pass.ErrDeviceLost, true},
		{driver.LaunchTimeout, pass.ErrDeviceLost, true},
		{driver.LaunchFailed, pass.ErrDeviceLost, true},
		{driver.Unknown, pass.ErrDeviceLost, true},
		{driver.InvalidValue, nil, false},
		{driver.NotReady, nil, false},
		{driver.LaunchOutOfResources, nil, false},
	} {
		e := drivertest.Error("cuCall", c.code)
		require.Equal(t, c.fatal, e.Fatal(), e)
		for _, s := range []error{pass.ErrOutOfMemory, pass.ErrNoDevice, pass.ErrUnsupported, pass.ErrDeviceLost, pass.ErrInvalid} {
			require.Equal(t, s == c.is, errors.Is(fmt.Errorf("wrapped: %w", e), s), "%v: %v", e, s)
		}
	}
	e := drivertest.Error("cuModuleLoadDataEx", driver.InvalidPTX)
	e.Log = "ptxas fatal"
	require.EqualError(t, e, "driver: cuModuleLoadDataEx: a PTX JIT compilation failed (CUDA_ERROR_INVALID_PTX, 218): ptxas fatal")
}
