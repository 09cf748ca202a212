package backend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tandem-gpu/tandem/pass"
)

var deviceNumbers, sessionNumbers, serials atomic.Uint64

// New makes a device of hw, and owns it: closing the device closes hw.
func New(hw Hardware) pass.Device {
	return &device{
		hw:       hw,
		name:     hw.Info().Backend,
		number:   uint32(deviceNumbers.Add(1)),
		sessions: map[*session]struct{}{},
		pace:     newPace(hw),
	}
}

type device struct {
	hw     Hardware
	name   string // prefix of error messages
	number uint32
	pace   *pace

	mu       sync.Mutex
	params   table[*shared]
	sessions map[*session]struct{}
	closed   bool
	lost     error // the first error that wraps ErrDeviceLost

	busy sync.WaitGroup // calls within the hardware that Close waits for
}

// shared is memory with several users: its handle, and the recordings that use it.
// refs is guarded by the device's lock.
type shared struct {
	handle any // pass.Param or pass.Buffer
	mem    Memory
	refs   int
}

// usable returns an error if the device is closed or lost.
func (d *device) usable() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.usableLocked()
}

func (d *device) usableLocked() error {
	if d.closed {
		return fmt.Errorf("%s: device: %w", d.name, pass.ErrClosed)
	}
	return d.lost
}

// enter returns the error of usable, or holds Close back until busy.Done.
func (d *device) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usableLocked(); err != nil {
		return err
	}
	d.busy.Add(1)
	return nil
}

// live returns why a call should not begin, as far as its context says.
func live(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("want a context, given nil: %w", pass.ErrInvalid)
	}
	return ctx.Err()
}

// note keeps the first loss of the device, and returns err.
func (d *device) note(err error) error {
	if errors.Is(err, pass.ErrDeviceLost) {
		d.mu.Lock()
		if d.lost == nil {
			d.lost = err
		}
		d.mu.Unlock()
	}
	return err
}

// release gives up one use of each, and frees what has none left.
func (d *device) release(all ...*shared) {
	var unused []*shared
	d.mu.Lock()
	for _, s := range all {
		s.refs--
		if s.refs == 0 {
			unused = append(unused, s)
		}
	}
	d.mu.Unlock()
	for _, s := range unused {
		if s.mem != nil {
			s.mem.Free()
		}
	}
}

func (d *device) Info() pass.Info { return d.hw.Info() }

func (d *device) Load(ctx context.Context, w pass.Weights) (p pass.Param, err error) {
	defer guard(d.name, "load", &err)
	if w == nil {
		return pass.Param{}, fmt.Errorf("%s: load: want weights, given nil: %w", d.name, pass.ErrInvalid)
	}
	shape, err := w.Shape()
	if err != nil {
		return pass.Param{}, fmt.Errorf("%s: load: %w", d.name, err)
	}
	if err := live(ctx); err != nil {
		return pass.Param{}, fmt.Errorf("%s: load: %w", d.name, err)
	}
	if err := d.enter(); err != nil {
		return pass.Param{}, err
	}
	defer d.busy.Done()
	mem, err := d.hw.Load(ctx, w, shape)
	if d.scarce(err) {
		mem, err = d.hw.Load(ctx, w, shape)
	}
	if err != nil {
		return pass.Param{}, d.note(fmt.Errorf("%s: load: %w", d.name, err))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &shared{mem: mem, refs: 1}
	id, generation := d.params.add(s)
	p = pass.MakeParam(pass.Ref{Device: d.number, ID: id, Generation: generation}, shape)
	s.handle = p
	return p, nil
}

func (d *device) Unload(p pass.Param) error {
	d.mu.Lock()
	s, err := d.paramLocked(p)
	if err == nil {
		d.params.remove(p.Ref().ID, p.Ref().Generation)
	}
	d.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: unload: %w", d.name, err)
	}
	d.release(s)
	return nil
}

// paramLocked returns what a handle names.
func (d *device) paramLocked(p pass.Param) (*shared, error) {
	ref := p.Ref()
	if ref.Device != d.number || ref.Session != 0 || ref.Recording != 0 {
		return nil, fmt.Errorf("%v: of another device: %w", p, pass.ErrInvalid)
	}
	s, ok := d.params.get(ref.ID, ref.Generation)
	if !ok {
		return nil, fmt.Errorf("%v: unloaded: %w", p, pass.ErrClosed)
	}
	if s.handle != p {
		return nil, fmt.Errorf("%v: no such handle: %w", p, pass.ErrInvalid)
	}
	return s, nil
}

func (d *device) NewSession(cfg pass.SessionConfig) (_ pass.Session, err error) {
	defer guard(d.name, "new session", &err)
	if cfg.Latency > pass.Interactive {
		return nil, fmt.Errorf("%s: new session %q: latency: want Batch or Interactive, given %d: %w", d.name, cfg.Label, cfg.Latency, pass.ErrInvalid)
	}
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.busy.Done()
	stream, err := d.hw.NewStream(cfg)
	if err != nil {
		return nil, d.note(fmt.Errorf("%s: new session %q: %w", d.name, cfg.Label, err))
	}
	s := newSession(d, cfg, stream)
	d.mu.Lock()
	d.sessions[s] = struct{}{}
	d.mu.Unlock()
	return s, nil
}

func (d *device) Close() (err error) {
	if d == nil {
		return nil
	}
	defer guard(d.name, "close", &err)
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	d.mu.Unlock()
	d.busy.Wait()
	var open []*session
	d.mu.Lock()
	for s := range d.sessions {
		open = append(open, s)
	}
	d.mu.Unlock()
	var errs []error
	for _, s := range open {
		errs = append(errs, s.Close())
	}
	d.mu.Lock()
	params := d.params.drain()
	d.mu.Unlock()
	d.release(params...)
	errs = append(errs, d.hw.Close())
	return errors.Join(errs...)
}

// guard turns a panic of a callback or a backend into an error: no panic crosses the
// API. It is deferred.
func guard(device, call string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s: %s: panic: %v: %w", device, call, p, pass.ErrInvalid)
	}
}
