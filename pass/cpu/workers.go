package cpu

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tandem-gpu/tandem/pass"
)

// A pool is the threads of a device. A stream holds one token while it computes, and a
// worker that helps it another, so that no more than size threads compute at once.
type pool struct {
	size    int
	tokens  chan struct{}
	idle    chan *worker
	workers []*worker
}

// A worker is a goroutine that helps teams.
type worker struct{ in chan assignment }

type assignment struct {
	team *team
	slot int
}

func newPool(size int) *pool {
	p := &pool{size: size, tokens: make(chan struct{}, size), idle: make(chan *worker, size)}
	for range size - 1 {
		w := &worker{in: make(chan assignment, 1)}
		p.workers = append(p.workers, w)
		p.idle <- w
		go p.serve(w)
	}
	return p
}

func (p *pool) serve(w *worker) {
	for a := range w.in {
		a.team.loop(a.slot)
		// Idle before done: the team's next step finds the worker again.
		<-p.tokens
		p.idle <- w
		a.team.helpers.Done()
	}
}

// close ends the workers. No team computes.
func (p *pool) close() {
	for _, w := range p.workers {
		close(w.in)
	}
}

// hire returns an idle worker and takes a token for it, if there are both.
func (p *pool) hire() *worker {
	select {
	case p.tokens <- struct{}{}:
	default:
		return nil
	}
	select {
	case w := <-p.idle:
		return w
	default:
		<-p.tokens
		return nil
	}
}

// Tasks are independent of each other and may be done in any order, at once.
type tasks interface {
	// task does one of them. No two that run at once have the same slot, which is less
	// than the size of the pool.
	task(i, slot int)
}

// A team is a stream with the workers that help it with a step. Its fields are those
// of the tasks in hand.
type team struct {
	pool    *pool
	scratch []float32 // for the kernels of the stream, undefined between steps

	tasks   tasks
	n       int64
	next    atomic.Int64
	helpers sync.WaitGroup
	failure atomic.Pointer[error]
}

// Work that takes less than about 50 µs is not worth waking a worker.
const worthSharing = 0.5e6 // FLOP

// do does n tasks, with the help of workers if wanted. It allocates nothing. A panic
// in a task is an error.
func (t *team) do(n int, share bool, work tasks) error {
	if !share || n == 1 || t.pool.size == 1 {
		for i := range n {
			work.task(i, 0)
		}
		return nil
	}
	t.tasks, t.n = work, int64(n)
	t.next.Store(0)
	for slot := 1; slot < min(n, t.pool.size); slot++ {
		w := t.pool.hire()
		if w == nil {
			break
		}
		t.helpers.Add(1)
		w.in <- assignment{t, slot}
	}
	t.loop(0)
	t.helpers.Wait()
	t.tasks = nil
	if err := t.failure.Swap(nil); err != nil {
		return *err
	}
	return nil
}

func (t *team) loop(slot int) {
	defer func() {
		if p := recover(); p != nil {
			t.next.Store(t.n) // the others may stop
			err := panicError(p)
			t.failure.CompareAndSwap(nil, &err)
		}
	}()
	for {
		i := t.next.Add(1) - 1
		if i >= t.n {
			return
		}
		t.tasks.task(int(i), slot)
	}
}

// panicError is what becomes of a panic in a kernel.
func panicError(p any) error { return fmt.Errorf("panic in a kernel: %v: %w", p, pass.ErrInvalid) }
