package whisper

import (
	"context"
	"errors"
	"fmt"

	"github.com/tandem-gpu/tandem/model/internal/greedy"
	"github.com/tandem-gpu/tandem/model/internal/windows"
	"github.com/tandem-gpu/tandem/pass"
)

// A SessionConfig configures a session. The zero value is good.
type SessionConfig struct {
	Batch   int        // windows at a time; 0: 1
	Cache   pass.DType // of keys and values, pass.F32 or pass.F16; 0: F32
	Math    pass.Math  // of all recordings
	Latency pass.Latency
	// Trace, if not nil, is called with intermediate results of each Encode, in order:
	// "mel" [batch][frames][mels], unless features were given; "after_conv",
	// "after_layer_0", … and "encoder", [batch][positions][width].
	Trace func(name string, values []float32)
}

// maxBatch bounds the windows of a session.
const maxBatch = 1 << 10

// A Session encodes and decodes a batch of windows at a time: Encode, then Decode as
// often as wanted. Its memory does not depend on the length of audio: caches, the ids,
// and the workspace of its largest recording. One goroutine at a time may use it.
type Session struct {
	model   *Model
	cfg     SessionConfig
	session pass.Session
	iota    pass.Buffer
	caches  []caches
	loop    *greedy.Loop
	encode  [2]*encodeRecording // from samples, and from features
	samples []float32
	encoded int  // windows that the caches hold
	masked  Mode // whose masks the loop has; noMode: none
}

type encodeRecording struct {
	pass.Recording
	in     pass.Input
	traced windows.Traced
}

// NewSession opens a session. All its state is allocated now; work is compiled when it
// is first needed.
func (m *Model) NewSession(ctx context.Context, cfg SessionConfig) (*Session, error) {
	if cfg.Batch == 0 {
		cfg.Batch = 1
	}
	if cfg.Batch < 1 || cfg.Batch > maxBatch {
		return nil, fmt.Errorf("whisper: session: want a batch of 1 to %d windows, given %d: %w", maxBatch, cfg.Batch, pass.ErrInvalid)
	}
	session, err := m.params.NewSession(ctx, cfg.Latency)
	if err != nil {
		return nil, err
	}
	s := &Session{model: m, cfg: cfg, session: session, masked: noMode}
	if err := s.alloc(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("whisper: %w", err), session.Close())
	}
	return s, nil
}

func (s *Session) alloc(ctx context.Context) error {
	c, batch := s.model.cfg, s.cfg.Batch
	numbers := make([]uint32, batch*c.AudioPositions)
	for i := range numbers {
		numbers[i] = uint32(i % c.AudioPositions)
	}
	var err error
	if s.iota, err = s.session.Alloc(pass.U32, len(numbers)); err != nil {
		return err
	}
	if err := s.session.Write(ctx, s.iota.View(), numbers); err != nil {
		return err
	}
	s.caches = make([]caches, c.DecoderLayers)
	for i := range s.caches {
		g := pass.CacheConfig{Heads: c.DecoderHeads, HeadDim: c.Width / c.DecoderHeads, Capacity: c.TextPositions, Batch: batch, Type: s.cfg.Cache}
		if s.caches[i].self, err = s.session.NewCache(g); err != nil {
			return err
		}
		g.Capacity = c.AudioPositions
		if s.caches[i].cross, err = s.session.NewCache(g); err != nil {
			return err
		}
	}
	net := greedy.Network{
		Hidden: func(p pass.Pass, r greedy.Rows) pass.View { return s.model.decode(p, r, s.caches) },
		Head:   s.model.tokens, Positions: c.TextPositions, Masked: true,
	}
	if c.Tokens.End >= 0 {
		net.Stop = []uint32{uint32(c.Tokens.End)}
	}
	s.loop, err = greedy.New(s.session, net, batch, pass.RecordOptions{Label: "whisper", Math: s.cfg.Math})
	return err
}

