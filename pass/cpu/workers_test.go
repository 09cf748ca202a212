package cpu

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

type taskFunc func(i, slot int)

func (f taskFunc) task(i, slot int) { f(i, slot) }

func TestTeamDoesEveryTaskOnce(t *testing.T) {
	t.Parallel()
	p := newPool(3)
	defer p.close()
	p.tokens <- struct{}{} // the team's own
	team := team{pool: p}
	for range 200 {
		var done [57]atomic.Int32
		var busy [3]atomic.Int32
		require.NoError(t, team.do(len(done), true, taskFunc(func(i, slot int) {
			if busy[slot].Add(1) != 1 {
				t.Error("two tasks at once in a slot")
			}
			done[i].Add(1)
			busy[slot].Add(-1)
		})))
		for i := range done {
			require.EqualValues(t, 1, done[i].Load())
		}
	}
	require.Len(t, p.tokens, 1, "workers give their tokens back")
}

// Two teams on two threads: each has its own, and there is none left for a worker.
func TestPoolBoundsThreads(t *testing.T) {
	t.Parallel()
	p := newPool(2)
	defer p.close()
	p.tokens <- struct{}{}
	p.tokens <- struct{}{}
	require.Nil(t, p.hire())
	<-p.tokens
	w := p.hire()
	require.NotNil(t, w)
	require.Len(t, p.tokens, 2)
	<-p.tokens
	p.idle <- w
}

func TestPanicInATaskIsAnError(t *testing.T) {
	t.Parallel()
	p := newPool(4)
	defer p.close()
	p.tokens <- struct{}{}
	team := team{pool: p}
	for _, bad := range []int{0, 1, 50, 99} {
		err := team.do(100, true, taskFunc(func(i, _ int) {
			if i == bad {
				panic(errors.New("boom"))
			}
		}))
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, "boom")
		require.NoError(t, team.do(100, true, taskFunc(func(int, int) {})), "the team stays usable")
	}
	require.Len(t, p.tokens, 1)
}
