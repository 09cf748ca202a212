package backend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tandem-gpu/tandem/pass"
)

// fake is hardware in Go memory that knows Fill and Copy, a piece for each step, and
// fails where a test tells it to.
type fake struct {
	rate      pass.Cost
	memory    atomic.Int64 // live Memory values
	streams   atomic.Int64
	programs  atomic.Int64
	inFlight  atomic.Int32
	most      atomic.Int32  // parts in flight at once
	parts     atomic.Int32  // parts submitted
	gate      chan struct{} // if not nil, every Wait takes a token from it
	entered   chan struct{} // if not nil, Compile, Alloc and NewStream put a token into it, and wait for one in leave
	leave     chan struct{}
	submitErr func(part int32) error
	waitErr   func(part int32) error
	allocErr  error
	short     func() bool // if not nil, asked whether memory is short
	keeps     bool        // programs are Keepable
	compiled  atomic.Int32
	closed    atomic.Int32
}

func newFake() *fake { return &fake{rate: pass.Cost{FLOP: 1e9, Bytes: 1e9}} }

func (f *fake) Info() pass.Info { return pass.Info{Backend: "fake"} }
func (f *fake) Rate() pass.Cost { return f.rate }
func (f *fake) Close() error    { f.closed.Add(1); return nil }

func (f *fake) Load(ctx context.Context, w pass.Weights, _ pass.ParamShape) (Memory, error) {
	return f.take(0)
}

// pause is where a test holds a call.
func (f *fake) pause() {
	if f.entered != nil {
		f.entered <- struct{}{}
		<-f.leave
	}
}

func (f *fake) NewStream(pass.SessionConfig) (Stream, error) {
	f.pause()
	f.streams.Add(1)
	return &fakeStream{f: f}, nil
}

func (f *fake) take(n int) (*fakeMemory, error) {
	if f.allocErr != nil {
		return nil, f.allocErr
	}
	if f.short != nil && f.short() {
		return nil, pass.ErrOutOfMemory
	}
	f.memory.Add(1)
	return &fakeMemory{f: f, words: make([]uint32, n)}, nil
}

type fakeMemory struct {
	f     *fake
	words []uint32
	freed atomic.Bool
}

func (m *fakeMemory) Free() {
	if m.freed.Swap(true) {
		panic("freed twice")
	}
	m.f.memory.Add(-1)
}

type fakeStream struct {
	f    *fake
	busy sync.Mutex
}

func (s *fakeStream) Alloc(_ pass.DType, n int) (Memory, error) {
	s.f.pause()
	m, err := s.f.take(n)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (s *fakeStream) NewCache(pass.CacheConfig) (Memory, error) { return s.Alloc(pass.F32, 4) }

func (s *fakeStream) Write(_ context.Context, m Memory, at int, data []uint32) error {
	if !s.busy.TryLock() {
		return errors.New("write beside other work")
	}
	defer s.busy.Unlock()
	copy(m.(*fakeMemory).words[at:], data)
	return nil
}

func (s *fakeStream) Read(_ context.Context, m Memory, at int, data []uint32) error {
	if !s.busy.TryLock() {
		return errors.New("read beside other work")
	}
	defer s.busy.Unlock()
	copy(data, m.(*fakeMemory).words[at:])
	return nil
}

func (s *fakeStream) Compile(_ context.Context, p *Plan) (Program, error) {
	s.f.pause()
	if s.f.short != nil && s.f.short() {
		return nil, pass.ErrOutOfMemory
	}
	offsets, n := p.Pack(1)
	s.f.programs.Add(1)
	s.f.compiled.Add(1)
	pieces := make([]pass.Cost, max(len(p.Steps), 1))
	for i, step := range p.Steps {
		pieces[i] = step.Cost
	}
	program := &fakeProgram{s: s, p: p, offsets: offsets, arena: make([]uint32, n), pieces: pieces}
	if s.f.keeps {
		return &keepable{fakeProgram: program}, nil
	}
	return program, nil
}

func (s *fakeStream) Close() error { s.f.streams.Add(-1); return nil }

type fakeProgram struct {
	s       *fakeStream
	p       *Plan
	offsets []int
	arena   []uint32
	pieces  []pass.Cost
	tickets [4]fakeTicket
}

func (p *fakeProgram) Pieces() []pass.Cost    { return p.pieces }
func (p *fakeProgram) Free()                  { p.s.f.programs.Add(-1) }
func (p *fakeProgram) Dump(w io.Writer) error { _, err := fmt.Fprintln(w, "fake"); return err }

func (p *fakeProgram) at(place Place) []uint32 {
	if place.State {
		return p.p.States[place.Index].(*fakeMemory).words
	}
	return p.arena[p.offsets[place.Index]:][:p.p.Temps[place.Index].Len]
}

func (p *fakeProgram) view(v pass.View) []uint32 { return p.at(p.p.Place(v.Buffer))[v.Offset:] }

func (p *fakeProgram) Submit(job *Job, from, to int) (Ticket, error) {
	f := p.s.f
	number := f.parts.Add(1)
	if f.submitErr != nil {
		if err := f.submitErr(number); err != nil {
			return nil, err
		}
	}
	p.s.busy.Lock()
	defer p.s.busy.Unlock()
	f.most.Store(max(f.most.Load(), f.inFlight.Add(1)))
	if from == 0 {
		for i, t := range p.p.Inputs {
			copy(p.arena[p.offsets[t]:], job.Inputs[i])
		}
	}
	for _, step := range p.p.Steps[from:min(to, len(p.p.Steps))] {
		switch op := step.Op.(type) {
		case pass.Fill:
			to := p.view(op.To)
			for i := range op.Cols {
				to[i] = op.Word
			}
		case pass.Copy:
			copy(p.view(op.To)[:op.Cols], p.view(op.From)[:op.Cols])
		}
	}
	if to == len(p.pieces) {
		for i, o := range p.p.Outputs {
			copy(job.Outputs[i], p.at(o.Place)[o.Offset:])
		}
	}
	ticket := &p.tickets[number%4]
	*ticket = fakeTicket{f, number}
	return ticket, nil
}

type fakeTicket struct {
	f      *fake
	number int32
}

func (t *fakeTicket) Wait() error {
	defer t.f.inFlight.Add(-1)
	if t.f.gate != nil {
		select {
		case <-t.f.gate:
		case <-time.After(10 * time.Second):
			return pass.ErrTimeout
		}
	}
	if t.f.waitErr != nil {
		return t.f.waitErr(t.number)
	}
	return nil
}
