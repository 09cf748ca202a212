package gpu

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

// crawl makes every dispatch of a rig a part of its own.
var crawl = pass.Cost{FLOP: 1, Bytes: 1}

// work does everything that a device is used for, and returns the first error. Wrong
// data are an error that wraps none of the sentinels.
func work(r *rig) error {
	ctx := context.Background()
	w, err := r.Load(ctx, pass.LinearWeights{Name: "w", Parts: []pass.Tensor{pass.Float32s("w", make([]float32, 120), 3, 40)}})
	if err != nil {
		return err
	}
	s, err := r.NewSession(pass.SessionConfig{Label: "work"})
	if err != nil {
		return err
	}
	defer s.Close()
	state, err := s.Alloc(pass.U32, 100)
	if err != nil {
		return err
	}
	if err := s.Write(ctx, state.View(), sequence(100, 50)); err != nil {
		return err
	}
	var recs [2]pass.Recording
	var in [2]pass.Input
	var out [2]pass.Output
	for i := range recs { // the second needs a larger workspace
		n := 30 * (1 + i)
		recs[i], err = s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
			in[i] = p.Input(pass.U32, n)
			x, y := p.Temp(pass.U32, n), p.Temp(pass.U32, n+1)
			p.Do(dense(in[i].View(), x.View(), n), fillWith(y.View(), n+1, 3), dense(x.View(), y.View(), n), dense(y.View(), state.At(10), n+1))
			out[i] = p.Output(state.View(), 100)
		})
		if err != nil {
			return err
		}
	}
	want := sequence(100, 50)
	for round := range uint32(4) {
		i := int(round % 2)
		n := 30 * (1 + i)
		run, err := recs[i].Run(ctx, in[i].U32(sequence(n, 1000*round)))
		if err != nil {
			return err
		}
		copy(want[10:], append(sequence(n, 1000*round), 3))
		got := make([]uint32, 100)
		if err := run.ReadU32(out[i], got); err != nil {
			return err
		}
		if err := equal(want, got); err != nil {
			return fmt.Errorf("output of round %d: %w", round, err)
		}
		run.Close()
	}
	got := make([]uint32, 90)
	if err := s.Read(ctx, state.At(10), got); err != nil {
		return err
	}
	if err := equal(want[10:], got); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return errors.Join(r.Unload(w), s.Close())
}

func equal(want, got []uint32) error {
	for i := range want {
		if want[i] != got[i] {
			return fmt.Errorf("element %d: want %d, got %d", i, want[i], got[i])
		}
	}
	return nil
}

func TestWork(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, r *rig) {
		require.NoError(t, work(r))
		r.hw.rate = crawl
		require.NoError(t, work(r))
	})
}

// Whatever allocation fails, the call says so, the device stays usable and nothing is
// left.
func TestEveryAllocationMayFail(t *testing.T) {
	t.Parallel()
	for _, features := range []driver.Feature{0, driver.FeatureMappedStorage} {
		failed := 0
		for n := 1; ; n++ {
			r := memoryRig(t, drivertest.Config{Features: features, Faults: drivertest.Faults{FailAlloc: n}}, options{}, nil)
			r.hw.rate = crawl
			err := work(r)
			if err == nil {
				break
			}
			failed++
			require.ErrorIs(t, err, pass.ErrOutOfMemory, "allocation %d", n)
			require.NotErrorIs(t, err, pass.ErrDeviceLost)
			require.NoError(t, work(r), "after allocation %d failed", n)
			r.Close()
		}
		require.Greater(t, failed, 8)
		t.Logf("%v: each of %d allocations", features, failed)
	}
}

// refusing is a device that has no memory left for one pipeline or bind group.
type refusing struct {
	driver.Device
	at    int32
	count atomic.Int32
}

func (r *refusing) refuse() error {
	if r.count.Add(1) == r.at {
		return fmt.Errorf("test: %w", pass.ErrOutOfMemory)
	}
	return nil
}

func (r *refusing) CreatePipeline(d driver.PipelineDesc) (driver.PipelineID, error) {
	if err := r.refuse(); err != nil {
		return 0, err
	}
	return r.Device.CreatePipeline(d)
}

func (r *refusing) CreateBindGroup(p driver.PipelineID, b []driver.Binding) (driver.BindGroupID, error) {
	if err := r.refuse(); err != nil {
		return 0, err
	}
	return r.Device.CreateBindGroup(p, b)
}

