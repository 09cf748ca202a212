package gpu

import (
	"context"
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

// read copies words of m from word at on to the host, in pieces of a slot's size.
func (s *stream) read(ctx context.Context, m *memory, at int, data []uint32) error {
	if s.d.mapped {
		return s.d.drv.ReadMapped(ctx, m.id, 4*uint64(at), bytesOf(data), s.d.watchdog)
	}
	for len(data) > 0 {
		n := min(len(data), s.d.slotWords()-markWords)
		if err := s.fetch(ctx, m, at, data[:n]); err != nil {
			return err
		}
		at, data = at+n, data[n:]
	}
	return nil
}

// fetch reads through a staging buffer that the stream keeps.
func (s *stream) fetch(ctx context.Context, m *memory, at int, data []uint32) error {
	if s.fetchWords < markWords+len(data) {
		id, err := s.d.buffer("read", markWords+len(data), driver.MapRead|driver.CopyDst)
		if err != nil {
			return err
		}
		s.d.drop(s.fetchID)
		s.fetchID, s.fetchWords = id, markWords+len(data)
	}
	commands, err := s.timeline.markAfter(nil, m)
	if err != nil {
		return err
	}
	commands = append(commands,
		driver.Copy(s.fetchID, 4*markWords, m.id, 4*uint64(at), 4*uint64(len(data))),
		s.timeline.copyMark(s.fetchID))
	want, err := s.timeline.submit(commands, 1)
	if err != nil {
		return err
	}
	var words [markWords]uint32
	if err := s.d.drv.ReadMapped(ctx, s.fetchID, 0, bytesOf(words[:]), s.d.watchdog); err != nil {
		return err
	}
	if err := checkCount(words[:], want); err != nil {
		return err
	}
	return s.d.drv.ReadMapped(ctx, s.fetchID, 4*markWords, bytesOf(data), s.d.watchdog)
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
