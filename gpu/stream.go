package gpu

import (
	"context"
	"fmt"
	"sync"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// stream is the queue of one session. All its recordings share one workspace.
type stream struct {
	d        *device
	label    string
	timeline *timeline

	fetchID    driver.BufferID // see fetch
	fetchWords int
	tickets    []*ticket // that nobody waits with

	mu        sync.Mutex
	workspace workspace
}

// Alloc implements backend.Stream.
func (s *stream) Alloc(_ pass.DType, n int) (backend.Memory, error) {
	m, err := s.d.alloc("state", n)
	if err != nil {
		return nil, s.d.first(err)
	}
	return m, nil
}

// Write implements backend.Stream.
func (s *stream) Write(ctx context.Context, m backend.Memory, offset int, data []uint32) error {
	u := newUpload(s.d, s.timeline)
	defer u.close()
	if err := u.write(ctx, m.(*memory), offset, data); err != nil {
		return s.d.first(err)
	}
	return s.d.first(u.flush(ctx))
}

// Read implements backend.Stream.
func (s *stream) Read(ctx context.Context, m backend.Memory, offset int, data []uint32) error {
	return s.d.first(s.read(ctx, m.(*memory), offset, data))
}

// Close implements backend.Stream.
func (s *stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workspace.free()
	for _, t := range s.tickets {
		s.d.drop(t.own)
	}
	s.d.drop(s.fetchID)
	s.timeline.free()
	return nil
}

// A workspace is the buffers in which the temporaries of all recordings of a stream
// lie, one recording at a time. It grows to the largest of them.
type workspace struct {
	buffers    []*memory
	generation int       // of buffers: counts how often it grew
	open       bool      // a run is between its first part and its last
	retired    []*memory // replaced, but a run that is open may use them
}

// grow makes the workspace have buffers of at least the given words, and no more
// memory than it must hold meanwhile.
func (w *workspace) grow(d *device, words []int) error {
	buffers := make([]*memory, max(len(words), len(w.buffers)))
	copy(buffers, w.buffers)
	var made, replaced []*memory
	for i, n := range words {
		if buffers[i] != nil && buffers[i].words >= n {
			continue
		}
		m, err := d.alloc(fmt.Sprintf("workspace %d", i), n)
		if err != nil {
			for _, m := range made {
				m.Free()
			}
			return err
		}
		if buffers[i] != nil {
			replaced = append(replaced, buffers[i])
		}
		made = append(made, m)
		buffers[i] = m
	}
	if made == nil {
		return nil
	}
	w.buffers = buffers
	w.generation++
	w.retired = append(w.retired, replaced...)
	if !w.open {
		w.sweep()
	}
	return nil
}

// sweep frees what was replaced. Work that was submitted keeps what it uses.
func (w *workspace) sweep() {
	for _, m := range w.retired {
		m.Free()
	}
	w.retired = w.retired[:0]
}

func (w *workspace) free() {
	w.sweep()
	for _, m := range w.buffers {
		m.Free()
	}
	w.buffers = nil
}

// bytes returns the size of the workspace.
func (w *workspace) bytes() int {
	n := 0
	for _, m := range w.buffers {
		n += 4 * m.words
	}
	return n
}

// Compile implements backend.Stream.
func (s *stream) Compile(ctx context.Context, plan *backend.Plan) (backend.Program, error) {
	c := &compiler{
		kernels: s.d.kernels, limits: s.d.limits, plan: plan,
		budget: dispatchSeconds * s.d.rate.FLOP, state: s.timeline.state,
		stop: func() error { return context.Cause(ctx) },
	}
	if err := s.d.compile(c); err != nil {
		return nil, s.d.first(err)
	}
	p := newProgram(s, c)
	if err := p.prepare(ctx); err != nil {
		p.Free()
		return nil, s.d.first(err)
	}
	return p, nil
}
