package idle

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errNone = errors.New("none")

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
	open := func(context.Context) (*session, error) { return nil, errNone }
	_, err := p.Take(t.Context(), open)
	require.ErrorIs(t, err, errNone)
	failing := errors.New("lost")
	a, b, c := &session{}, &session{err: failing}, &session{err: errors.New("one too many")}
	require.NoError(t, p.Give(a))
	require.NoError(t, p.Give(b))
	require.ErrorIs(t, p.Give(c), c.err)
	require.Equal(t, []int{0, 0, 1}, []int{a.closed, b.closed, c.closed})

	s, err := p.Take(t.Context(), open)
	require.NoError(t, err)
	require.Same(t, b, s)
	require.NoError(t, p.Close())
	require.Equal(t, 1, a.closed)
	require.ErrorIs(t, p.Give(s), failing, "given after the pool was closed")
	require.Equal(t, 1, b.closed)
	_, err = p.Take(t.Context(), open)
	require.ErrorIs(t, err, errNone)
	require.NoError(t, p.Close())
	require.Equal(t, 1, a.closed)
}

func TestPoolFromManyGoroutines(t *testing.T) {
	var all sync.Map
	p := Pool[*session]{Most: 3}
	open := func(context.Context) (*session, error) {
		s := &session{}
		all.Store(s, true)
		return s, nil
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 200 {
				closed, err := Use(t.Context(), &p, open, func(s *session) (int, error) { return s.closed, nil })
				assert.NoError(t, err)
				assert.Zero(t, closed)
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

func TestUse(t *testing.T) {
	opened, failing := 0, errors.New("failed")
	p := Pool[*session]{Most: 1}
	open := func(context.Context) (*session, error) {
		if opened++; opened > 1 {
			return nil, failing
		}
		return &session{}, nil
	}
	n, err := Use(t.Context(), &p, open, func(*session) (int, error) { return 3, nil })
	require.NoError(t, err)
	require.Equal(t, 3, n)
	// A session is used again, also after an error; within, there is none.
	_, err = Use(t.Context(), &p, open, func(*session) (int, error) {
		_, inner := Use(t.Context(), &p, open, func(*session) (int, error) { return 0, nil })
		require.ErrorIs(t, inner, failing)
		return 0, errNone
	})
	require.ErrorIs(t, err, errNone)
	require.Equal(t, 2, opened)
	n, err = Use(t.Context(), &p, open, func(s *session) (int, error) { return s.closed, nil })
	require.NoError(t, err)
	require.Zero(t, n)
}
