package cuda

import (
	"bytes"
	"errors"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// A stream keeps this many programs of recordings that were closed, of as many kernels
// together, for recordings that are the same: making graphs takes longer than recording.
const (
	keptPrograms = 4
	keptKernels  = 8192
)

// again returns a program that was kept and does what a plan says, if there is one.
func (s *stream) again(plan *backend.Plan, key []byte, version int) *program {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.kept {
		if p.version != version || !bytes.Equal(p.key, key) {
			continue
		}
		s.kept = append(s.kept[:i:i], s.kept[i+1:]...)
		if p.generation != s.arena.generation || s.arena.grow(uint64(p.bytes)) != nil {
			p.drop()
			return nil
		}
		p.plan, p.counted = plan, true
		s.programs++
		return p
	}
	return nil
}

// keep takes a program whose recording is closed, if it may serve another one.
func (s *stream) keep(p *program) bool {
	if p.key == nil || p.failed != 0 || len(p.launches) > keptKernels || s.d.trace != nil || s.d.gone() != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.generation != s.arena.generation || len(p.segments) == 0 {
		return false
	}
	s.kept = append(s.kept, p)
	kernels := 0
	for i := len(s.kept) - 1; i >= 0; i-- { // the latest stay
		kernels += len(s.kept[i].launches)
		if len(s.kept)-i > keptPrograms || kernels > keptKernels {
			for _, old := range s.kept[:i+1] {
				old.drop()
			}
			s.kept = append([]*program(nil), s.kept[i+1:]...)
			break
		}
	}
	return true
}

// forget gives up the programs that are kept, and reports whether there were any.
func (s *stream) forget() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.kept {
		p.drop()
	}
	some := len(s.kept) > 0
	s.kept = nil
	return some
}

// scarce reports whether to try again, since memory was short and programs have been given
// up.
func (s *stream) scarce(err error) bool {
	return errors.Is(err, pass.ErrOutOfMemory) && s.d.gone() == nil && s.forget()
}
