package cuda

import "github.com/tandem-gpu/tandem/pass/backend"

// Rest implements backend.Keepable. Graphs serve the next recording that is the same where
// the workspace is.
func (p *program) Rest() (kernels int, ok bool) {
	p.quit()
	s := p.s
	if p.failed != 0 || s.d.trace != nil || s.d.gone() != nil {
		return 0, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(p.launches), p.generation == s.arena.generation && len(p.segments) > 0
}

// Resume implements backend.Keepable: unless ways to compute were chosen anew, or the
// workspace has moved.
func (p *program) Resume(plan *backend.Plan) bool {
	s := p.s
	if s.d.gone() != nil || p.version != s.d.choices.version() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.generation != s.arena.generation || s.arena.grow(uint64(p.bytes)) != nil {
		return false
	}
	p.plan, p.counted = plan, true
	s.programs++
	return true
}
