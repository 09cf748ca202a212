package kernel

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

// The samples of a check are the corners and the middle.
func TestSample(t *testing.T) {
	t.Parallel()
	buffer := pass.MakeBuffer(pass.Ref{Device: 1, Session: 1, ID: 1, Generation: 1}, pass.F32, 1000)
	other := pass.MakeBuffer(pass.Ref{Device: 1, Session: 1, ID: 2, Generation: 1}, pass.F32, 1000)
	op, err := pass.Check(pass.Map{X: buffer.View(), Y: other.View(), Batch: 2, Rows: 9, Cols: 10})
	require.NoError(t, err)
	parts, err := sample(op)
	require.NoError(t, err)
	var at []int
	for _, p := range parts {
		at = append(at, p.Args[0].View.Offset)
	}
	require.Equal(t, []int{0, 40, 80, 90, 130, 170}, at)
}

// A bound leaves the last samples, one at least.
func TestWithin(t *testing.T) {
	t.Parallel()
	part := func(flop float64) pass.Checked { return pass.Checked{Cost: pass.Cost{FLOP: flop}} }
	parts := []pass.Checked{part(1), part(2), part(3)}
	require.Equal(t, parts, within(parts, 0))
	require.Equal(t, []pass.Checked{part(3), part(2)}, within(parts, 5))
	require.Equal(t, []pass.Checked{part(3)}, within(parts, 2))
}

// What the first recording leaves in the outputs does not pass for the result of the next.
func TestOutputsAreReset(t *testing.T) {
	t.Parallel()
	dev, err := cpu.Open(cpu.Config{})
	require.NoError(t, err)
	defer dev.Close()
	j, err := Gemm(4, 8, 8, pass.F32).Job()
	require.NoError(t, err)
	k, err := j.On(t.Context(), dev)
	require.NoError(t, err)
	defer k.Close()
	timed, err := k.Record(t.Context(), pass.Exact)
	require.NoError(t, err)
	require.Equal(t, 1, timed.Ops)
	require.Positive(t, timed.L2)
	require.Less(t, timed.L2, timed.Limit.L2)

	require.NoError(t, k.reset(t.Context()))
	got := make([]float32, j.size["C"])
	require.NoError(t, k.session.Read(t.Context(), k.buffers["C"].View(), got))
	require.True(t, math.IsNaN(float64(got[0])) && math.IsNaN(float64(got[len(got)-1])))
	gemm := k.op.Op.(pass.Gemm)
	gemm.Rows-- // the last row is not computed now
	k.op.Op = gemm
	_, err = k.Record(t.Context(), pass.Exact)
	require.ErrorIs(t, err, ErrWrong)
}

// A sleeper is a session whose runs take 50 µs for each op, in the clock of a bubble.
type sleeper struct{ pass.Session }

type sleepingRecording struct {
	pass.Recording
	takes time.Duration
}

type countingPass struct {
	pass.Pass
	ops *int
}

func (p countingPass) Do(ops ...pass.Op) {
	*p.ops += len(ops)
	p.Pass.Do(ops...)
}

func (s sleeper) Record(ctx context.Context, opt pass.RecordOptions, f func(pass.Pass)) (pass.Recording, error) {
	ops := 0
	rec, err := s.Session.Record(ctx, opt, func(p pass.Pass) { f(countingPass{p, &ops}) })
	return sleepingRecording{rec, time.Duration(ops) * 50 * time.Microsecond}, err
}

func (r sleepingRecording) Start(ctx context.Context, binds ...pass.Bind) (pass.Run, error) {
	time.Sleep(r.takes)
	return r.Recording.Start(ctx, binds...)
}

func (r sleepingRecording) Run(ctx context.Context, binds ...pass.Bind) (pass.Run, error) {
	time.Sleep(r.takes)
	return r.Recording.Run(ctx, binds...)
}

func TestRepeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dev, err := cpu.Open(cpu.Config{Threads: 1})
		require.NoError(t, err)
		defer dev.Close()
		j, err := Gemm(1, 8, 8, pass.F32).Job()
		require.NoError(t, err)
		k, err := j.On(t.Context(), dev)
		require.NoError(t, err)
		defer k.Close()
		k.session = sleeper{k.session}
		timed, err := k.Record(t.Context(), pass.Exact)
		require.NoError(t, err)
		timed.First = 2 * time.Second // of a slow device
		require.NoError(t, timed.Repeat(t.Context(), time.Millisecond))
		require.Equal(t, 1, timed.Ops)
		timed.First = 500 * time.Millisecond // something was loaded
		require.NoError(t, timed.Repeat(t.Context(), time.Millisecond))
		require.Equal(t, 24, timed.Ops) // 50 µs each, and a fifth more
		took, err := timed.Several(t.Context(), 3)
		require.NoError(t, err)
		require.Equal(t, 24*50*time.Microsecond, took)
		require.NoError(t, timed.Close())
		require.NoError(t, timed.Close())
	})
}

// Rows of an image that is narrowed around them are those of the whole.
func TestNarrow(t *testing.T) {
	t.Parallel()
	for _, time := range []int{1, 6, 29, 30, 31, 32} {
		j, err := FirstDepthwise(time, 8, 2).Job()
		require.NoError(t, err)
		place := func(id uint32) pass.View {
			return pass.MakeBuffer(pass.Ref{Device: 1, Session: 1, ID: id, Generation: 1}, pass.F32, 1<<20).View()
		}
		shape, err := j.c.Params[0].Weights.Shape()
		require.NoError(t, err)
		w := pass.MakeParam(pass.Ref{Device: 1, ID: 1, Generation: 1}, shape)
		whole, err := pass.Check(pass.DepthwiseConv2D{X: place(1), Y: place(2), W: w, Time: time, Frequency: 8})
		require.NoError(t, err)
		all, err := j.truth(-1, whole)
		require.NoError(t, err)
		rows := whole.Op.(pass.DepthwiseConv2D).Out.Len()
		cols := len(all[0].Words) / rows
		for r := range rows {
			part, err := pass.Part(whole, pass.AxisRows, r, r+1)
			require.NoError(t, err)
			part, err = narrow(part)
			require.NoError(t, err)
			require.LessOrEqual(t, part.Op.(pass.DepthwiseConv2D).Time, 16)
			got, err := j.truth(r, part)
			require.NoError(t, err)
			require.Equal(t, all[0].Words[r*cols:][:cols], got[0].Words, "%d of %d", r, rows)
		}
	}
}
