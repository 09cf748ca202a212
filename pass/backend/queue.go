package backend

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/tandem-gpu/tandem/pass"
)

// How long a part of a run should take. Interactive sessions wait behind at most the
// parts that are in flight, so parts of batch work are short while there is any
// interactive work on the device.
const (
	batchPart       = 70 * time.Millisecond
	interactivePart = 20 * time.Millisecond
	politePart      = 5 * time.Millisecond
	partsInFlight   = 2
)

// A part is some pieces of a run that were submitted together.
type part struct {
	r       *run
	ticket  Ticket
	pieces  int
	seconds float64 // by the device's pace
	share   float64 // of the cost of the run
	began   time.Time
}

// A flight is the parts that have been submitted and not waited for, oldest first.
type flight struct {
	parts    [partsInFlight]part
	n        int
	finished time.Time // when the part before ended
}

// pump submits the runs of the queue in order, part by part, with at most two parts in
// flight, until the queue is empty. It holds the session's token, but no lock while it
// submits or waits.
func (s *session) pump() {
	var f flight
	interactive := s.cfg.Latency == pass.Interactive
	if interactive {
		s.d.pace.interactive.Add(1)
	}
	for {
		s.mu.Lock()
		if s.head == len(s.queue) {
			s.queue, s.head = s.queue[:0], 0
			if f.n == 0 {
				if interactive {
					s.d.pace.interactive.Add(-1)
				}
				s.pumping = false
				s.token <- struct{}{}
				s.mu.Unlock()
				return
			}
			s.mu.Unlock()
			s.await(&f)
			continue
		}
		r := s.queue[s.head]
		s.queue[s.head] = nil
		s.head++
		s.mu.Unlock()
		s.advance(r, &f)
	}
}

// advance submits all parts of a run.
func (s *session) advance(r *run, f *flight) {
	for r.from < len(r.rec.pieces) && r.failed == nil {
		if r.failed = s.mayGoOn(r); r.failed != nil {
			break
		}
		if f.n == partsInFlight {
			s.await(f)
			continue
		}
		to, seconds, share := s.choose(r)
		began := time.Now()
		ticket, err := submit(r, to)
		if err != nil {
			r.failed = err
			break
		}
		f.parts[f.n] = part{r, ticket, to - r.from, seconds, share, began}
		f.n++
		r.from = to
		r.inFlight++
	}
	if r.inFlight == 0 {
		s.finish(r)
	}
}

// mayGoOn returns why the rest of a run is dropped, if it is.
func (s *session) mayGoOn(r *run) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	return s.usable()
}

// submit starts the pieces of r up to to; a panic of the backend is an error.
func submit(r *run, to int) (t Ticket, err error) {
	defer guard(r.rec.s.d.name, "submit", &err)
	return r.rec.program.Submit(&r.job, r.from, to)
}

func wait(p part) (err error) {
	defer guard(p.r.rec.s.d.name, "wait", &err)
	return p.ticket.Wait()
}

// choose returns the end of the next part, its seconds by the device's pace, and its
// share of the cost of the run.
func (s *session) choose(r *run) (to int, seconds, share float64) {
	target := batchPart
	switch {
	case s.cfg.Latency == pass.Interactive:
		target = interactivePart
	case s.d.pace.interactive.Load() > 0:
		target = politePart
	}
	pieces := r.rec.pieces
	to = r.from
	for to < len(pieces) {
		next := s.d.pace.seconds(pieces[to])
		if to > r.from && seconds+next > target.Seconds() {
			break
		}
		seconds += next
		share += s.d.pace.byRate(pieces[to]) / max(r.rec.total, 1e-30)
		to++
	}
	return to, seconds, share
}

// await waits for the oldest part in flight.
func (s *session) await(f *flight) {
	p := f.parts[0]
	copy(f.parts[:], f.parts[1:f.n])
	f.n--
	f.parts[f.n] = part{}
	err := wait(p)
	now := time.Now()
	if err == nil {
		began := p.began
		if f.finished.After(began) {
			began = f.finished
		}
		s.d.pace.measure(p.pieces, p.seconds, now.Sub(began).Seconds())
	}
	f.finished = now
	r := p.r
	if err != nil && r.failed == nil {
		r.failed = err
	}
	r.inFlight--
	r.done += p.share
	over := r.inFlight == 0 && (r.failed != nil || r.from == len(r.rec.pieces))
	if r.rec.opt.Progress != nil && r.failed == nil && !over {
		s.report(r, min(r.done, 1))
	}
	if over {
		s.finish(r)
	}
}

// report calls the progress function; a panic in it fails the run.
func (s *session) report(r *run, done float64) {
	var err error
	func() {
		defer guard(s.d.name, "progress", &err)
		r.rec.opt.Progress(done)
	}()
	if err != nil && r.failed == nil {
		r.failed = err
	}
}

// finish ends a run that has no part in flight.
func (s *session) finish(r *run) {
	if r.rec.opt.Progress != nil && r.failed == nil {
		s.report(r, 1)
	}
	err := r.failed
	if err != nil {
		err = s.wrap(r.rec.call(), fmt.Errorf("%d of %d pieces submitted: %w", r.from, len(r.rec.pieces), err))
	}
	rec := r.rec
	s.mu.Lock()
	rec.pending-- // before anybody knows: a recording that is closed then is kept at once
	last := rec.closed && rec.pending == 0
	s.mu.Unlock()
	r.mu.Lock()
	r.over = true
	r.err = err
	released := r.released
	r.signal()
	r.mu.Unlock()
	if last {
		rec.free()
	}
	if released {
		r.reuse()
	}
}

// A pace turns cost to seconds on one device: by the backend's rate, corrected by what
// parts have taken.
type pace struct {
	hw          Hardware
	factor      atomic.Uint64 // bits of a float64
	interactive atomic.Int32  // interactive sessions with work
}

func newPace(hw Hardware) *pace {
	p := &pace{hw: hw}
	p.factor.Store(math.Float64bits(1))
	return p
}

// byRate returns how long work of cost c takes by the backend's rate.
func (p *pace) byRate(c pass.Cost) float64 {
	rate := p.hw.Rate()
	return max(c.FLOP/rate.FLOP, c.Bytes/rate.Bytes)
}

// perPiece is about what a piece takes on a GPU however little it does.
const perPiece = 3e-6

// seconds returns about how long a piece of cost c takes.
func (p *pace) seconds(c pass.Cost) float64 {
	return p.byRate(c)*math.Float64frombits(p.factor.Load()) + perPiece
}

// measure learns from a part of some pieces that was thought to take some time and took
// another. Short parts, and parts of many small pieces, say more of overheads than of the
// rate, and one part moves the factor by no more than two times, so that a stall does not
// upset it.
func (p *pace) measure(pieces int, thought, took float64) {
	if overhead := float64(pieces) * perPiece; overhead > thought/2 || max(thought, took) < 2e-3 {
		return
	}
	f := math.Float64frombits(p.factor.Load()) * min(max(took/thought, 0.5), 2)
	p.factor.Store(math.Float64bits(min(max(f, 1e-6), 1e6)))
}
