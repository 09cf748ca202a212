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
	if err := p.enter(); err != nil {
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

// enter opens the workspace for a run, and binds the program to it.
func (p *program) enter() error {
	s := p.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workspace.open = true
	err := p.rebind()
	if err == nil {
		s.workspace.sweep() // runs before this one are submitted, as far as they ever will be
	}
	return err
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