func TestEveryObjectMayFail(t *testing.T) {
	t.Parallel()
	for n := int32(1); ; n++ {
		f := &refusing{at: n}
		r := memoryRig(t, drivertest.Config{}, options{}, func(d driver.Device) driver.Device { f.Device = d; return f })
		err := work(r)
		if err == nil {
			require.Greater(t, n, int32(15))
			t.Logf("each of %d pipelines and bind groups", n-1)
			return
		}
		require.ErrorIs(t, err, pass.ErrOutOfMemory, "object %d", n)
		require.NoError(t, work(r), "after object %d failed", n)
	}
}

// Running out of a budget in the middle leaves no more behind than before.
func TestBudget(t *testing.T) {
	t.Parallel()
	r := memoryRig(t, drivertest.Config{MemoryBudget: 32 << 20}, options{}, nil)
	require.NoError(t, work(r))
	s, err := r.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	before := r.fake.Ledger()
	_, err = s.Alloc(pass.F32, 9<<20)
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
	_, err = s.Alloc(pass.F32, 1<<40)
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
	_, err = s.Record(context.Background(), pass.RecordOptions{}, func(p pass.Pass) {
		x, y := p.Temp(pass.U32, 1<<20), p.Temp(pass.U32, 8<<20)
		p.Do(fillWith(x.View(), 5, 1), fillWith(y.View(), 5, 1), dense(x.View(), y.View(), 5))
	})
	require.ErrorIs(t, err, pass.ErrOutOfMemory)
	require.Equal(t, before, r.fake.Ledger())
	require.NoError(t, work(r))
}

// A canceller drops the work of one submission, as systems do that then report it
// finished.
type canceller struct {
	driver.Device
	at    int32
	count atomic.Int32
}

func (c *canceller) Submit(commands []driver.Command) (driver.Serial, error) {
	if c.count.Add(1) == c.at {
		commands = nil
	}
	return c.Device.Submit(commands)
}

// Whatever submission is cancelled, nobody gets stale data: a call fails, and so does
// every later one.
func TestEverySubmissionMayBeCancelled(t *testing.T) {
	t.Parallel()
	for n := int32(1); ; n++ {
		c := &canceller{at: n}
		r := memoryRig(t, drivertest.Config{}, options{}, func(d driver.Device) driver.Device { c.Device = d; return c })
		r.hw.rate = crawl
		err := work(r)
		if c.count.Load() < n {
			require.NoError(t, err)
			require.Greater(t, n, int32(12))
			t.Logf("each of %d submissions", n-1)
			return
		}
		if err == nil { // it uploaded what nothing used: constants of a program, or state
			t.Errorf("submission %d was cancelled and nobody noticed", n)
			continue
		}
		require.ErrorIs(t, err, pass.ErrDeviceLost, "submission %d", n)
		require.ErrorIs(t, work(r), pass.ErrDeviceLost, "it is sticky")
	}
}

// The second replay is the first one's commands over the first one's data: only the
// mark tells them apart.
func TestSecondReplayCancelled(t *testing.T) {
	t.Parallel()
	c := &canceller{}
	r := memoryRig(t, drivertest.Config{}, options{}, func(d driver.Device) driver.Device { c.Device = d; return c })
	start, rec := replay(t, r)
	require.NoError(t, start())
	c.at = c.count.Load() + 1
	err := start()
	require.ErrorIs(t, err, pass.ErrDeviceLost)
	require.ErrorContains(t, err, "did not run")
	require.NoError(t, rec.Close())
}

// replay records a few ops and returns a function that runs them.
func replay(t *testing.T, r *rig) (start func() error, rec pass.Recording) {
	ctx := context.Background()
	s, err := r.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	var out pass.Output
	rec, err = s.Record(ctx, pass.RecordOptions{Label: "replay"}, func(p pass.Pass) {
		x, y := p.Temp(pass.U32, 8), p.Temp(pass.U32, 8)
		p.Do(fillWith(x.View(), 8, 6), dense(x.View(), y.View(), 8))
		out = p.Output(y.View(), 8)
	})
	require.NoError(t, err)
	return func() error {
		run, err := rec.Run(ctx)
		if err != nil {
			return err
		}
		got := make([]uint32, 8)
		require.NoError(t, run.ReadU32(out, got))
		require.Equal(t, []uint32{6, 6, 6, 6, 6, 6, 6, 6}, got)
		run.Close()
		return nil
	}, rec
}

