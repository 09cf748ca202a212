package silero

import (
	"context"
	"errors"
	"fmt"

	"github.com/tandem-gpu/tandem/model/internal/windows"
	"github.com/tandem-gpu/tandem/pass"
)

// blockChunks are the numbers of chunks that are processed at once. Audio is taken in
// the largest that fit, so that few recordings serve every length, none of them with
// work that is thrown away, and memory is bounded.
var blockChunks = [...]int{1, 4, 16, 64, 256, 1024}

// A Stream takes one audio signal as it comes and gives the probability of each chunk.
// One goroutine at a time may use it.
type Stream struct {
	model   *Model
	session pass.Session
	state   state
	blocks  [len(blockChunks)]*block

	samples []float32 // those of the chunk before, then those that wait for their chunk
	used    bool      // the state is not that of the beginning
	lost    error     // why the state is undefined
	flight  [2]started
	flying  int
	out     []float32
}

// A block is the recording for some chunks in a row.
type block struct {
	chunks int
	rec    pass.Recording
	in     pass.Input
	out    pass.Output
	binds  [1]pass.Bind // kept, so that a step allocates nothing
}

type started struct {
	run pass.Run
	b   *block
}

// NewStream opens a stream for audio that is arriving: its work is short and urgent.
func (m *Model) NewStream(ctx context.Context) (*Stream, error) {
	return m.newStream(ctx, pass.SessionConfig{Label: "silero stream", Latency: pass.Interactive})
}

// NewBatchStream opens a stream for audio that is there already, such as a long file
// that is read in pieces: what counts is how much gets done. Pieces of many seconds are
// best.
func (m *Model) NewBatchStream(ctx context.Context) (*Stream, error) {
	return m.newStream(ctx, pass.SessionConfig{Label: "silero batch", Latency: pass.Batch})
}

func (m *Model) newStream(ctx context.Context, cfg pass.SessionConfig) (*Stream, error) {
	if err := m.usable(); err != nil {
		return nil, err
	}
	session, err := m.dev.NewSession(cfg)
	if err != nil {
		return nil, fmt.Errorf("silero: %w", err)
	}
	s := &Stream{model: m, session: session, samples: make([]float32, contextSamples, itemSamples)}
	s.state, err = newState(session, 1)
	if err == nil && cfg.Latency == pass.Interactive {
		_, err = s.block(ctx, 0) // now, so that the first chunk need not wait for it
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("silero: %w", err), session.Close())
	}
	return s, nil
}

// Feed takes any number of samples, mono at 16 kHz, and returns the probability of every
// chunk that they complete. The slice is used again by the next call. A sample that is
// NaN or infinite is refused with pass.ErrInvalid, before any is taken. After any other
// error, the end of ctx included, the stream must be Reset.
func (s *Stream) Feed(ctx context.Context, samples []float32) ([]float32, error) {
	return s.feed(ctx, samples, nil)
}

// feed is Feed with a function that is told of every chunk that is done.
func (s *Stream) feed(ctx context.Context, samples []float32, done func(chunks int)) ([]float32, error) {
	s.out = s.out[:0]
	if err := s.usable(); err != nil {
		return nil, err
	}
	if err := windows.Finite("sample", samples); err != nil {
		return nil, fmt.Errorf("silero: %w", err)
	}
	for len(samples) > 0 {
		waiting := len(s.samples) - contextSamples
		k := largestBlock((waiting + len(samples)) / ChunkSamples)
		if k < 0 {
			s.samples = append(s.samples, samples...)
			break
		}
		n := blockChunks[k]*ChunkSamples - waiting
		s.samples = append(s.samples, samples[:n]...)
		samples = samples[n:]
		if err := s.start(ctx, k, done); err != nil {
			return nil, s.lose(err)
		}
	}
	for s.flying > 0 {
		if err := s.collect(ctx, done); err != nil {
			return nil, s.lose(err)
		}
	}
	return s.out, nil
}

// largestBlock returns the index of the largest block of at most n chunks, or -1.
func largestBlock(n int) int {
	k := len(blockChunks) - 1
	for k >= 0 && blockChunks[k] > n {
		k--
	}
	return k
}

