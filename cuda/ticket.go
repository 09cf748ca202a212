package cuda

import (
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
