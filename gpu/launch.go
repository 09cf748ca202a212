package gpu

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// A launch is what a run of a program has beside the program, used again by a later
// run: a buffer that brings the run's number and its inputs, and one that brings back
// its last mark and its outputs. It belongs to the program and not to the job, because
// jobs whose runs nobody closes pile up.
type launch struct {
	up, down driver.BufferID
	upHost   []uint32 // serial, status 0, inputs
	downHost []uint32 // mark, outputs
	direct   bool     // downHost holds the mark alone: outputs are read straight to where they go
	inFlight int      // parts
}

// Inputs and outputs up to transferWords travel through one buffer and one copy on the
// host. Above, inputs go through the staging ring, and outputs are read in place.
const transferWords = 1 << 18

// inputWords is where the inputs begin in up: after the words of the run, and one more
// that keeps them at even words.
const inputWords = runWords + 1

func (p *program) inputLen() (n int) {
	for _, t := range p.plan.Inputs {
		n += p.plan.Temps[t].Len
	}
	return n
}

func (p *program) outputLen() (n int) {
	for _, o := range p.plan.Outputs {
		n += o.Len
	}
	return n
}

func (p *program) newLaunch() (*launch, error) {
	d := p.s.d
	inputs, outputs := p.inputLen(), p.outputLen()
	if inputs > transferWords {
		inputs = 0
	}
	l := &launch{upHost: make([]uint32, inputWords+inputs), downHost: make([]uint32, markWords)}
	if outputs <= transferWords {
		l.downHost = make([]uint32, markWords+outputs)
	} else {
		l.direct = true
	}
	var err error
	if l.up, err = d.buffer("inputs", len(l.upHost), driver.MapWrite|driver.CopySrc); err != nil {
		return nil, err
	}
	if l.down, err = d.buffer("outputs", markWords+outputs, driver.MapRead|driver.CopyDst); err != nil {
		d.drop(l.up)
		return nil, err
	}
	return l, nil
}

func (l *launch) free(d *device) {
	d.drop(l.up)
	d.drop(l.down)
}

// begin binds the program to the workspace and brings the job's data on their way.
func (p *program) begin(job *backend.Job) (*launch, error) {
	s := p.s
	s.mu.Lock()
	s.workspace.open = true
	err := p.rebind()
	if err == nil {
		s.workspace.sweep() // runs before this one are submitted, as far as they ever will be
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	l, err := p.freeLaunch()
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	copy(l.upHost, []uint32{uint32(job.Serial), uint32(job.Serial >> 32), 0})
	if len(l.upHost) > inputWords {
		at := inputWords
		for _, in := range job.Inputs {
			at += copy(l.upHost[at:], in)
		}
	} else if err := p.streamInputs(ctx, job); err != nil {
		return nil, fmt.Errorf("inputs: %w", err)
	}
	if err := s.d.drv.WriteMapped(ctx, l.up, 0, bytesOf(l.upHost), s.d.watchdog); err != nil {
		return nil, fmt.Errorf("inputs: %w", err)
	}
	return l, nil
}

// freeLaunch returns a launch that no part in flight uses.
func (p *program) freeLaunch() (*launch, error) {
	for _, l := range p.launches {
		if l.inFlight == 0 {
			return l, nil
		}
	}
	l, err := p.newLaunch()
	if err == nil {
		p.launches = append(p.launches, l)
	}
	return l, err
}

// streamInputs brings inputs to their temporaries through the staging ring.
func (p *program) streamInputs(ctx context.Context, job *backend.Job) error {
	if len(job.Inputs) == 0 {
		return nil
	}
	u := newUpload(p.s.d, p.s.timeline)
	defer u.close()
	for i, t := range p.plan.Inputs {
		if m := p.at(backend.Place{Index: t}, p.buffers); m != nil {
			if err := u.write(ctx, m, 0, job.Inputs[i]); err != nil {
				return err
			}
		}
	}
	return u.flush(ctx)
}

// bringInputs appends the copies from a launch's buffer to where the data belong.
func (p *program) bringInputs(l *launch, c []driver.Command) []driver.Command {
	c = append(c, driver.Copy(p.s.timeline.state.id, 4*wordSerial, l.up, 0, 4*runWords))
	if len(l.upHost) == inputWords {
		return c
	}
	at := uint64(inputWords)
	for _, t := range p.plan.Inputs {
		n := uint64(p.plan.Temps[t].Len)
		if m := p.at(backend.Place{Index: t}, p.buffers); m != nil {
			c = append(c, driver.Copy(m.id, 0, l.up, 4*at, 4*n))
		}
		at += n
	}
	return c
}

// fetchOutputs appends the copies of all outputs to a launch's buffer.
func (p *program) fetchOutputs(l *launch, c []driver.Command) []driver.Command {
	at := uint64(markWords)
	for _, o := range p.plan.Outputs {
		if o.Len > 0 {
			c = append(c, driver.Copy(l.down, 4*at, p.at(o.Place, p.buffers).id, 4*uint64(o.Offset), 4*uint64(o.Len)))
		}
		at += uint64(o.Len)
	}
	return c
}

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
