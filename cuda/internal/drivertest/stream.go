package drivertest

import (
	"time"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
)

// work is a piece of a stream's work. It is done with the driver's lock held, which the
// run of a kernel gives up meanwhile. An error loses the context.
type work func() *driver.Error

// stream does its work in order.
type stream struct {
	owner *scope
	queue []work
	busy  bool
}

// event marks a place in a stream.
type event struct {
	owner   *scope
	stream  *stream
	pending int // places that have not been reached
	reached time.Time
}

// push adds work to a stream.
func (d *Driver) push(s *stream, w work) {
	s.queue = append(s.queue, w)
	if !d.config.Lazy && !d.stalled {
		d.finish(s)
	}
}

// step does a stream's first piece of work, if there is one. A lost context has none.
func (d *Driver) step(s *stream) {
	for s.busy {
		d.idle.Wait()
	}
	if s.owner.lost != nil {
		s.queue = nil
	}
	if len(s.queue) == 0 || d.stalled {
		return
	}
	w := s.queue[0]
	s.queue = s.queue[1:]
	s.busy = true
	if err := w(); err != nil && s.owner.lost == nil {
		s.owner.lost = err
	}
	s.busy = false
	d.idle.Broadcast()
}

// finish does all work of a stream.
func (d *Driver) finish(s *stream) {
	for s.busy || len(s.queue) > 0 {
		if d.stalled && s.owner.lost == nil {
			d.idle.Wait()
			continue
		}
		d.step(s)
	}
}

// finishAll does all work of a context.
func (d *Driver) finishAll(c *scope) {
	for _, s := range d.streams {
		if s.owner == c {
			d.finish(s)
		}
	}
}

// on makes a call about a stream.
func (d *Driver) on(call string, h driver.Stream, f func(c *scope, s *stream) error) error {
	return d.inside(call, func(c *scope) error {
		s := d.streams[h]
		if s == nil || s.owner != c {
			return wrong(call, driver.InvalidHandle, "stream %#x", h)
		}
		return f(c, s)
	})
}

// CreateStream implements driver.Driver.
func (d *Driver) CreateStream(priority int) (h driver.Stream, err error) {
	err = d.inside("CreateStream", func(c *scope) error {
		h = driver.Stream(d.handle())
		d.streams[h] = &stream{owner: c}
		return nil
	})
	return h, err
}

// DestroyStream implements driver.Driver.
func (d *Driver) DestroyStream(h driver.Stream) error {
	return d.returning("DestroyStream", func(c *scope) error {
		s := d.streams[h]
		if s == nil || s.owner != c {
			return wrong("DestroyStream", driver.InvalidHandle, "stream %#x", h)
		}
		d.finish(s)
		delete(d.streams, h)
		return nil
	})
}

// Synchronize implements driver.Driver.
func (d *Driver) Synchronize(h driver.Stream) error {
	return d.on("Synchronize", h, func(c *scope, s *stream) error {
		d.finish(s)
		if c.lost != nil {
			return c.failure("Synchronize")
		}
		return nil
	})
}

// Query implements driver.Driver.
func (d *Driver) Query(h driver.Stream) (done bool, err error) {
	err = d.on("Query", h, func(c *scope, s *stream) error {
		d.step(s)
		if c.lost != nil {
			return c.failure("Query")
		}
		done = len(s.queue) == 0
		return nil
	})
	return done, err
}

// copying makes a call that copies in the order of a stream. The ranges must live when the
// call is made and when the copy is.
func (d *Driver) copying(call string, h driver.Stream, find func() (dst, src []byte)) error {
	return d.on(call, h, func(c *scope, s *stream) error {
		if dst, src := find(); dst == nil || src == nil {
			return wrong(call, driver.InvalidValue, "a range does not lie within one piece of live memory (page-locked, on the host)")
		}
		d.push(s, func() *driver.Error {
			dst, src := find()
			if dst == nil || src == nil {
				return wrong(call, driver.IllegalAddress, "memory was freed before the copy was done")
			}
			copy(dst, src)
			return nil
		})
		return nil
	})
}

