package cuda

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
	"github.com/tandem-gpu/tandem/pass/backend/parallel"
)

// A block is the page-locked memory of one job: what goes up, head first, and the outputs
// behind it.
type block struct {
	at   uintptr
	data []byte
}

// block returns the memory of a job.
func (p *program) block(job *backend.Job) (*block, error) {
	if b, ok := job.Backend.(*block); ok {
		return b, nil
	}
	b := &block{}
	n := up(p.upload, 16) + p.download
	err := p.s.d.do(func() (err error) {
		b.at, err = p.s.d.drv.HostAlloc(uint64(n))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%d bytes of page-locked memory: %w", n, err)
	}
	b.data = hostBytes(b.at, n)
	p.blocks = append(p.blocks, b)
	job.Backend = b
	return b, nil
}

func (b *block) free(d *device) {
	d.do(func() error { return d.drv.HostFree(b.at) })
}

// Submit implements backend.Program.
func (p *program) Submit(job *backend.Job, from, to int) (backend.Ticket, error) {
	d := p.s.d
	if err := d.gone(); err != nil {
		return nil, err
	}
	if p.failed == job.Serial {
		return nil, fmt.Errorf("a part before has failed: %w", pass.ErrInvalid)
	}
	if from == 0 {
		if err := p.renew(); err != nil {
			return nil, err
		}
		p.runs++
	}
	b, err := p.block(job)
	if err != nil {
		return nil, err
	}
	t, err := p.s.marks.take(d)
	if err != nil {
		return nil, err
	}
	t.p, t.job, t.block, t.serial = p, job, b, job.Serial
	t.from, t.to, t.last, t.sent = from, to, to == len(p.pieces), 0
	t.segment, t.launched, t.over = from, 0, false
	t.limit = p.limit(from, to)
	p.s.inFlight.Add(1)
	if from == 0 {
		err = t.fill()
	}
	for err == nil && !t.over {
		err = d.do(t.begin)
	}
	if err != nil {
		p.s.inFlight.Add(-1)
		t.forget()
		p.s.adrift.Store(true)
		p.s.marks.lose(t)
		return nil, err
	}
	return t, nil
}

// pieceBytes is how much of an input goes to the device while the next of it is copied.
const pieceBytes = 4 << 20

// fill puts the inputs into page-locked memory.
func (t *ticket) fill() error {
	p, b := t.p, t.block
	binary.LittleEndian.PutUint64(b.data[headStatus:], 0)
	binary.LittleEndian.PutUint64(b.data[headSerial:], t.job.Serial)
	for i, k := range p.plan.Inputs { // in the order in which they lie
		at, from := 4*p.offsets[k], bytesOf(t.job.Inputs[i])
		if len(from) > pieceBytes {
			if err := t.stream(at, from); err != nil {
				return err
			}
			continue
		}
		parallel.Copy(b.data[at:], from)
	}
	return nil
}

// stream copies a large input, and sends all of it but its last piece.
func (t *ticket) stream(at int, from []byte) error {
	for ; len(from) > pieceBytes; from = from[pieceBytes:] {
		parallel.Copy(t.block.data[at:at+pieceBytes], from)
		at += pieceBytes
		to := at
		if err := t.p.s.d.do(func() error { return t.send(to) }); err != nil {
			return err
		}
	}
	parallel.Copy(t.block.data[at:], from)
	return nil
}

// send brings what goes up, to an end, to the device.
func (t *ticket) send(to int) error {
	from := t.sent
	t.sent = to
	return t.p.s.d.drv.CopyToDevice(t.p.base+driver.Pointer(from), t.block.at+uintptr(from), uint64(to-from), t.p.s.queue)
}

// renew compiles anew if the workspace has moved. One that cannot move is not asked, since
// its lock may be held by a Compile that takes long.
func (p *program) renew() error {
	s := p.s
	if s.arena.reserved > 0 {
		return nil
	}
	s.mu.Lock()
	moved := p.generation != s.arena.generation
	if s.inFlight.Load() == 0 {
		s.arena.sweep()
	}
	s.mu.Unlock()
	if !moved {
		return nil
	}
	p.drop()
	return p.compile(context.Background())
}

// limit returns how long pieces may take: far above what is to be expected of them.
func (p *program) limit(from, to int) time.Duration {
	rate := p.s.d.Rate()
	seconds := 0.0
	for _, c := range p.pieces[from:to] {
		seconds += max(c.FLOP/rate.FLOP, c.Bytes/rate.Bytes)
	}
	return p.s.d.watchdog + time.Duration(min(100*seconds, 1e6)*1e9)
}

// mostLaunches is how many kernels are launched before others may use the thread: the driver
// lets nobody launch one when a thousand are waiting to run.
const mostLaunches = 64

// submit puts the part into the queue, or some of it. It runs on the thread of the context.
func (t *ticket) submit() error {
	p, drv, queue := t.p, t.p.s.d.drv, t.p.s.queue
	if t.from == 0 && t.sent < p.upload {
		if err := t.send(p.upload); err != nil {
			return err
		}
	}
	for room := mostLaunches; t.segment < t.to; t.segment, t.launched = t.segment+1, 0 {
		g := p.segments[t.segment]
		switch launches := p.launches[g.from:g.to]; {
		case p.s.d.trace != nil:
			if err := t.trace(launches); err != nil {
				return err
			}
		case g.exec != 0:
			if err := drv.LaunchGraph(g.exec, queue); err != nil {
				return err
			}
		default:
			n := min(len(launches)-t.launched, room)
			if err := t.launch(launches, n); err != nil {
				return err
			}
			if t.launched < len(launches) {
				return nil
			}
			room -= n
		}
	}
	if t.last {
		to := t.block.at + uintptr(up(p.upload, 16))
		for _, o := range p.plan.Outputs {
			if o.Len == 0 {
				continue
			}
			if err := drv.CopyToHost(to, p.at(o.Place, o.Offset), uint64(4*o.Len), queue); err != nil {
				return err
			}
			to += uintptr(4 * o.Len)
		}
	}
	t.over = true
	return drv.CopyToHost(t.at, p.base, headBytes, queue)
}

// launch runs the next n kernels of a segment one by one. All but the first, before which
// something else may have come, begin before the one before is done, if they wait for it
// themselves.
func (t *ticket) launch(launches []launch, n int) error {
	d := t.p.s.d
	for range n {
		l := &launches[t.launched]
		of := l.driver()
		of.Early = t.launched > 0 && d.kernels.wait()
		if err := d.drv.Launch(of, t.p.s.queue); err != nil {
			return l.wrap(err)
		}
		t.launched++
	}
	return nil
}

// trace runs kernels one by one, with the time taken between them.
func (t *ticket) trace(launches []launch) error {
	drv, queue := t.p.s.d.drv, t.p.s.queue
	stamp := func() error {
		e, err := drv.CreateEvent()
		if err != nil {
			return err
		}
		t.spans = append(t.spans, e)
		return drv.Record(e, queue)
	}
	for i := range launches {
		if err := stamp(); err != nil {
			return err
		}
		if err := drv.Launch(launches[i].driver(), queue); err != nil {
			return launches[i].wrap(err)
		}
	}
	return stamp()
}
