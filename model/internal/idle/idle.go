// Package idle keeps sessions between the calls that need one each, since making one
// costs more than a short call.
package idle

import (
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

// Take returns the session that was given last, if there is one, which is the caller's then.
func (p *Pool[S]) Take() (s S, ok bool) {
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