// start begins the work of block k, whose samples are complete.
func (s *Stream) start(ctx context.Context, k int, done func(int)) error {
	s.used = true
	b, err := s.block(ctx, k)
	if err != nil {
		return err
	}
	if s.flying == len(s.flight) {
		if err := s.collect(ctx, done); err != nil {
			return err
		}
	}
	b.binds[0] = b.in.F32(s.samples)
	run, err := b.rec.Start(ctx, b.binds[:]...)
	if err != nil {
		return err
	}
	s.flight[s.flying] = started{run, b}
	s.flying++
	s.samples = append(s.samples[:0], s.samples[len(s.samples)-contextSamples:]...)
	return nil
}

// collect waits for the oldest block that was started and appends its probabilities.
func (s *Stream) collect(ctx context.Context, done func(int)) error {
	f := s.flight[0]
	s.flight[0] = s.flight[1]
	s.flying--
	defer f.run.Close()
	if err := f.run.Wait(ctx); err != nil {
		return err
	}
	at := len(s.out)
	for range f.b.chunks {
		s.out = append(s.out, 0)
	}
	if err := f.run.ReadF32(f.b.out, s.out[at:]); err != nil {
		return err
	}
	if i := notFinite(s.out[at:]); i >= 0 {
		return fmt.Errorf("probability %v: samples too large: %w", s.out[at+i], pass.ErrInvalid)
	}
	if done != nil {
		done(f.b.chunks)
	}
	return nil
}

// block returns the recording for block k.
func (s *Stream) block(ctx context.Context, k int) (*block, error) {
	if b := s.blocks[k]; b != nil {
		return b, nil
	}
	b := &block{chunks: blockChunks[k]}
	rec, err := s.session.Record(ctx, pass.RecordOptions{Label: fmt.Sprintf("silero %d chunks", b.chunks)}, func(p pass.Pass) {
		b.in = p.Input(pass.F32, contextSamples+b.chunks*ChunkSamples)
		// A chunk and the context before it overlap with the next: no copy is needed.
		x := s.model.encode(p, b.in.View().Batch(ChunkSamples), b.chunks)
		y := p.Temp(pass.F32, b.chunks*features)
		p.Do(pass.LSTM{
			X: x.View(), W: s.model.lstm, Y: y.View(), Time: b.chunks,
			H0: s.state.h.View(), C0: s.state.c.View(), H: s.state.h.View(), C: s.state.c.View(),
		})
		b.out = s.model.decide(p, y, b.chunks)
	})
	if err != nil {
		return nil, err
	}
	b.rec = rec
	s.blocks[k] = b
	return b, nil
}

// Flush ends the audio: if there are samples that wait for their chunk, it returns the
// probability of that chunk, filled with zeros, else none. The stream is as new then.
// The slice is used again by the next call.
func (s *Stream) Flush(ctx context.Context) ([]float32, error) {
	var out []float32
	if waiting := len(s.samples) - contextSamples; waiting > 0 {
		var err error
		if out, err = s.feed(ctx, make([]float32, ChunkSamples-waiting), nil); err != nil {
			return nil, err
		}
	} else if err := s.usable(); err != nil {
		return nil, err
	}
	if err := s.Reset(ctx); err != nil {
		return nil, err
	}
	return out, nil
}

// Reset forgets all audio: the stream is as new.
func (s *Stream) Reset(ctx context.Context) error {
	if err := s.opened(); err != nil {
		return err
	}
	for s.flying > 0 {
		s.flying--
		s.flight[s.flying].run.Close()
	}
	if s.used {
		zero := make([]float32, features)
		for _, b := range []pass.Buffer{s.state.h, s.state.c} {
			if err := s.session.Write(ctx, b.View(), zero); err != nil {
				return s.lose(err)
			}
		}
	}
	s.samples = s.samples[:contextSamples]
	clear(s.samples)
	s.used, s.lost = false, nil
	return nil
}

// Close frees what the stream holds. It may be called again, and on nil.
func (s *Stream) Close() error {
	if s == nil || s.session == nil {
		return nil
	}
	return s.session.Close()
}

func (s *Stream) usable() error {
	if err := s.opened(); err != nil {
		return err
	}
	if s.lost != nil {
		return fmt.Errorf("silero: stream: not Reset since: %w", s.lost)
	}
	return nil
}

// opened refuses the zero Stream, and one whose model is closed.
func (s *Stream) opened() error {
	if s.model == nil {
		return fmt.Errorf("silero: stream: not opened: %w", pass.ErrInvalid)
	}
	return s.model.usable()
}

// lose notes that the state is undefined.
func (s *Stream) lose(err error) error {
	s.lost = fmt.Errorf("silero: %w", err)
	return s.lost
}
