package cpu

import (
	"context"
	"fmt"
	"sync"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// A stream computes for one session, on the goroutine that submits.
type stream struct {
	h    *hardware
	team team

	mu       sync.Mutex
	arena    *memory // temporaries and scratch of the largest program, for all of them
	programs int
}

// Alloc implements backend.Stream.
func (s *stream) Alloc(_ pass.DType, n int) (backend.Memory, error) {
	m, err := newMemory(&s.h.ledger, n)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Write implements backend.Stream.
func (s *stream) Write(_ context.Context, m backend.Memory, offset int, data []uint32) error {
	copy(m.(*memory).words[offset:], data)
	return nil
}

// Read implements backend.Stream.
func (s *stream) Read(_ context.Context, m backend.Memory, offset int, data []uint32) error {
	copy(data, m.(*memory).words[offset:])
	return nil
}

// Compile implements backend.Stream.
func (s *stream) Compile(ctx context.Context, plan *backend.Plan) (backend.Program, error) {
	const align = 16 // elements: a cache line
	offsets, length := plan.Pack(align)
	p := &program{stream: s, plan: plan, offsets: offsets, temps: make([]memory, len(plan.Temps))}
	for i, op := range plan.Steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := p.compile(i, op); err != nil {
			return nil, fmt.Errorf("op %d: %w", i, err)
		}
	}
	if len(p.pieces) == 0 {
		p.costs = []pass.Cost{{}} // a program has at least one piece
	}
	p.scratchAt = (length + align - 1) / align * align
	if err := s.join(p.scratchAt + p.scratch); err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	return p, nil
}

// join counts a program and makes the arena large enough for it. A program that runs
// meanwhile stays in the arena in which it began.
func (s *stream) join(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.arena == nil || n > len(s.arena.words) {
		m, err := newMemory(&s.h.ledger, n)
		if err != nil {
			return err
		}
		s.drop()
		s.arena = m
	}
	s.programs++
	return nil
}

// leave undoes join.
func (s *stream) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.programs--; s.programs == 0 {
		s.drop()
	}
}

// drop gives up the arena. Its elements stay with the program that runs in it.
func (s *stream) drop() {
	if s.arena != nil {
		s.arena.Free()
		s.arena = nil
	}
}

// workspace returns the elements of the arena.
func (s *stream) workspace() []uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arena.words
}

// Close implements backend.Stream.
func (s *stream) Close() error { return nil }
