package backend

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

// filled records ops that each copy what the one before has written.
func filled(t *testing.T, ses pass.Session, ops int) *recording {
	t.Helper()
	rec, err := ses.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
		x := p.Temp(pass.F32, 4).View()
		p.Do(pass.Fill{To: x, Rows: 1, Cols: 4})
		for range ops - 1 {
			y := p.Temp(pass.F32, 4).View()
			p.Do(pass.Copy{From: x, To: y, Rows: 1, Cols: 4})
			x = y
		}
		p.Output(x, 4)
	})
	require.NoError(t, err)
	plan := rec.(*recording).plan
	require.Len(t, plan.Steps, ops)
	require.Len(t, plan.Temps, ops)
	for i, temp := range plan.Temps {
		require.Equal(t, Temp{Type: pass.F32, Len: 4, First: i, Last: i + 1}, temp)
		want, err := pass.Check(plan.Steps[i].Op)
		require.NoError(t, err)
		require.Equal(t, want, plan.Steps[i])
	}
	return rec.(*recording)
}

// at returns where the ops of a recording are.
func at(rec *recording) *pass.Checked { return &rec.plan.Steps[0] }

// Room for a recording is that of one that was closed; a small one does not hold that of a
// large one, and whatever the room of others becomes, the ops of one that is open stay.
func TestRecordingsAfterOthers(t *testing.T) {
	t.Parallel()
	_, ses := open(t, newFake(), pass.SessionConfig{})
	first := filled(t, ses, 100)
	room := at(first)
	require.NoError(t, first.Close())
	same := filled(t, ses, 100)
	require.Same(t, room, at(same))
	other := filled(t, ses, 100)
	require.NotSame(t, room, at(other))
	require.NoError(t, same.Close())
	small := filled(t, ses, 3)
	require.NotSame(t, room, at(small))
	require.LessOrEqual(t, cap(small.plan.Steps), 6)
	again := filled(t, ses, 101)
	require.NoError(t, again.Close())
	filled(t, ses, 90)
	for i, rec := range []*recording{other, small} {
		for _, step := range rec.plan.Steps {
			want, err := pass.Check(step.Op)
			require.NoError(t, err)
			require.Equal(t, want, step, i)
		}
	}
}

// The memory of a plan that was described is nobody else's, since who described it may be at
// it yet; nor is that of a recording with a mistake lost.
func TestRoomOfOddRecordings(t *testing.T) {
	t.Parallel()
	_, ses := open(t, newFake(), pass.SessionConfig{})
	told := filled(t, ses, 100)
	room := at(told)
	require.NoError(t, told.Dump(io.Discard))
	require.NoError(t, told.Close())
	require.ErrorIs(t, told.Dump(io.Discard), pass.ErrClosed)
	next := filled(t, ses, 100)
	require.NotSame(t, room, at(next))
	room = at(next)
	require.NoError(t, next.Close())
	_, err := ses.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) { p.Do(pass.Fill{}) })
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.Same(t, room, at(filled(t, ses, 100)))
}

// What is recorded again and again leaves nothing behind but what the caller makes, for each
// op the op and the list that Do is given, and the op as it was checked.
func TestRecordingAgainAllocates(t *testing.T) {
	_, _, ses := keeping(t)
	const ops = 500
	again := func() {
		rec, err := ses.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
			x := p.Temp(pass.F32, 4).View()
			for range ops {
				p.Do(pass.Fill{To: x, Rows: 1, Cols: 4})
			}
		})
		if err == nil {
			err = rec.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}
	require.Less(t, testing.AllocsPerRun(20, again), 3.0*ops+50)
}
