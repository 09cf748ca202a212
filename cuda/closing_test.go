package cuda

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

// Handles of another device, of another session, and those that are closed are refused.
func TestForeignHandles(t *testing.T) {
	t.Parallel()
	a, b := newBench(t, drivertest.Config{}, Config{}, 8), newBench(t, drivertest.Config{}, Config{}, 8)
	sibling, err := a.dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	foreign, err := b.ses.Alloc(pass.F32, 4)
	require.NoError(t, err)
	elsewhere, err := sibling.Alloc(pass.F32, 4)
	require.NoError(t, err)
	freed, err := a.ses.Alloc(pass.F32, 4)
	require.NoError(t, err)
	require.NoError(t, a.ses.Free(freed))
	for _, c := range []struct {
		buffer pass.Buffer
		want   error
	}{{foreign, pass.ErrInvalid}, {elsewhere, pass.ErrInvalid}, {freed, pass.ErrClosed}, {pass.Buffer{}, pass.ErrInvalid}} {
		_, err := a.ses.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
			p.Do(pass.Fill{To: c.buffer.View(), Rows: 1, Cols: 4})
		})
		require.ErrorIs(t, err, c.want)
		require.ErrorIs(t, a.ses.Write(t.Context(), c.buffer.View(), make([]float32, 4)), c.want)
		require.ErrorIs(t, a.ses.Free(c.buffer), c.want)
	}
	w, err := b.dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{weights(8, 8)}})
	require.NoError(t, err)
	require.ErrorIs(t, a.dev.Unload(w), pass.ErrInvalid)
	_, err = a.rec.Run(t.Context())
	require.NoError(t, err)
}

// Recording, session and device close in any order, again, and while a run is under way.
func TestClosingInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		for _, running := range []bool{false, true} {
			b := newBench(t, drivertest.Config{Lazy: true}, Config{}, 64)
			w, err := b.dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{weights(8, 8)}})
			require.NoError(t, err)
			_, err = b.ses.Alloc(pass.F32, 64)
			require.NoError(t, err)
			run, err := b.rec.Start(t.Context())
			require.NoError(t, err)
			if !running {
				require.NoError(t, run.Wait(t.Context()))
			}
			closers := [3]func() error{b.rec.Close, b.ses.Close, b.dev.Close}
			for _, i := range order {
				require.NoError(t, closers[i]())
				require.NoError(t, closers[i]())
				_, err := b.rec.Start(t.Context())
				require.ErrorIs(t, err, pass.ErrClosed)
			}
			if err := run.Wait(t.Context()); err != nil {
				require.ErrorIs(t, err, pass.ErrClosed)
			}
			run.Close()
			require.ErrorIs(t, b.dev.Unload(w), pass.ErrClosed)
		}
	}
}

// Sessions on several goroutines record, run, allocate and close at the same time, on
// devices with and without a workspace that moves.
func TestSessionsAtOnce(t *testing.T) {
	t.Parallel()
	for _, moves := range []bool{false, true} {
		p := drivertest.Hopper()
		p.NoVirtual = moves
		b := newBench(t, drivertest.Config{Lazy: true, Devices: []drivertest.Profile{p}}, Config{}, 64)
		var wait sync.WaitGroup
		work := func(ses pass.Session, n int) error {
			c := &bench{dev: b.dev, ses: ses}
			for k := range 4 {
				rec, err := c.record(t, n<<k)
				if err != nil {
					return err
				}
				x, err := ses.Alloc(pass.F32, n)
				if err != nil {
					return err
				}
				for range 5 {
					if _, err := rec.Run(t.Context()); err != nil {
						return err
					}
				}
				if err := errors.Join(ses.Free(x), rec.Close()); err != nil {
					return err
				}
			}
			return nil
		}
		for k := range 4 {
			wait.Go(func() {
				ses, err := b.dev.NewSession(pass.SessionConfig{Latency: pass.Latency(k % 2)})
				if err == nil {
					err = errors.Join(work(ses, 1<<17), ses.Close())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Go(func() { // one session records while it runs
			for range 20 {
				if _, err := b.rec.Run(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		if err := work(b.ses, 1<<18); err != nil {
			t.Error(err)
		}
		wait.Wait()
	}
}

// A recording may be described while a run makes its graphs again.
func TestDumpWhileRunning(t *testing.T) {
	t.Parallel()
	p := drivertest.Hopper()
	p.NoVirtual = true
	b := newBench(t, drivertest.Config{Devices: []drivertest.Profile{p}}, Config{}, 64)
	var wait sync.WaitGroup
	wait.Go(func() {
		for range 200 {
			var text strings.Builder
			if err := b.rec.Dump(&text); err != nil || !strings.Contains(text.String(), "move_fill: grid") || !strings.Contains(text.String(), "1 kernels in 1 parts") {
				t.Errorf("%v: %q", err, text.String())
				return
			}
		}
	})
	for k := range 4 {
		_, err := b.record(t, 1<<20<<k)
		require.NoError(t, err)
		_, err = b.rec.Run(t.Context())
		require.NoError(t, err)
	}
	wait.Wait()
}
