package moonshine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/model/internal/greedy"
	"github.com/tandem-gpu/tandem/model/internal/windows"
	"github.com/tandem-gpu/tandem/pass"
)

// SampleRate is the number of samples in a second.
const SampleRate = 16000

// A SessionConfig configures a session. The zero value is good.
type SessionConfig struct {
	Batch   int        // utterances at a time; 0: 1
	Seconds int        // length of the longest utterance, up to 128; 0: 32
	Cache   pass.DType // of keys and values, pass.F32 or pass.F16; 0: F32
	Math    pass.Math  // of all recordings
	Latency pass.Latency
	// Trace, if not nil, is called with intermediate results of each Encode, in order:
	// "stem", "after_layer_0", … and "encoder", [batch][frames][width], with as many frames
	// as the utterances are filled up to.
	Trace func(name string, values []float32)
}

// maxBatch bounds the utterances of a session.
const maxBatch = 1 << 10

// seconds are the lengths that utterances are filled up to.
var seconds = [...]int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}

// A Session encodes and decodes a batch of utterances at a time: Encode, then Decode as
// often as wanted. One goroutine at a time may use it.
type Session struct {
	model   *Model
	cfg     SessionConfig
	session pass.Session
	frames  pass.Buffer // U32 [batch]: of the encoder, for each utterance
	caches  []caches
	loop    *greedy.Loop
	encode  map[int]*encodeRecording // by samples
	samples []float32
	encoded []int // samples of the utterances that the caches hold
}

type encodeRecording struct {
	pass.Recording
	in, lengths pass.Input
	traced      windows.Traced
}

// NewSession opens a session. All its state is allocated now; work is compiled when it
// is first needed.
func (m *Model) NewSession(ctx context.Context, cfg SessionConfig) (*Session, error) {
	if cfg.Batch == 0 {
		cfg.Batch = 1
	}
	if cfg.Seconds == 0 {
		cfg.Seconds = 32
	}
	if longest := seconds[len(seconds)-1]; cfg.Batch < 1 || cfg.Batch > maxBatch || cfg.Seconds < 1 || cfg.Seconds > longest {
		return nil, fmt.Errorf("moonshine: session: want a batch of 1 to %d utterances of 1 to %d seconds, given %d and %d: %w", maxBatch, longest, cfg.Batch, cfg.Seconds, pass.ErrInvalid)
	}
	session, err := m.params.NewSession(ctx, cfg.Latency)
	if err != nil {
		return nil, err
	}
	s := &Session{model: m, cfg: cfg, session: session, encode: map[int]*encodeRecording{}}
	if err := s.alloc(); err != nil {
		return nil, errors.Join(fmt.Errorf("moonshine: %w", err), session.Close())
	}
	return s, nil
}

func (s *Session) alloc() error {
	c, batch := s.model.cfg, s.cfg.Batch
	var err error
	if s.frames, err = s.session.Alloc(pass.U32, batch); err != nil {
		return err
	}
	s.caches = make([]caches, c.DecoderLayers)
	for i := range s.caches {
		g := pass.CacheConfig{Heads: c.DecoderHeads, HeadDim: c.Width / c.DecoderHeads, Capacity: c.Positions, Batch: batch, Type: s.cfg.Cache}
		if s.caches[i].self, err = s.session.NewCache(g); err != nil {
			return err
		}
		g.Capacity = steps(s.bucket(s.cfg.Seconds * SampleRate))[len(stem)-1]
		if s.caches[i].cross, err = s.session.NewCache(g); err != nil {
			return err
		}
	}
	net := greedy.Network{
		Hidden: func(p pass.Pass, r greedy.Rows) pass.View {
			return s.model.decode(p, r, s.caches, pass.IndexEach(s.frames.View()))
		},
		Head: s.model.tokens, Positions: c.Positions,
	}
	if c.End >= 0 {
		net.Stop = []uint32{uint32(c.End)}
	}
	s.loop, err = greedy.New(s.session, net, batch, pass.RecordOptions{Label: "moonshine", Math: s.cfg.Math})
	return err
}

// bucket returns how many samples an utterance of so many is filled up to.
func (s *Session) bucket(samples int) int {
	for _, n := range seconds {
		if samples <= n*SampleRate {
			return min(n, s.cfg.Seconds) * SampleRate
		}
	}
	return s.cfg.Seconds * SampleRate
}

