package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// stream is the queue of one session.
type stream struct {
	d     *device
	queue driver.Stream
	marks marks

	mu       sync.Mutex
	arena    *arena
	programs int
	inFlight atomic.Int32 // parts
	adrift   atomic.Bool  // a part was given up, of which work may be under way
	calming  sync.Mutex   // of quiet
}

func newStream(d *device, cfg pass.SessionConfig) (*stream, error) {
	s := &stream{d: d}
	err := d.do(func() error {
		least, greatest, err := d.drv.PriorityRange()
		if err != nil {
			return err
		}
		priority := least
		if cfg.Latency == pass.Interactive {
			priority = greatest
		}
		s.queue, err = d.drv.CreateStream(priority)
		return err
	})
	if err != nil {
		return nil, err
	}
	if s.arena, err = newArena(d); err != nil {
		d.do(func() error { return d.drv.DestroyStream(s.queue) })
		return nil, err
	}
	return s, nil
}

// Alloc implements backend.Stream.
func (s *stream) Alloc(_ pass.DType, n int) (backend.Memory, error) {
	m, err := s.d.zero("state", 4*n)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// NewCache implements backend.Stream.
func (s *stream) NewCache(cfg pass.CacheConfig) (backend.Memory, error) {
	if err := s.d.gone(); err != nil {
		return nil, err
	}
	return newCache(s.d, cfg)
}

// Write implements backend.Stream. Transfers have a queue of their own: work of a run that
// was given up must not come after what fills its state again.
func (s *stream) Write(ctx context.Context, m backend.Memory, offset int, data []uint32) error {
	if err := s.quiet(); err != nil {
		return err
	}
	b := bytesOf(data)
	next := func(dst []byte, from int) error { copy(dst, b[from:]); return nil }
	return s.d.fill(ctx, m.(*memory), 4*offset, next, len(b))
}

// Read implements backend.Stream.
func (s *stream) Read(ctx context.Context, m backend.Memory, offset int, data []uint32) error {
	if err := s.quiet(); err != nil {
		return err
	}
	return s.d.fetch(ctx, bytesOf(data), m.(*memory), 4*offset)
}

// Compile implements backend.Stream.
func (s *stream) Compile(ctx context.Context, plan *backend.Plan) (backend.Program, error) {
	if err := s.d.gone(); err != nil {
		return nil, err
	}
	p := &program{s: s, plan: plan, due: s.d.patience, version: s.d.choices.version()}
	done := false
	defer func() {
		if !done { // with an error, or a panic
			p.Free()
		}
	}()
	if err := p.compile(ctx); err != nil {
		return nil, err
	}
	done = true
	return p, nil
}

// quiet waits for work that was given up, which may still use memory and graphs.
func (s *stream) quiet() error {
	s.calming.Lock() // who comes second waits as well
	defer s.calming.Unlock()
	if !s.adrift.Swap(false) || s.d.gone() != nil {
		return nil
	}
	if err := s.d.settle(s.queue, s.d.watchdog); err != nil {
		s.adrift.Store(true)
		return fmt.Errorf("work that was given up: %w", err)
	}
	return nil
}

// hush is quiet before memory and graphs go. What does not end is left to the driver, which
// waits for it where it must.
func (s *stream) hush() {
	if err := s.quiet(); err != nil && s.d.gone() == nil {
		s.d.log.Warn("cuda: close", "error", err)
	}
}

// keptBytes is how large a workspace is kept for the next recording, since mapping memory
// takes longer than recording.
const keptBytes = 64 << 20

// leave takes a program off the count; when the last one is gone, so is the memory.
func (s *stream) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.programs--; s.programs > 0 || s.inFlight.Load() > 0 || s.arena.bytes <= keptBytes {
		return
	}
	if err := s.arena.empty(); err != nil && s.d.gone() == nil {
		s.d.log.Warn("cuda: workspace", "error", err)
	}
}

// Close implements backend.Stream.
func (s *stream) Close() error {
	s.hush()
	s.mu.Lock()
	defer s.mu.Unlock()
	err := errors.Join(
		s.arena.close(),
		s.d.do(func() error {
			s.marks.free(s.d.drv)
			return s.d.drv.DestroyStream(s.queue)
		}))
	if err != nil && s.d.gone() == nil {
		return fmt.Errorf("stream: %w", err)
	}
	return nil
}
