package backend

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

// Whatever is within the hardware when the device is closed comes out of it before the
// hardware is closed, and leaves nothing behind.
func TestCloseWaitsForCallsWithinTheHardware(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(pass.Device, pass.Session) error{
		"record": func(_ pass.Device, s pass.Session) error {
			_, err := s.Record(context.Background(), pass.RecordOptions{}, func(p pass.Pass) {
				p.Do(pass.Fill{To: p.Temp(pass.U32, 4).View(), Rows: 1, Cols: 4})
			})
			return err
		},
		"alloc": func(_ pass.Device, s pass.Session) error {
			_, err := s.Alloc(pass.F32, 4)
			return err
		},
		"new session": func(d pass.Device, _ pass.Session) error {
			_, err := d.NewSession(pass.SessionConfig{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			d, s := open(t, f, pass.SessionConfig{})
			f.entered, f.leave = make(chan struct{}), make(chan struct{})
			called, closed := make(chan error, 1), make(chan error, 1)
			go func() { called <- call(d, s) }()
			<-f.entered
			go func() { closed <- d.Close() }()
			for d.(*device).usable() == nil {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(5 * time.Millisecond)
			require.Zero(t, f.closed.Load(), "the call is still within the hardware")
			close(f.leave)
			<-called
			require.NoError(t, <-closed)
			require.ErrorIs(t, call(d, s), pass.ErrClosed)
		})
	}
}

// The callback of Record is not within the hardware: it may close what it likes.
func TestCallbackMayCloseTheDevice(t *testing.T) {
	t.Parallel()
	f := newFake()
	d, s := open(t, f, pass.SessionConfig{})
	other, err := d.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	f.entered, f.leave = make(chan struct{}, 1), make(chan struct{})
	close(f.leave)
	_, err = other.Record(t.Context(), pass.RecordOptions{}, func(pass.Pass) { require.NoError(t, other.Close()) })
	require.ErrorIs(t, err, pass.ErrClosed)
	require.Empty(t, f.entered, "nothing is compiled in a closed session")
	_, err = s.Record(t.Context(), pass.RecordOptions{}, func(pass.Pass) { require.NoError(t, d.Close()) })
	require.ErrorIs(t, err, pass.ErrClosed)
}

// Two goroutines should not drive one session, but if they do, one that reads and one
// that starts do not wait for each other.
func TestTwoDriversDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	_, opened := open(t, newFake(), pass.SessionConfig{})
	s := opened.(*session)
	rec, in, _ := chain(t, s, 2, pass.RecordOptions{})
	<-s.token // as Read does
	started := make(chan error, 1)
	go func() {
		_, err := rec.Start(context.Background(), in.U32([]uint32{1}))
		started <- err
	}()
	for s.mu.TryLock() { // until Start waits for the token
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	asked := make(chan error, 1)
	go func() { asked <- s.usable() }() // as Read does next
	select {
	case err := <-asked:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Error("Read waits for Start, which waits for Read")
	}
	s.token <- struct{}{}
	require.NoError(t, <-started)
}

func TestNilArguments(t *testing.T) {
	t.Parallel()
	d, s := open(t, newFake(), pass.SessionConfig{})
	b, err := s.Alloc(pass.U32, 1)
	require.NoError(t, err)
	rec, in, _ := chain(t, s, 1, pass.RecordOptions{})
	run, err := rec.Run(t.Context(), in.U32([]uint32{1}))
	require.NoError(t, err)
	var none context.Context
	weights := pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("w", []float32{1}, 1, 1)}}
	for name, call := range map[string]func() error{
		"load":   func() error { _, err := d.Load(none, weights); return err },
		"record": func() error { _, err := s.Record(none, pass.RecordOptions{}, func(pass.Pass) {}); return err },
		"write":  func() error { return s.Write(none, b.View(), []uint32{1}) },
		"read":   func() error { return s.Read(none, b.View(), []uint32{1}) },
		"start":  func() error { _, err := rec.Start(none, in.U32([]uint32{1})); return err },
		"wait":   func() error { return run.Wait(none) },
	} {
		err := call()
		require.ErrorIs(t, err, pass.ErrInvalid, name)
		require.ErrorContains(t, err, "want a context, given nil", name)
	}
	var w io.Writer
	require.ErrorContains(t, rec.Dump(w), "want a writer, given nil")
}
