// Package idle keeps sessions between the calls that need one each, since making one
// costs more than a short call.
package idle

import (
	"context"
	"errors"
	"io"
	"sync"
)

// A Pool keeps up to Most sessions that nobody uses. It may be used from any goroutine.
type Pool[S io.Closer] struct {
	Most int

	mu     sync.Mutex
	kept   []S
	closed bool
}

// Use calls f with a session of its own, which is opened if none is idle, and left to the
// pool afterwards.
func Use[S io.Closer, R any](ctx context.Context, p *Pool[S], open func(context.Context) (S, error), f func(S) (R, error)) (R, error) {
	s, err := p.Take(ctx, open)
	if err != nil {
		var none R
		return none, err
	}
	r, err := f(s)
	return r, errors.Join(err, p.Give(s))
}

// Take returns the session that was given last, or else opens one. It is the caller's.
func (p *Pool[S]) Take(ctx context.Context, open func(context.Context) (S, error)) (S, error) {
	if s, ok := p.last(); ok {
		return s, nil
	}
	return open(ctx)
}

func (p *Pool[S]) last() (s S, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.kept)
	if n == 0 {
		return s, false
	}
	s = p.kept[n-1]
	p.kept = p.kept[:n-1]
	return s, true
}

// Give leaves a session to the pool, which closes it if it has enough or is closed.
func (p *Pool[S]) Give(s S) error {
	p.mu.Lock()
	keep := !p.closed && len(p.kept) < p.Most
	if keep {
		p.kept = append(p.kept, s)
	}
	p.mu.Unlock()
	if keep {
		return nil
	}
	return s.Close()
}

// Close closes what the pool keeps, and whatever is given from now on.
func (p *Pool[S]) Close() error {
	p.mu.Lock()
	kept := p.kept
	p.kept, p.closed = nil, true
	p.mu.Unlock()
	var errs []error
	for _, s := range kept {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
