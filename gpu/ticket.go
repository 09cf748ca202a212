package gpu

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// Submit implements backend.Program.
func (p *program) Submit(job *backend.Job, from, to int) (backend.Ticket, error) {
	t, err := p.submit(job, from, to)
	if err != nil {
		return nil, p.s.d.first(err)
	}
	return t, nil
}

func (p *program) submit(job *backend.Job, from, to int) (*ticket, error) {
	s := p.s
	if from == 0 {
		l, err := p.begin(job)
		if err != nil {
			return nil, err
		}
		p.current = l
	}
	l, last := p.current, to == len(p.pieces)
	t, err := s.takeTicket()
	if err != nil {
		return nil, err
	}
	c := p.commands[:0]
	if from == 0 {
		c = p.bringInputs(l, c)
	}
	n := len(p.run)
	c = append(c, p.run[min(from, n):min(to, n)]...)
	c = append(c, p.marks...)
	t.from = t.own
	if last {
		c = p.fetchOutputs(l, c)
		t.from = l.down
	}
	c = append(c, s.timeline.copyMark(t.from))
	p.commands = c
	count, err := s.timeline.submit(c, len(p.marks))
	if err != nil {
		s.tickets = append(s.tickets, t)
		return nil, err
	}
	if last {
		s.mu.Lock()
		s.workspace.open = false
		s.mu.Unlock()
	}
	l.inFlight++
	t.program, t.job, t.launch, t.serial, t.count, t.first, t.end = p, job, l, job.Serial, count, from, to
	return t, nil
}

// A ticket waits for a part.
type ticket struct {
	own  driver.BufferID // holds the mark of a part that is not the last
	from driver.BufferID // where this part's mark is read from

	program    *program
	job        *backend.Job
	launch     *launch
	serial     uint64
	count      uint32
	first, end int // pieces
}

// takeTicket returns a ticket that nobody waits with.
func (s *stream) takeTicket() (*ticket, error) {
	if n := len(s.tickets); n > 0 {
		t := s.tickets[n-1]
		s.tickets = s.tickets[:n-1]
		return t, nil
	}
	id, err := s.timeline.take()
	if err != nil {
		return nil, err
	}
	return &ticket{own: id}, nil
}

// Wait implements backend.Ticket.
func (t *ticket) Wait() error {
	p := t.program
	err := t.wait()
	if err != nil {
		p.failed = true
		err = fmt.Errorf("%s: %w", t, p.s.d.first(err))
	}
	t.launch.inFlight--
	t.program, t.job, t.launch = nil, nil, nil
	p.s.tickets = append(p.s.tickets, t)
	return err
}

// String names the part.
func (t *ticket) String() string {
	p := t.program
	if len(p.dispatches) == 0 {
		return "part without ops"
	}
	a, b := p.dispatches[t.first].label, p.dispatches[t.end-1].label
	return fmt.Sprintf("part of pieces %d to %d (%s to %s)", t.first, t.end-1, a, b)
}

func (t *ticket) wait() error {
	l, d, ctx := t.launch, t.program.s.d, context.Background()
	host := l.downHost
	last := t.from == l.down
	if !last {
		host = host[:markWords]
	}
	if err := d.drv.ReadMapped(ctx, t.from, 0, bytesOf(host), d.watchdog); err != nil {
		return err
	}
	status, err := checkMark(host, t.serial, t.count)
	if err != nil {
		return err
	}
	if err := t.program.statusError(status, t.first, min(t.end, len(t.program.dispatches))); err != nil || !last {
		return err
	}
	at := markWords
	for i, n := range t.job.Outputs {
		if !l.direct {
			at += copy(t.job.Outputs[i], host[at:])
			continue
		}
		if err := d.drv.ReadMapped(ctx, l.down, 4*uint64(at), bytesOf(n), d.watchdog); err != nil {
			return err
		}
		at += len(n)
	}
	return nil
}