func TestMissingMark(t *testing.T) {
	t.Parallel()
	r := memoryRig(t, drivertest.Config{}, options{}, nil)
	start, _ := replay(t, r)
	require.NoError(t, start())
	r.fake.Inject(drivertest.Faults{SkipPipeline: "mark"})
	require.ErrorIs(t, start(), pass.ErrDeviceLost)
	r.fake.Inject(drivertest.Faults{})
	require.ErrorIs(t, start(), pass.ErrDeviceLost, "it is sticky")
	_, err := r.NewSession(pass.SessionConfig{})
	require.ErrorIs(t, err, pass.ErrDeviceLost)
}

func TestLostDevice(t *testing.T) {
	t.Parallel()
	for _, f := range []drivertest.Faults{{LoseAtSubmit: 1}, {LoseAtFinish: 1}} {
		r := memoryRig(t, drivertest.Config{}, options{}, nil)
		start, _ := replay(t, r)
		r.fake.Inject(f)
		require.ErrorIs(t, start(), pass.ErrDeviceLost)
		r.fake.Inject(drivertest.Faults{})
		require.ErrorIs(t, start(), pass.ErrDeviceLost)
		require.ErrorIs(t, work(r), pass.ErrDeviceLost)
		require.NoError(t, r.Close())
		r.left = driver.Ledger{} // nothing can be freed on a lost device; it is with the device
	}
}

func TestHang(t *testing.T) {
	t.Parallel()
	r := memoryRig(t, drivertest.Config{}, options{watchdog: 30 * time.Millisecond}, nil)
	r.hw.rate = crawl
	start, _ := replay(t, r)
	require.NoError(t, start())
	r.fake.Inject(drivertest.Faults{Hang: 2})
	err := start()
	require.ErrorIs(t, err, pass.ErrTimeout)
	require.ErrorContains(t, err, "part of pieces 1 to 1 (copy to copy)")
	require.ErrorIs(t, start(), pass.ErrTimeout, "what hangs blocks what comes after it")
	r.fake.Resume()
	require.NoError(t, start())
	require.NoError(t, work(r))
}

func TestFailedSubmit(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		r := memoryRig(t, drivertest.Config{Faults: drivertest.Faults{FailSubmit: n}}, options{}, nil)
		r.hw.rate = crawl
		err := work(r)
		if err == nil {
			require.Greater(t, n, 12)
			return
		}
		require.ErrorIs(t, err, pass.ErrInvalid, "submission %d", n)
		require.ErrorContains(t, err, "injected")
		require.NoError(t, work(r), "after submission %d failed", n)
	}
}

// The first asynchronous error explains what comes after it.
func TestLateErrorOutranksTimeout(t *testing.T) {
	t.Parallel()
	r := memoryRig(t, drivertest.Config{}, options{watchdog: 30 * time.Millisecond}, nil)
	r.hw.rate = crawl
	start, _ := replay(t, r)
	r.fake.Inject(drivertest.Faults{LateError: 1, Hang: 2})
	err := start()
	require.ErrorContains(t, err, "after submission")
	require.NotErrorIs(t, err, pass.ErrTimeout)
}

func TestStatusWord(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, r *rig) {
		r.hw.rate = crawl // the status of an early part must not be forgotten by a later one
		ctx := context.Background()
		s, err := r.NewSession(pass.SessionConfig{})
		require.NoError(t, err)
		var in pass.Input
		rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
			in = p.Input(pass.U32, 2)
			x := p.Temp(pass.U32, 2)
			p.Do(dense(in.View(), x.View(), 2), fillWith(x.View(), 2, 1), fillWith(x.View(), 2, 1))
			p.Output(x.View(), 2)
		})
		require.NoError(t, err)
		for range 2 {
			_, err = rec.Run(ctx, in.U32([]uint32{1, rigLimit + 1}))
			require.ErrorIs(t, err, pass.ErrInvalid)
			require.ErrorContains(t, err, "beyond its range")
			_, err = rec.Run(ctx, in.U32([]uint32{1, rigLimit}))
			require.NoError(t, err, "the next run starts afresh")
		}
	})
}