// Encode takes the samples of some windows, mono at 16 kHz, at most the session's batch
// and each at most [Config.Samples] long; shorter ones are filled up with zeros.
func (s *Session) Encode(ctx context.Context, all ...[]float32) error {
	if err := s.usable(); err != nil {
		return err
	}
	each := s.model.cfg.Samples()
	if len(all) < 1 || len(all) > s.cfg.Batch {
		return fmt.Errorf("whisper: encode: want 1 to %d windows, given %d: %w", s.cfg.Batch, len(all), pass.ErrInvalid)
	}
	if s.samples == nil {
		s.samples = make([]float32, s.cfg.Batch*each)
	}
	clear(s.samples)
	for b, w := range all {
		if len(w) > each {
			return fmt.Errorf("whisper: encode: window %d: want at most %d samples, given %d: %w", b, each, len(w), pass.ErrInvalid)
		}
		if err := windows.Finite("sample", w); err != nil {
			return fmt.Errorf("whisper: encode: window %d: %w", b, err)
		}
		copy(s.samples[b*each:], w)
	}
	return s.run(ctx, 0, s.samples, len(all))
}

// EncodeMel takes features of as many windows as the session's batch,
// [batch][frames][mels] with twice as many frames as there are audio positions, in place
// of samples.
func (s *Session) EncodeMel(ctx context.Context, mel []float32) error {
	if err := s.usable(); err != nil {
		return err
	}
	if want := s.cfg.Batch * 2 * s.model.cfg.AudioPositions * s.model.cfg.Mels; len(mel) != want {
		return fmt.Errorf("whisper: encode: want %d features, given %d: %w", want, len(mel), pass.ErrInvalid)
	}
	return s.run(ctx, 1, mel, s.cfg.Batch)
}

func (s *Session) run(ctx context.Context, kind int, in []float32, count int) error {
	s.encoded = 0
	r, err := s.encoder(ctx, kind)
	if err != nil {
		return fmt.Errorf("whisper: encode: %w", err)
	}
	run, err := r.Run(ctx, r.in.F32(in))
	if err != nil {
		return fmt.Errorf("whisper: encode: %w", err)
	}
	defer run.Close()
	if err := r.traced.Report(run, s.cfg.Trace); err != nil {
		return fmt.Errorf("whisper: encode: %w", err)
	}
	s.encoded = count
	return nil
}

// encoder returns the recording of the encoder, from samples (0) or features (1).
func (s *Session) encoder(ctx context.Context, kind int) (*encodeRecording, error) {
	if s.encode[kind] != nil {
		return s.encode[kind], nil
	}
	m, batch := s.model, s.cfg.Batch
	samples, features := batch*m.cfg.Samples(), batch*2*m.cfg.AudioPositions*m.cfg.Mels
	r := &encodeRecording{}
	rec, err := s.session.Record(ctx, pass.RecordOptions{Label: "whisper encoder", Math: s.cfg.Math}, func(p pass.Pass) {
		see := func(name string, v pass.View, n int) {
			r.traced.Keep(p, s.cfg.Trace, name, v, n)
		}
		var mel pass.View
		if kind == 0 {
			r.in = p.Input(pass.F32, samples)
			mel = p.Temp(pass.F32, features).View()
			p.Do(pass.LogMel{X: r.in.View(), W: m.mel, Y: mel, Batch: batch, Samples: samples / batch})
			see("mel", mel, features)
		} else {
			r.in = p.Input(pass.F32, features)
			mel = r.in.View()
		}
		m.remember(p, m.encode(p, mel, batch, s.iota, see), batch, s.caches)
	})
	if err != nil {
		return nil, err
	}
	r.Recording = rec
	s.encode[kind] = r
	return r, nil
}

// open opens a session that nobody configured.
func (m *Model) open(ctx context.Context) (*Session, error) {
	return m.NewSession(ctx, SessionConfig{})
}

// usable refuses sessions that NewSession did not open, and those of closed models.
func (s *Session) usable() error {
	if s.session == nil {
		return fmt.Errorf("whisper: session: not opened: %w", pass.ErrInvalid)
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
