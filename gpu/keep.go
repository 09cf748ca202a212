package gpu

import "github.com/tandem-gpu/tandem/pass/backend"

// keptWords is how many words the buffers of a launch may have that is kept with a program.
const keptWords = 1 << 16

// Rest implements backend.Keepable. Bind groups stay, and the buffers of one run, if they
// are small.
func (p *program) Rest() (kernels int, ok bool) {
	d := p.s.d
	if p.failed || d.drv.Err() != nil || len(p.fixed.fixed) > keptWords {
		return 0, false
	}
	p.current, p.commands = nil, nil
	stay := 0
	if len(p.launches) > 0 && max(len(p.launches[0].upHost), markWords+p.outputLen()) <= keptWords {
		stay = 1
	}
	for _, l := range p.launches[stay:] {
		l.free(d)
	}
	clear(p.launches[stay:])
	p.launches = p.launches[:stay]
	return len(p.dispatches), true
}

// Resume implements backend.Keepable. What the workspace has become meanwhile is bound.
func (p *program) Resume(plan *backend.Plan) bool {
	if p.s.d.drv.Err() != nil {
		return false
	}
	p.plan = plan
	return p.ready() == nil
}