// Encode takes the samples of some utterances, mono at 16 kHz, at most the session's
// batch. Each is of [MinSamples] to the session's Seconds.
func (s *Session) Encode(ctx context.Context, utterances ...[]float32) error {
	if err := s.usable(); err != nil {
		return err
	}
	s.encoded = nil
	if len(utterances) < 1 || len(utterances) > s.cfg.Batch {
		return fmt.Errorf("moonshine: encode: want 1 to %d utterances, given %d: %w", s.cfg.Batch, len(utterances), pass.ErrInvalid)
	}
	longest := 0
	for b, u := range utterances {
		if most := s.cfg.Seconds * SampleRate; len(u) < MinSamples || len(u) > most {
			return fmt.Errorf("moonshine: encode: utterance %d: want %d to %d samples, given %d: %w", b, MinSamples, most, len(u), pass.ErrInvalid)
		}
		if err := windows.Finite("sample", u); err != nil {
			return fmt.Errorf("moonshine: encode: utterance %d: %w", b, err)
		}
		longest = max(longest, len(u))
	}
	if err := s.run(ctx, s.bucket(longest), utterances); err != nil {
		return fmt.Errorf("moonshine: encode: %w", err)
	}
	for _, u := range utterances {
		s.encoded = append(s.encoded, len(u))
	}
	return nil
}

// run encodes utterances that are filled up to the given number of samples.
func (s *Session) run(ctx context.Context, samples int, utterances [][]float32) error {
	r, err := s.encoder(ctx, samples)
	if err != nil {
		return err
	}
	batch := s.cfg.Batch
	s.samples = slices.Grow(s.samples[:0], batch*samples)[:batch*samples]
	clear(s.samples)
	words := make([]uint32, (len(stem)+1)*batch)
	for b, u := range utterances {
		copy(s.samples[b*samples:], u)
		words[b] = uint32(len(u))
		for i, n := range steps(len(u)) {
			words[(i+1)*batch+b] = uint32(n)
		}
	}
	run, err := r.Run(ctx, r.in.F32(s.samples), r.lengths.U32(words))
	if err != nil {
		return err
	}
	defer run.Close()
	return r.traced.Report(run, s.cfg.Trace)
}

// encoder returns the recording of the encoder for so many samples.
func (s *Session) encoder(ctx context.Context, samples int) (*encodeRecording, error) {
	if r := s.encode[samples]; r != nil {
		return r, nil
	}
	m, batch := s.model, s.cfg.Batch
	r := &encodeRecording{}
	opt := pass.RecordOptions{Label: fmt.Sprintf("moonshine encoder of %d s", samples/SampleRate), Math: s.cfg.Math}
	rec, err := s.session.Record(ctx, opt, func(p pass.Pass) {
		r.in = p.Input(pass.F32, batch*samples)
		r.lengths = p.Input(pass.U32, (len(stem)+1)*batch)
		see := func(name string, v pass.View, n int) {
			r.traced.Keep(p, s.cfg.Trace, name, v, n)
		}
		x := m.encode(p, r.in.View(), batch, samples, lengths{r.lengths.View(), batch}, see)
		m.remember(p, x, batch, steps(samples)[len(stem)-1], s.caches)
		p.Do(pass.Copy{From: r.lengths.At(len(stem) * batch), To: s.frames.View(), Rows: 1, Cols: batch})
	})
	if err != nil {
		return nil, err
	}
	r.Recording = rec
	s.encode[samples] = r
	return r, nil
}

// open opens a session that nobody configured.
func (m *Model) open(ctx context.Context) (*Session, error) {
	return m.NewSession(ctx, SessionConfig{})
}

// usable refuses sessions that NewSession did not open, and those of closed models.
func (s *Session) usable() error {
	if s.session == nil {
		return fmt.Errorf("moonshine: session: not opened: %w", pass.ErrInvalid)
	}
	return s.model.params.Usable()
}

// Close frees what the session holds. It may be called again, and on nil.
func (s *Session) Close() error {
	if s == nil || s.session == nil {
		return nil
	}
	return s.session.Close()
}
