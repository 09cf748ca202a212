package backend

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

// chain records n copies from an input through temporaries to an output, of one word.
func chain(t *testing.T, s pass.Session, n int, opt pass.RecordOptions) (pass.Recording, pass.Input, pass.Output) {
	t.Helper()
	var in pass.Input
	var out pass.Output
	rec, err := s.Record(t.Context(), opt, func(p pass.Pass) {
		in = p.Input(pass.U32, 1)
		from := in.Buffer
		for range n {
			to := p.Temp(pass.U32, 1)
			p.Do(pass.Copy{From: from.View(), To: to.View(), Rows: 1, Cols: 1})
			from = to
		}
		out = p.Output(from.View(), 1)
	})
	require.NoError(t, err)
	return rec, in, out
}

func open(t *testing.T, f *fake, cfg pass.SessionConfig) (pass.Device, pass.Session) {
	t.Helper()
	d := New(f)
	s, err := d.NewSession(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, d.Close())
		require.Zero(t, f.memory.Load(), "memory")
		require.Zero(t, f.streams.Load(), "streams")
		require.Zero(t, f.programs.Load(), "programs")
		require.EqualValues(t, 1, f.closed.Load(), "closed")
	})
	return d, s
}

func TestRunsQueueInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.gate = make(chan struct{}, 1000)
		f.rate = pass.Cost{FLOP: 1, Bytes: 1e-12} // every piece is a part
		_, s := open(t, f, pass.SessionConfig{})
		rec, in, out := chain(t, s, 7, pass.RecordOptions{Label: "chain"})
		var runs []pass.Run
		for i := range uint32(5) {
			data := []uint32{i}
			r, err := rec.Start(t.Context(), in.U32(data))
			require.NoError(t, err)
			data[0] = 99 // the data were copied
			runs = append(runs, r)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, runs[0].Wait(ctx), context.DeadlineExceeded)
		require.ErrorIs(t, runs[0].ReadU32(out, make([]uint32, 1)), pass.ErrInvalid)
		for range 35 {
			f.gate <- struct{}{}
		}
		for i, r := range runs {
			require.NoError(t, r.Wait(t.Context()))
			got := make([]uint32, 1)
			require.NoError(t, r.ReadU32(out, got))
			require.EqualValues(t, i, got[0])
		}
		require.EqualValues(t, 2, f.most.Load(), "parts in flight at once")
		require.EqualValues(t, 35, f.parts.Load(), "parts")
	})
}

func TestPartsByCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.rate = pass.Cost{FLOP: 1, Bytes: 8 / 0.03} // a copy of a word: 30 ms
		_, s := open(t, f, pass.SessionConfig{})
		rec, in, _ := chain(t, s, 7, pass.RecordOptions{})
		_, err := rec.Run(t.Context(), in.U32([]uint32{1}))
		require.NoError(t, err)
		require.EqualValues(t, 3, f.parts.Load(), "2 and 2 pieces of 30 ms in parts of 70 ms; they took no time, so the next part holds more")
	})
}

func TestCancelDropsWhatHasNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.gate = make(chan struct{}, 1000)
		f.rate = pass.Cost{FLOP: 1, Bytes: 1e-12}
		_, s := open(t, f, pass.SessionConfig{})
		rec, in, out := chain(t, s, 50, pass.RecordOptions{Label: "long"})

		ctx, cancel := context.WithCancel(t.Context())
		first, err := rec.Start(ctx, in.U32([]uint32{1}))
		require.NoError(t, err)
		second, err := rec.Start(t.Context(), in.U32([]uint32{2}))
		require.NoError(t, err)
		synctest.Wait()
		require.EqualValues(t, 2, f.parts.Load())
		cancel()
		for range 1000 {
			f.gate <- struct{}{}
		}
		err = first.Wait(t.Context())
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, `run "long"`)
		require.ErrorIs(t, first.ReadU32(out, make([]uint32, 1)), context.Canceled)
		require.NoError(t, second.Wait(t.Context()))
		require.Less(t, f.parts.Load(), int32(60), "the first run's rest was dropped")

		// A cancelled replay must not return what the replay before it left.
		got := make([]uint32, 1)
		require.NoError(t, second.ReadU32(out, got))
		require.EqualValues(t, 2, got[0])
		ended, end := context.WithCancel(t.Context())
		end()
		_, err = rec.Start(ended, in.U32([]uint32{3}))
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestFailures(t *testing.T) {
	lost := errors.Join(errors.New("the cable is out"), pass.ErrDeviceLost)
	for _, c := range []struct {
		name string
		set  func(*fake)
		want error
	}{
		{"submit", func(f *fake) { f.submitErr = third(errors.New("no")) }, nil},
		{"wait", func(f *fake) { f.waitErr = third(pass.ErrTimeout) }, pass.ErrTimeout},
		{"lost", func(f *fake) { f.waitErr = third(lost) }, pass.ErrDeviceLost},
		{"panic", func(f *fake) { f.submitErr = func(int32) error { panic("oops") } }, pass.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake()
			f.rate = pass.Cost{FLOP: 1, Bytes: 1e-12}
			d, s := open(t, f, pass.SessionConfig{Label: "s"})
			rec, in, out := chain(t, s, 6, pass.RecordOptions{Label: "r"})
			c.set(f)
			r, err := rec.Start(t.Context(), in.U32([]uint32{1}))
			require.NoError(t, err)
			err = r.Wait(t.Context())
			require.ErrorContains(t, err, `fake: session "s": run "r"`)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
			}
			require.Equal(t, err, r.Wait(t.Context()), "the same error again")
			require.Equal(t, err, r.ReadU32(out, make([]uint32, 1)))
			f.submitErr, f.waitErr = nil, nil
			_, err = rec.Run(t.Context(), in.U32([]uint32{2}))
			if c.want == pass.ErrDeviceLost {
				require.ErrorIs(t, err, pass.ErrDeviceLost)
				_, err = s.Alloc(pass.F32, 1)
				require.ErrorIs(t, err, pass.ErrDeviceLost)
				_, err = d.NewSession(pass.SessionConfig{})
				require.ErrorIs(t, err, pass.ErrDeviceLost)
			} else {
				require.NoError(t, err, "the session stays usable")
			}
		})
	}
}

func third(err error) func(int32) error {
	return func(n int32) error {
		if n == 3 {
			return err
		}
		return nil
	}
}

func TestProgress(t *testing.T) {
	f := newFake()
	f.rate = pass.Cost{FLOP: 1, Bytes: 1e-12}
	_, s := open(t, f, pass.SessionConfig{})
	var got []float64
	rec, in, _ := chain(t, s, 4, pass.RecordOptions{Progress: func(done float64) { got = append(got, done) }})
	r, err := rec.Run(t.Context(), in.U32([]uint32{1}))
	require.NoError(t, err)
	require.NoError(t, r.Wait(t.Context()))
	require.InDeltaSlice(t, []float64{0.25, 0.5, 0.75, 1}, append(got[:0:0], got...), 1e-9)

	rec, in, _ = chain(t, s, 4, pass.RecordOptions{Progress: func(float64) { panic("in progress") }})
	_, err = rec.Run(t.Context(), in.U32([]uint32{1}))
	require.ErrorContains(t, err, "in progress")
}

func TestReplayAllocatesNothing(t *testing.T) {
	f := newFake()
	_, s := open(t, f, pass.SessionConfig{})
	rec, in, out := chain(t, s, 4, pass.RecordOptions{})
	data, got := []uint32{5}, []uint32{0}
	binds := []pass.Bind{in.U32(data)}
	ctx := context.Background()
	n := 1.0
	for i := 0; i < 5 && n > 0; i++ { // the runtime allocates now and then, too
		n = testing.AllocsPerRun(200, func() {
			r, err := rec.Run(ctx, binds...)
			if err != nil || r.ReadU32(out, got) != nil || got[0] != 5 {
				t.Fatal(err, got)
			}
			r.Close()
		})
	}
	require.Zero(t, n)
}

func TestClosedRuns(t *testing.T) {
	_, s := open(t, newFake(), pass.SessionConfig{})
	rec, in, out := chain(t, s, 1, pass.RecordOptions{})
	a, err := rec.Run(t.Context(), in.U32([]uint32{1}))
	require.NoError(t, err)
	a.Close()
	a.Close()
	require.ErrorIs(t, a.Wait(t.Context()), pass.ErrClosed)
	b, err := rec.Run(t.Context(), in.U32([]uint32{2}))
	require.NoError(t, err)
	require.ErrorIs(t, a.ReadU32(out, make([]uint32, 1)), pass.ErrClosed, "not the data of a later run")
	a.Close()
	got := make([]uint32, 1)
	require.NoError(t, b.ReadU32(out, got))
	require.EqualValues(t, 2, got[0])
	require.NoError(t, rec.Close())
	require.NoError(t, b.ReadU32(out, got), "a run that is done stays readable")
	_, err = rec.Start(t.Context(), in.U32([]uint32{3}))
	require.ErrorIs(t, err, pass.ErrClosed)
	var none pass.Run
	require.ErrorIs(t, none.Wait(t.Context()), pass.ErrInvalid)
	none.Close()
}