// CopyToDevice implements driver.Driver.
func (d *Driver) CopyToDevice(dst driver.Pointer, src uintptr, bytes uint64, s driver.Stream) error {
	return d.copying("CopyToDevice", s, func() ([]byte, []byte) { return d.live(dst, bytes), d.locked(src, bytes) })
}

// CopyToHost implements driver.Driver.
func (d *Driver) CopyToHost(dst uintptr, src driver.Pointer, bytes uint64, s driver.Stream) error {
	return d.copying("CopyToHost", s, func() ([]byte, []byte) { return d.locked(dst, bytes), d.live(src, bytes) })
}

// CopyOnDevice implements driver.Driver.
func (d *Driver) CopyOnDevice(dst, src driver.Pointer, bytes uint64, s driver.Stream) error {
	return d.copying("CopyOnDevice", s, func() ([]byte, []byte) { return d.live(dst, bytes), d.live(src, bytes) })
}

// Set32 implements driver.Driver.
func (d *Driver) Set32(dst driver.Pointer, value uint32, n uint64, h driver.Stream) error {
	return d.on("Set32", h, func(c *scope, s *stream) error {
		if dst%4 != 0 || n == 0 || n > 1<<40 || d.live(dst, 4*n) == nil {
			return wrong("Set32", driver.InvalidValue, "%d words at %#x do not live", n, uint64(dst))
		}
		d.push(s, func() *driver.Error {
			b := d.live(dst, 4*n)
			if b == nil {
				return wrong("Set32", driver.IllegalAddress, "memory was freed before it was set")
			}
			for i := 0; i < len(b); i += 4 {
				b[i], b[i+1], b[i+2], b[i+3] = byte(value), byte(value>>8), byte(value>>16), byte(value>>24)
			}
			return nil
		})
		return nil
	})
}

// CreateEvent implements driver.Driver.
func (d *Driver) CreateEvent() (h driver.Event, err error) {
	err = d.inside("CreateEvent", func(c *scope) error {
		h = driver.Event(d.handle())
		d.events[h] = &event{owner: c}
		return nil
	})
	return h, err
}

// DestroyEvent implements driver.Driver.
func (d *Driver) DestroyEvent(h driver.Event) error {
	return d.returning("DestroyEvent", func(c *scope) error {
		if e := d.events[h]; e == nil || e.owner != c {
			return wrong("DestroyEvent", driver.InvalidHandle, "event %#x", h)
		}
		delete(d.events, h)
		return nil
	})
}

// Record implements driver.Driver.
func (d *Driver) Record(h driver.Event, on driver.Stream) error {
	return d.on("Record", on, func(c *scope, s *stream) error {
		e := d.events[h]
		if e == nil || e.owner != c {
			return wrong("Record", driver.InvalidHandle, "event %#x", h)
		}
		e.stream = s
		e.pending++
		d.push(s, func() *driver.Error {
			e.pending--
			e.reached = time.Now()
			return nil
		})
		return nil
	})
}

// QueryEvent implements driver.Driver. One that was never recorded is done.
func (d *Driver) QueryEvent(h driver.Event) (done bool, err error) {
	err = d.inside("QueryEvent", func(c *scope) error {
		e := d.events[h]
		if e == nil || e.owner != c {
			return wrong("QueryEvent", driver.InvalidHandle, "event %#x", h)
		}
		if e.pending > 0 {
			d.step(e.stream)
		}
		if c.lost != nil {
			return c.failure("QueryEvent")
		}
		done = e.pending == 0
		return nil
	})
	return done, err
}

// Elapsed implements driver.Driver.
func (d *Driver) Elapsed(from, to driver.Event) (ms float32, err error) {
	err = d.inside("Elapsed", func(c *scope) error {
		a, b := d.events[from], d.events[to]
		switch {
		case a == nil || b == nil || a.owner != c || b.owner != c || a.stream == nil || b.stream == nil:
			return wrong("Elapsed", driver.InvalidHandle, "an event was never recorded")
		case a.pending > 0 || b.pending > 0:
			return Error("Elapsed", driver.NotReady)
		}
		ms = float32(b.reached.Sub(a.reached).Seconds() * 1e3)
		return nil
	})
	return ms, err
}
