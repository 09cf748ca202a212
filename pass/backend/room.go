package backend

import (
	"slices"

	"github.com/tandem-gpu/tandem/pass"
)

// A room is the memory of a recording: of its ops, of what checking them has found, and of
// its temporaries. A session gives it to one recording after another, so that what is
// recorded again and again leaves little to collect.
type room struct {
	steps   []pass.Checked
	temps   []Temp
	handles []temp
	checker pass.Checker
}

// A size is how much a recording has. The next one of a session is often as large: where
// there is no room of an earlier one, room for so much is made at once, since growing takes
// as long as checking.
type size struct{ steps, temps int }

func newRoom(like size) *room {
	return &room{
		steps:   make([]pass.Checked, 0, like.steps),
		temps:   make([]Temp, 0, like.temps),
		handles: make([]temp, 0, like.temps),
	}
}

// lodge returns room for a recording.
func (s *session) lodge() *room {
	s.mu.Lock()
	r, like := s.spare, s.size
	s.spare = nil
	s.mu.Unlock()
	if r == nil {
		return newRoom(like)
	}
	r.checker.Reset()
	return r
}

// vacate takes room back that nobody uses any more. A session keeps that of one recording,
// the largest, unless its program would be too large to keep.
func (s *session) vacate(r *room) {
	if r == nil || cap(r.steps) > KeptKernels {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed.Load() && (s.spare == nil || cap(s.spare.steps) < cap(r.steps)) {
		s.spare = r
	}
}

// settle puts what was recorded into its room, or, if it is small, beside it, so that a small
// recording does not hold the room of a large one.
func (p *Plan) settle(r *room) (stays bool) {
	r.steps, r.temps = p.Steps[:0], p.Temps[:0]
	if len(p.Steps) >= cap(p.Steps)/2 {
		return true
	}
	p.Steps, p.Temps = slices.Clone(p.Steps), slices.Clone(p.Temps)
	for i := range p.Steps {
		p.Steps[i] = p.Steps[i].Clone()
	}
	return false
}
