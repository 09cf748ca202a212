package backend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/tandem-gpu/tandem/pass"
)

type session struct {
	d      *device
	cfg    pass.SessionConfig
	number uint32
	stream Stream
	pumpFn func() // pump, bound once so that starting it allocates nothing

	// token is held by whoever uses the stream: the pump as long as the queue is not
	// empty, or a Write or Read.
	token chan struct{}
	kept  keeper // programs of recordings that were closed

	mu         sync.Mutex
	buffers    table[*shared]
	caches     table[*shared]
	recordings map[*recording]struct{}
	recorded   uint32 // recordings so far
	size       size   // of the last one
	spare      *room  // of one that is closed
	queue      []*run // from head on
	head       int
	pumping    bool
	gone       chan struct{} // closed when Close is done

	// closed is set under mu. It is read without, since Start waits for the token with
	// mu held, and who has the token asks.
	closed atomic.Bool
}

func newSession(d *device, cfg pass.SessionConfig, stream Stream) *session {
	s := &session{
		d: d, cfg: cfg, stream: stream,
		number:     uint32(sessionNumbers.Add(1)),
		token:      make(chan struct{}, 1),
		recordings: map[*recording]struct{}{},
		gone:       make(chan struct{}),
	}
	s.pumpFn = s.pump
	s.token <- struct{}{}
	return s
}

// wrap prefixes an error of a call and keeps a loss of the device.
func (s *session) wrap(call string, err error) error {
	if err == nil {
		return nil
	}
	if s.cfg.Label == "" {
		return s.d.note(fmt.Errorf("%s: %s: %w", s.d.name, call, err))
	}
	return s.d.note(fmt.Errorf("%s: session %q: %s: %w", s.d.name, s.cfg.Label, call, err))
}

// usable returns an error if the session or its device is closed, or the device lost.
func (s *session) usable() error {
	if err := s.d.usable(); err != nil {
		return err
	}
	if s.closed.Load() {
		return fmt.Errorf("session: %w", pass.ErrClosed)
	}
	return nil
}

// buffer returns what a handle of state names.
func (s *session) buffer(b pass.Buffer) (*shared, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bufferLocked(b)
}

func (s *session) bufferLocked(b pass.Buffer) (*shared, error) {
	ref := b.Ref()
	switch {
	case b.IsZero():
		return nil, fmt.Errorf("want a buffer, given none: %w", pass.ErrInvalid)
	case ref.Device != s.d.number:
		return nil, fmt.Errorf("%v: of another device: %w", b, pass.ErrInvalid)
	case ref.Session != s.number:
		return nil, fmt.Errorf("%v: of another session: %w", b, pass.ErrInvalid)
	case ref.Recording != 0:
		return nil, fmt.Errorf("%v: lives inside a recording: %w", b, pass.ErrInvalid)
	}
	m, ok := s.buffers.get(ref.ID, ref.Generation)
	if !ok {
		return nil, fmt.Errorf("%v: freed: %w", b, pass.ErrClosed)
	}
	if m.handle != b {
		return nil, fmt.Errorf("%v: no such handle: %w", b, pass.ErrInvalid)
	}
	return m, nil
}

func (s *session) Alloc(t pass.DType, n int) (b pass.Buffer, err error) {
	defer guard(s.d.name, "alloc", &err)
	if err := checkBuffer(t, n); err != nil {
		return b, s.wrap("alloc", err)
	}
	err = s.own(&s.buffers, func() (Memory, error) { return s.stream.Alloc(t, n) }, func(ref pass.Ref) any {
		b = pass.MakeBuffer(ref, t, n)
		return b
	})
	if err != nil {
		return pass.Buffer{}, s.wrap("alloc", fmt.Errorf("%d %v: %w", n, t, err))
	}
	return b, nil
}

// own makes memory and puts it into a table of the session, under the handle that name
// makes of its place.
func (s *session) own(t *table[*shared], alloc func() (Memory, error), name func(pass.Ref) any) error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.d.enter(); err != nil {
		return err
	}
	defer s.d.busy.Done()
	mem, err := alloc()
	if s.d.scarce(err) {
		mem, err = alloc()
	}
	if err != nil {
		return err
	}
	m := &shared{mem: mem, refs: 1}
	s.mu.Lock()
	if s.closed.Load() {
		s.mu.Unlock()
		mem.Free()
		return fmt.Errorf("session: %w", pass.ErrClosed)
	}
	id, generation := t.add(m)
	m.handle = name(pass.Ref{Device: s.d.number, Session: s.number, ID: id, Generation: generation})
	s.mu.Unlock()
	return nil
}

func (s *session) Free(b pass.Buffer) error {
	s.mu.Lock()
	m, err := s.bufferLocked(b)
	if err == nil {
		s.buffers.remove(b.Ref().ID, b.Ref().Generation)
	}
	s.mu.Unlock()
	if err != nil {
		return s.wrap("free", err)
	}
	s.d.release(m)
	return nil
}

func (s *session) Write(ctx context.Context, v pass.View, data any) (err error) {
	defer guard(s.d.name, "write", &err)
	return s.wrap("write", s.move(ctx, v, data, s.stream.Write))
}

func (s *session) Read(ctx context.Context, v pass.View, data any) (err error) {
	defer guard(s.d.name, "read", &err)
	return s.wrap("read", s.move(ctx, v, data, s.stream.Read))
}

