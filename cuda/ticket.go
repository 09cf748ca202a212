package cuda

import (
	"context"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/kernels"
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

// A ticket waits for a part: for the number of its run to arrive in its mark.
type ticket struct {
	at     uintptr // of its mark, headBytes of page-locked memory
	mark   []byte
	begin  func() error         // submit, until over
	poll   func() (bool, error) // arrived; both are bound once, so that replays allocate nothing
	queued func() error         // asks whether the queue is done

	p        *program
	job      *backend.Job
	block    *block
	serial   uint64
	from, to int // pieces
	last     bool
	sent     int // bytes of what goes up that are on their way
	segment  int // the one that is submitted next,
	launched int // of which so many kernels are, if it has no graph
	over     bool
	limit    time.Duration
	done     bool           // what queued found
	spans    []driver.Event // of a traced run: before each launch, and after the last
}

func newTicket(at uintptr) *ticket {
	t := &ticket{at: at, mark: hostBytes(at, headBytes)}
	t.begin, t.poll, t.queued = t.submit, t.arrived, t.query
	return t
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

// Wait implements backend.Ticket.
func (t *ticket) Wait() error {
	p := t.p
	err := t.end()
	t.forget()
	if err != nil {
		p.failed = t.serial
		err = fmt.Errorf("%s: %w", t, err)
	}
	p.s.inFlight.Add(-1)
	if err == nil || t.here() {
		p.s.marks.put(t)
	} else {
		p.s.adrift.Store(true)
		p.s.marks.lose(t) // the device may still write to it
	}
	return err
}

// end waits until the part has ended, and takes what it brings.
func (t *ticket) end() (err error) {
	defer func() {
		if r := recover(); r != nil { // of Config.Trace, say
			err = fmt.Errorf("panic: %v: %w", r, pass.ErrInvalid)
		}
	}()
	p := t.p
	unmade := p.replay(t.from, min(t.to, len(p.segments)))
	err = p.s.d.until(t.limit, t.poll)
	if err == nil {
		err = unmade
	}
	if err == nil {
		err = t.status()
	}
	if err == nil && t.last {
		at := up(p.upload, 16)
		for i, o := range p.plan.Outputs {
			parallel.Copy(bytesOf(t.job.Outputs[i]), t.block.data[at:at+4*o.Len])
			at += 4 * o.Len
		}
	}
	if err == nil && t.spans != nil {
		err = t.report()
	}
	return err
}

// forget gives up the events of a traced part.
func (t *ticket) forget() {
	if t.spans == nil {
		return
	}
	d := t.p.s.d
	d.do(func() error {
		for _, e := range t.spans {
			d.drv.DestroyEvent(e)
		}
		return nil
	})
	t.spans = nil
}

// here reports whether the mark has arrived.
func (t *ticket) here() bool {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&t.mark[headSerial]))) == t.serial
}

// arrived is here, and now and then asks whether the queue has failed.
func (t *ticket) arrived() (bool, error) {
	if t.here() {
		return true, nil
	}
	d := t.p.s.d
	if err := d.gone(); err != nil {
		return false, err
	}
	if !t.p.s.marks.due() {
		return false, nil
	}
	if err := d.do(t.queued); err != nil {
		return false, err
	}
	if t.done && !t.here() {
		return false, fmt.Errorf("work that the device reports finished did not run: want the mark of run %d: %w", t.serial, pass.ErrDeviceLost)
	}
	return false, nil
}

func (t *ticket) query() (err error) {
	t.done, err = t.p.s.d.drv.Query(t.p.s.queue)
	return err
}

// status returns what kernels have found wrong.
func (t *ticket) status() error {
	bits := binary.LittleEndian.Uint32(t.mark[headStatus:])
	switch {
	case bits == 0:
		return nil
	case bits&kernels.StatusIndex == 0:
		return fmt.Errorf("append: K or V: a finite value is beyond the range of an F16 cache: %w", pass.ErrInvalid)
	}
	var suspects []string
	for i, step := range t.p.plan.Steps {
		if !slices.ContainsFunc(t.p.launches, func(l launch) bool { return l.step == i }) {
			continue
		}
		if what := deviceNumbers(step.Op); what != "" && !slices.Contains(suspects, what) {
			suspects = append(suspects, what)
		}
	}
	return fmt.Errorf("%s: a number on the device is beyond its range: %w", strings.Join(suspects, ", or "), pass.ErrInvalid)
}

// deviceNumbers names the fields of an op that hold numbers on the device, if any do.
func deviceNumbers(op pass.Op) string {
	var names []string
	v := reflect.ValueOf(op)
	for i := range v.NumField() {
		var view pass.View
		switch x := v.Field(i).Interface().(type) {
		case pass.Index:
			view, _ = x.View()
		case pass.Items:
			view = x.View()
		}
		if !view.IsZero() {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	switch op.(type) {
	case pass.Embed:
		names = append(names, "IDs")
	case pass.Advance:
		names = append(names, "Index")
	}
	if names == nil {
		return ""
	}
	return op.Name() + ": " + strings.Join(names, " or ")
}

// String names the part.
func (t *ticket) String() string {
	p := t.p
	if t.to > len(p.segments) {
		return "part" // its program could not be compiled anew
	}
	first, last := p.segments[t.from].from, p.segments[t.to-1].to
	if first == last {
		return "part without ops"
	}
	a, b := p.launches[first], p.launches[last-1]
	return fmt.Sprintf("part of ops %d to %d (%s to %s)", a.step, b.step, a.label, b.label)
}

// report hands the times of a traced run to the caller.
func (t *ticket) report() error {
	p, d := t.p, t.p.s.d
	trace := Trace{Label: p.plan.Label}
	err := d.do(func() error {
		k := 0
		for _, g := range p.segments[t.from:t.to] {
			for i := g.from; i < g.to; i++ {
				ms, err := d.drv.Elapsed(t.spans[k], t.spans[k+1])
				if err != nil {
					return err
				}
				l := &p.launches[i]
				trace.Spans = append(trace.Spans, Span{l.step, l.label, l.entry.Name, float64(ms) / 1e3, l.cost})
				k++
			}
			k++
		}
		return nil
	})
	if err == nil {
		d.trace(trace)
	}
	return err
}