func TestMemoryLivesAsLongAsItsRecordings(t *testing.T) {
	f := newFake()
	_, s := open(t, f, pass.SessionConfig{})
	b, err := s.Alloc(pass.U32, 4)
	require.NoError(t, err)
	rec, err := s.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
		p.Do(pass.Fill{To: b.View(), Rows: 1, Cols: 4, Word: 3})
	})
	require.NoError(t, err)
	require.NoError(t, s.Free(b))
	require.EqualValues(t, 1, f.memory.Load(), "the recording keeps it")
	_, err = rec.Run(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, s.Read(t.Context(), b.View(), make([]uint32, 4)), pass.ErrClosed)
	c, err := s.Alloc(pass.U32, 4)
	require.NoError(t, err)
	require.Equal(t, b.Ref().ID, c.Ref().ID, "the slot is used again")
	require.ErrorIs(t, s.Free(b), pass.ErrClosed, "a stale handle is not the new buffer")
	require.NoError(t, rec.Close())
	require.EqualValues(t, 1, f.memory.Load())
	require.NoError(t, s.Free(c))
}

func TestCloseWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.gate = make(chan struct{}, 100)
		f.rate = pass.Cost{FLOP: 1, Bytes: 1e-12}
		d, s := open(t, f, pass.SessionConfig{})
		rec, in, _ := chain(t, s, 50, pass.RecordOptions{})
		r, err := rec.Start(t.Context(), in.U32([]uint32{1}))
		require.NoError(t, err)
		require.NoError(t, rec.Close(), "its memory is freed after the run")
		closed := make(chan error)
		go func() { closed <- d.Close() }()
		synctest.Wait()
		_, err = s.Alloc(pass.U32, 1)
		require.ErrorIs(t, err, pass.ErrClosed)
		for range 100 {
			select {
			case f.gate <- struct{}{}:
			default:
			}
		}
		require.NoError(t, <-closed)
		require.ErrorIs(t, r.Wait(t.Context()), pass.ErrClosed, "the rest of the run was dropped")
		require.NoError(t, s.Close())
		require.NoError(t, d.Close())
		// A goroutine that is left fails the test: its bubble does not end.
	})
}

func TestOutOfMemoryLeavesTheDeviceUsable(t *testing.T) {
	f := newFake()
	_, s := open(t, f, pass.SessionConfig{})
	f.allocErr = pass.ErrOutOfMemory
	_, err := s.Alloc(pass.F32, 1<<30)
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
	require.ErrorContains(t, err, "1073741824 F32")
	f.allocErr = nil
	_, err = s.Alloc(pass.F32, 1)
	require.NoError(t, err)
}

func TestDump(t *testing.T) {
	_, s := open(t, newFake(), pass.SessionConfig{})
	rec, _, _ := chain(t, s, 3, pass.RecordOptions{Label: "three"})
	var b strings.Builder
	require.NoError(t, rec.Dump(&b))
	require.Contains(t, b.String(), `recording "three" on fake: exact, 3 ops, 1 inputs, 1 outputs, 0 FLOP, 24 bytes moved; temporaries: 8 bytes at once, 8 packed`)
	require.NoError(t, rec.Close())
	require.ErrorIs(t, rec.Dump(&b), pass.ErrClosed)
}

// A row of very small pieces says nothing of the rate, and must not make later work look
// slow.
func TestPaceLearnsFromWorkAlone(t *testing.T) {
	f := newFake()
	f.rate = pass.Cost{FLOP: 1e9, Bytes: 1e9}
	p := newPace(f)
	big := pass.Cost{FLOP: 1e8}
	require.InDelta(t, 0.1, p.seconds(big), 1e-4)
	small := 1000 * p.seconds(pass.Cost{Bytes: 8})
	p.measure(1000, small, 10*small)
	require.InDelta(t, 0.1, p.seconds(big), 1e-4)
	p.measure(1, p.seconds(big), 0.15)
	require.InDelta(t, 0.15, p.seconds(big), 1e-4, "one and a half times slower")
	p.measure(1, p.seconds(big), 10)
	require.InDelta(t, 0.3, p.seconds(big), 1e-4, "one part moves it by two times at most")
}