// move writes or reads after all work that was started before.
func (s *session) move(ctx context.Context, v pass.View, data any, do func(context.Context, Memory, int, []uint32) error) error {
	if err := s.usable(); err != nil {
		return err
	}
	b := v.Buffer
	m, err := s.buffer(b)
	if err != nil {
		return err
	}
	t, words, err := wordsOf(data)
	if err != nil {
		return err
	}
	if t != b.Type() {
		return fmt.Errorf("%v: want data of its type, given %T: %w", b, data, pass.ErrInvalid)
	}
	if v.Offset < 0 || v.Offset > b.Len() || len(words) > b.Len()-v.Offset {
		return fmt.Errorf("%v: want at most its elements from %d on, given %d: %w", b, v.Offset, len(words), pass.ErrInvalid)
	}
	if v.RowStride != 0 || v.BatchStride != 0 {
		return fmt.Errorf("%v: want a dense view, given row stride %d, batch stride %d: %w", b, v.RowStride, v.BatchStride, pass.ErrInvalid)
	}
	if err := live(ctx); err != nil {
		return err
	}
	select {
	case <-s.token:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { s.token <- struct{}{} }()
	if err := s.usable(); err != nil {
		return err
	}
	if len(words) == 0 {
		return nil
	}
	return do(ctx, m.mem, v.Offset, words)
}

// wordsOf returns host data as words, and the type of its elements.
func wordsOf(data any) (pass.DType, []uint32, error) {
	switch data := data.(type) {
	case []float32:
		return pass.F32, floatWords(data), nil
	case []uint32:
		return pass.U32, data, nil
	}
	return 0, nil, fmt.Errorf("want []float32 or []uint32, given %T: %w", data, pass.ErrInvalid)
}

// floatWords returns the bits of floats, without a copy.
func floatWords(f []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(f))), len(f))
}

func (s *session) Record(ctx context.Context, opt pass.RecordOptions, f func(pass.Pass)) (_ pass.Recording, err error) {
	defer guard(s.d.name, "record", &err)
	call := "record"
	if opt.Label != "" {
		call = fmt.Sprintf("record %q", opt.Label)
	}
	rec, err := s.record(ctx, opt, f)
	if err != nil {
		return nil, s.wrap(call, err)
	}
	return rec, nil
}

func (s *session) record(ctx context.Context, opt pass.RecordOptions, f func(pass.Pass)) (*recording, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if f == nil {
		return nil, fmt.Errorf("want a callback, given nil: %w", pass.ErrInvalid)
	}
	if opt.Math > pass.Fast {
		return nil, fmt.Errorf("math: want Exact or Fast, given %d: %w", opt.Math, pass.ErrInvalid)
	}
	if err := live(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.recorded++
	number := s.recorded
	s.mu.Unlock()
	r := newRecorder(s, number, opt)
	err := callback(r, f)
	if err == nil {
		err = r.finish()
	}
	if err == nil { // the callback may close what it likes
		err = s.usable()
	}
	r.over = true
	size := r.size()
	room := r.leave()
	if err == nil {
		err = s.d.enter() // not before the callback, which Close would wait for
	}
	if err != nil {
		s.vacate(room)
		s.d.release(r.uses...)
		return nil, err
	}
	defer s.d.busy.Done()
	program, key, err := s.compile(ctx, r.plan)
	if err != nil {
		s.vacate(room)
		s.d.release(r.uses...)
		return nil, err
	}
	rec := newRecording(s, number, opt, r, program, key, room)
	s.mu.Lock()
	s.size = size
	closed := s.closed.Load()
	if !closed {
		s.recordings[rec] = struct{}{}
	}
	s.mu.Unlock()
	if closed {
		rec.free()
		return nil, fmt.Errorf("session: %w", pass.ErrClosed)
	}
	return rec, nil
}

// callback runs f and turns a panic into an error.
func callback(r *recorder, f func(pass.Pass)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in the callback: %v: %w", p, pass.ErrInvalid)
		}
	}()
	f(r)
	return nil
}

// compile makes a program of a plan, or finds one that was kept. With the key of the plan it
// may be kept in turn; nil: it may not.
func (s *session) compile(ctx context.Context, p *Plan) (program Program, key []byte, err error) {
	defer guard(s.d.name, "compile", &err)
	if !s.kept.empty() && ctx.Err() == nil {
		key = p.key(s.kept.room())
		if old, ok := s.kept.take(key); ok {
			if old.Resume(p) {
				return old, key, nil
			}
			old.Free()
		}
	}
	program, err = s.stream.Compile(ctx, p)
	if s.d.scarce(err) {
		program, err = s.stream.Compile(ctx, p)
	}
	if err != nil {
		return nil, nil, err
	}
	if _, ok := program.(Keepable); ok && key == nil {
		key = p.key(s.kept.room()) // now: what an op's slices have may change
	}
	return program, key, nil
}

func (s *session) Close() (err error) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	if s.closed.Load() {
		s.mu.Unlock()
		<-s.gone
		return nil
	}
	s.closed.Store(true)
	s.mu.Unlock()
	defer close(s.gone)
	defer guard(s.d.name, "close session", &err)
	<-s.token // the pump has dropped what had not begun, and waited for the rest
	defer func() { s.token <- struct{}{} }()
	s.mu.Lock()
	var open []*recording
	for rec := range s.recordings {
		open = append(open, rec)
	}
	s.mu.Unlock()
	var errs []error
	s.kept.close()
	for _, rec := range open {
		errs = append(errs, rec.Close())
	}
	s.mu.Lock()
	state := append(s.buffers.drain(), s.caches.drain()...)
	s.mu.Unlock()
	s.d.release(state...)
	errs = append(errs, s.stream.Close())
	s.d.mu.Lock()
	delete(s.d.sessions, s)
	s.d.mu.Unlock()
	return errors.Join(errs...)
}
