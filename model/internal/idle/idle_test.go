package idle

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

type session struct {
	closed int
	err    error
}

func (s *session) Close() error {
	s.closed++
	return s.err
}

func TestPool(t *testing.T) {
	p := Pool[*session]{Most: 2}
	_, ok := p.Take()
	require.False(t, ok)
	failing := errors.New("lost")
	a, b, c := &session{}, &session{err: failing}, &session{err: errors.New("one too many")}
	require.NoError(t, p.Give(a))
	require.NoError(t, p.Give(b))
	require.ErrorIs(t, p.Give(c), c.err)
	require.Equal(t, []int{0, 0, 1}, []int{a.closed, b.closed, c.closed})

	s, ok := p.Take()
	require.True(t, ok)
	require.Same(t, b, s)
	require.NoError(t, p.Close())
	require.Equal(t, 1, a.closed)
	require.ErrorIs(t, p.Give(s), failing, "given after the pool was closed")
	require.Equal(t, 1, b.closed)
	_, ok = p.Take()
	require.False(t, ok)
	require.NoError(t, p.Close())
	require.Equal(t, 1, a.closed)
}

func TestPoolFromManyGoroutines(t *testing.T) {
	p := Pool[*session]{Most: 3}
	var all sync.Map
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 200 {
				s, ok := p.Take()
				if !ok {
					s = &session{}
					all.Store(s, true)
				}
				require.Zero(t, s.closed)
				p.Give(s)
			}
		}()
	}
	wg.Wait()
	require.NoError(t, p.Close())
	all.Range(func(s, _ any) bool {
		require.Equal(t, 1, s.(*session).closed)
		return true
	})
}
