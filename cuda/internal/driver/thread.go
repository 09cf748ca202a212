package driver

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/tandem-gpu/tandem/pass"
)

// A Thread is what the driver takes for one thread: the context that a call leaves
// current is current in the next, whatever goroutine makes it, and one call runs at a
// time. It has no goroutine or thread of its own, since waking one costs more than most
// calls of the driver: it lends the caller's thread its context and then puts back what
// was current there.
type Thread struct {
	d Driver

	mu      sync.Mutex
	current Context
	closed  bool
}

// NewThread returns a thread on which no context is current.
func NewThread(d Driver) *Thread { return &Thread{d: d} }

// Do runs f, which must not call Do, and returns its error. A panic in f becomes an
// error. It works, as far as the driver allows, when the context is lost. After Close it
// returns pass.ErrClosed.
func (t *Thread) Do(f func() error) (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return fmt.Errorf("driver: thread: %w", pass.ErrClosed)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := t.d.Current()
	if err != nil && !fatal(err) {
		return err
	}
	if before != t.current {
		if err := t.d.SetCurrent(t.current); err != nil && !fatal(err) {
			return err
		}
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("driver: thread: panic: %v", r)
		}
		if after, problem := t.d.Current(); problem == nil {
			t.current = after
		} else if err == nil && !fatal(problem) {
			err = problem
		}
		if before != t.current {
			if problem := t.d.SetCurrent(before); err == nil && problem != nil && !fatal(problem) {
				err = problem
			}
		}
	}()
	return f()
}

// fatal reports whether an error says that the context is lost, which no reason is to
// refuse work that gives things back.
func fatal(err error) bool {
	e, ok := err.(*Error)
	return ok && e.Fatal()
}

// Close waits for the call that is running. It may be called again, and on nil.
func (t *Thread) Close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
}
