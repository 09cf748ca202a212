package silero

import (
	"context"
	"errors"
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// maxStreams is the largest capacity of a Streams.
const maxStreams = 1 << 16

// Streams is many audio signals that come and go, processed together: a step takes a
// chunk of any of them, and costs little more than a chunk of one. One goroutine at a
// time may use it.
//
// The state of each stream is a row on the device. A step is one replay of a recording,
// with one upload and one read-back; it is recorded for 1, 4, 16, … rows up to the
// capacity, and the smallest that holds the chunks of a step is used. Rows that fill it
// up have length 0, which leaves their state alone.
type Streams struct {
	model   *Model
	session pass.Session
	state   state
	rows    []row
	free    []uint32 // rows without a stream
	steps   []*step
	serial  uint64 // of the step
	out     []float32
	zeros   []float32
}

// A StreamID names a stream of a [Streams]. It is never used twice.
type StreamID uint64

func makeStreamID(row, generation uint32) StreamID {
	return StreamID(generation)<<32 | StreamID(row)
}

func (id StreamID) row() uint32        { return uint32(id) }
func (id StreamID) generation() uint32 { return uint32(id >> 32) }

// A Chunk is what one stream brings to a step.
type Chunk struct {
	Stream StreamID
	// Samples are the next 512 of the stream, mono at 16 kHz. Fewer, but at least one, are
	// the last chunk of a stream, which is filled with zeros.
	Samples []float32
	// Probability is set by the step.
	Probability float32
}

// A row is the host's side of one row of the state.
type row struct {
	generation uint32
	taken      bool
	used       bool   // the state is not zero
	stale      bool   // it must be zero before the next chunk
	lost       error  // why the state is undefined
	step       uint64 // the last with a chunk of this row
	context    [contextSamples]float32
}

// A step is the recording for up to size chunks.
type step struct {
	size    int
	rec     pass.Recording
	in      pass.Input
	places  pass.Input // the row of each item, then the length of each
	out     pass.Output
	samples []float32
	words   []uint32
	binds   [2]pass.Bind
}

// NewStreams opens a group of up to capacity streams, from 1 to 65,536. It is without
// streams at first. All its memory is taken and all work is compiled now.
func (m *Model) NewStreams(ctx context.Context, capacity int) (*Streams, error) {
	if err := m.usable(); err != nil {
		return nil, err
	}
	if capacity < 1 || capacity > maxStreams {
		return nil, fmt.Errorf("silero: streams: capacity: want 1 to %d, given %d: %w", maxStreams, capacity, pass.ErrInvalid)
	}
	session, err := m.dev.NewSession(pass.SessionConfig{Label: "silero streams", Latency: pass.Interactive})
	if err != nil {
		return nil, fmt.Errorf("silero: %w", err)
	}
	s := &Streams{model: m, session: session, rows: make([]row, capacity), out: make([]float32, capacity)}
	for i := range s.rows {
		s.free = append(s.free, uint32(capacity-1-i))
	}
	if s.state, err = newState(session, capacity); err == nil {
		err = s.record(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("silero: %w", err), session.Close())
	}
	return s, nil
}

// record makes the recordings for every number of chunks.
func (s *Streams) record(ctx context.Context) error {
	for size := 1; ; size *= 4 {
		st := &step{size: min(size, len(s.rows))}
		st.samples = make([]float32, st.size*itemSamples)
		st.words = make([]uint32, 2*st.size)
		var err error
		st.rec, err = s.session.Record(ctx, pass.RecordOptions{Label: fmt.Sprintf("silero step of %d", st.size)}, func(p pass.Pass) {
			st.in = p.Input(pass.F32, len(st.samples))
			st.places = p.Input(pass.U32, len(st.words))
			x := s.model.encode(p, st.in.View(), st.size)
			y := p.Temp(pass.F32, st.size*features)
			p.Do(pass.LSTM{
				X: x.View(), W: s.model.lstm, Y: y.View(), Batch: st.size, Time: 1,
				H0: s.state.h.View(), C0: s.state.c.View(), H: s.state.h.View(), C: s.state.c.View(),
				States: len(s.rows), StateRows: pass.ItemsIn(st.places.View()), Lengths: pass.ItemsIn(st.places.At(st.size)),
			})
			st.out = s.model.decide(p, y, st.size)
		})
		if err != nil {
			return err
		}
		s.steps = append(s.steps, st)
		if st.size == len(s.rows) {
			return nil
		}
	}
}

// opened refuses the zero Streams, and one whose model is closed.
func (s *Streams) opened() error {
	if s.model == nil {
		return fmt.Errorf("silero: streams: not opened: %w", pass.ErrInvalid)
	}
	return s.model.usable()
}

// Capacity returns how many streams there may be at a time.
func (s *Streams) Capacity() int { return len(s.rows) }

// Len returns how many streams there are.
func (s *Streams) Len() int { return len(s.rows) - len(s.free) }

// Add opens a stream. It fails with pass.ErrInvalid if there are as many as the capacity.
func (s *Streams) Add() (StreamID, error) {
	if err := s.opened(); err != nil {
		return 0, err
	}
	n := len(s.free)
	if n == 0 {
		return 0, fmt.Errorf("silero: streams: want at most the capacity of %d streams, given one more: %w", len(s.rows), pass.ErrInvalid)
	}
	i := s.free[n-1]
	s.free = s.free[:n-1]
	r := &s.rows[i]
	r.generation++
	r.taken = true
	r.reset()
	return makeStreamID(i, r.generation), nil
}

// Remove ends a stream; its place may be taken by another.
func (s *Streams) Remove(id StreamID) error {
	r, err := s.row(id)
	if err != nil {
		return fmt.Errorf("silero: streams: remove: %w", err)
	}
	r.taken = false
	s.free = append(s.free, id.row())
	return nil
}

// Reset makes a stream as new.
func (s *Streams) Reset(id StreamID) error {
	r, err := s.row(id)
	if err != nil {
		return fmt.Errorf("silero: streams: reset: %w", err)
	}
	r.reset()
	return nil
}

// reset makes the row's context that of the beginning; the state follows with the next
// step.
func (r *row) reset() {
	r.lost, r.stale = nil, r.used
	clear(r.context[:])
}

func (s *Streams) row(id StreamID) (*row, error) {
	if i := id.row(); int(i) < len(s.rows) && s.rows[i].taken && s.rows[i].generation == id.generation() {
		return &s.rows[i], nil
	}
	return nil, fmt.Errorf("no stream %d.%d, or removed: %w", id.row(), id.generation(), pass.ErrClosed)
}

// Step takes the next chunk of some streams, in any order, at most one of each, and sets
// their probabilities. The other streams wait meanwhile. Calls that are wrong are refused
// with pass.ErrInvalid or pass.ErrClosed before any chunk is taken. After any other
// error, the end of ctx included, the streams of the step must be Reset.
func (s *Streams) Step(ctx context.Context, chunks []Chunk) error {
	if err := s.opened(); err != nil {
		return err
	}
	if len(chunks) == 0 {
		return nil
	}
	if err := s.check(chunks); err != nil {
		return err
	}
	if err := s.run(ctx, chunks); err != nil {
		err = fmt.Errorf("silero: %w", err)
		for i := range chunks {
			r := &s.rows[chunks[i].Stream.row()]
			r.lost, r.used = err, true
		}
		return err
	}
	return nil
}

// check looks for mistakes in the chunks of a step.
func (s *Streams) check(chunks []Chunk) error {
	s.serial++
	for i := range chunks {
		c := &chunks[i]
		r, err := s.row(c.Stream)
		if err != nil {
			return fmt.Errorf("silero: streams: chunk %d: %w", i, err)
		}
		if r.lost != nil {
			return fmt.Errorf("silero: streams: chunk %d: stream not Reset since: %w", i, r.lost)
		}
		if r.step == s.serial {
			return fmt.Errorf("silero: streams: chunk %d: want one chunk of a stream, given another of %d.%d: %w", i, c.Stream.row(), c.Stream.generation(), pass.ErrInvalid)
		}
		r.step = s.serial
		if n := len(c.Samples); n < 1 || n > ChunkSamples {
			return fmt.Errorf("silero: streams: chunk %d: want 1 to %d samples, given %d: %w", i, ChunkSamples, n, pass.ErrInvalid)
		}
		if k := notFinite(c.Samples); k >= 0 {
			return fmt.Errorf("silero: streams: chunk %d: sample %d: want a finite value, given %v: %w", i, k, c.Samples[k], pass.ErrInvalid)
		}
	}
	return nil
}

// run does a step whose chunks are right.
func (s *Streams) run(ctx context.Context, chunks []Chunk) error {
	if err := s.clean(ctx); err != nil {
		return err
	}
	k := 0
	for s.steps[k].size < len(chunks) {
		k++
	}
	st := s.steps[k]
	s.fill(st, chunks)
	st.binds = [2]pass.Bind{st.in.F32(st.samples), st.places.U32(st.words)}
	run, err := st.rec.Run(ctx, st.binds[:]...)
	if err != nil {
		return err
	}
	defer run.Close()
	out := s.out[:st.size]
	if err := run.ReadF32(st.out, out); err != nil {
		return err
	}
	if i := notFinite(out[:len(chunks)]); i >= 0 {
		return fmt.Errorf("streams: chunk %d: probability %v: samples too large: %w", i, out[i], pass.ErrInvalid)
	}
	for i := range chunks {
		r := &s.rows[chunks[i].Stream.row()]
		r.used = true
		copy(r.context[:], st.samples[i*itemSamples+ChunkSamples:])
		chunks[i].Probability = out[i]
	}
	return nil
}

// fill sets the inputs of a step. Items without a chunk take rows that have none in this
// step, since rows must be distinct.
func (s *Streams) fill(st *step, chunks []Chunk) {
	for i := range chunks {
		c := &chunks[i]
		id := c.Stream.row()
		item := st.samples[i*itemSamples : (i+1)*itemSamples]
		n := copy(item, s.rows[id].context[:])
		n += copy(item[n:], c.Samples)
		clear(item[n:])
		st.words[i], st.words[st.size+i] = id, 1
	}
	id := 0
	for i := len(chunks); i < st.size; i++ {
		for s.rows[id].step == s.serial {
			id++
		}
		st.words[i], st.words[st.size+i] = uint32(id), 0
		id++
	}
}

// clean zeroes the state of rows that are as new but hold what another stream left.
func (s *Streams) clean(ctx context.Context) error {
	for from := 0; from < len(s.rows); from++ {
		if !s.rows[from].stale {
			continue
		}
		to := from + 1
		for to < len(s.rows) && s.rows[to].stale {
			to++
		}
		if n := (to - from) * features; len(s.zeros) < n {
			s.zeros = make([]float32, n)
		}
		for _, b := range []pass.Buffer{s.state.h, s.state.c} {
			if err := s.session.Write(ctx, b.At(from*features), s.zeros[:(to-from)*features]); err != nil {
				return err
			}
		}
		for i := from; i < to; i++ {
			s.rows[i].stale, s.rows[i].used = false, false
		}
		from = to
	}
	return nil
}

// Close frees what the streams hold. It may be called again, and on nil.
func (s *Streams) Close() error {
	if s == nil || s.session == nil {
		return nil
	}
	return s.session.Close()
}
