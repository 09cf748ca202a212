package ge2e

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/model/internal/windows"
	"github.com/tandem-gpu/tandem/pass"
)

// A SessionConfig configures a session. The zero value is good.
type SessionConfig struct {
	Batch   int       // windows at a time; 0: 64
	Math    pass.Math // of all recordings
	Latency pass.Latency
	// Trace, if not nil, is called with intermediate results, for the windows of a batch
	// at a time: "mel" [windows][160][40], then "lstm0_last_h", "lstm1_last_h", …
	// [windows][hidden], h of each layer at the last frame.
	Trace func(name string, values []float32)
}

const (
	defaultBatch = 64
	maxBatch     = 1 << 12
)

// A Session makes embeddings. Its memory does not depend on the length of audio: it is
// that of the largest batch. One goroutine at a time may use it.
type Session struct {
	model   *Model
	cfg     SessionConfig
	session pass.Session
	sizes   map[int]*recording // by number of windows: a few
	samples []float32
}

// A recording is for some windows.
type recording struct {
	pass.Recording
	in     pass.Input
	out    pass.Output
	traced windows.Traced
}

// NewSession opens a session. Work is compiled when it is first needed.
func (m *Model) NewSession(ctx context.Context, cfg SessionConfig) (*Session, error) {
	if cfg.Batch == 0 {
		cfg.Batch = defaultBatch
	}
	if cfg.Batch < 1 || cfg.Batch > maxBatch {
		return nil, fmt.Errorf("ge2e: session: want a batch of 1 to %d windows, given %d: %w", maxBatch, cfg.Batch, pass.ErrInvalid)
	}
	session, err := m.params.NewSession(ctx, cfg.Latency)
	if err != nil {
		return nil, err
	}
	return &Session{model: m, cfg: cfg, session: session, sizes: map[int]*recording{}}, nil
}

// An Utterance is what a clip sounds like.
type Utterance struct {
	Embedding []float32 // [width], of length 1; zeros if those of all windows are
	Windows   []Window
}

// A Window is what 1.6 s of a clip sound like.
type Window struct {
	Start     int       // its first sample
	Embedding []float32 // [width], of length 1, or zeros
}

// Embed takes a clip, mono at 16 kHz in [−1, 1] and at least one sample long. One that is
// quieter than −30 dB of full scale (root of the mean square) is raised to that; a louder
// one is taken as it is. A sample that is NaN or infinite is refused with
// pass.ErrInvalid. The results are the caller's.
func (s *Session) Embed(ctx context.Context, samples []float32) (Utterance, error) {
	if err := s.usable(); err != nil {
		return Utterance{}, err
	}
	if len(samples) == 0 {
		return Utterance{}, fmt.Errorf("ge2e: embed: want at least one sample, given none: %w", pass.ErrInvalid)
	}
	if err := windows.Finite("sample", samples); err != nil {
		return Utterance{}, fmt.Errorf("ge2e: embed: %w", err)
	}
	factor := gain(samples)
	left := starts(len(samples))
	var u Utterance
	var all [][]float32
	for len(left) > 0 {
		n := windows.Next(len(left), s.cfg.Batch)
		if want := n * inputSamples; len(s.samples) < want {
			s.samples = make([]float32, want)
		}
		for i, start := range left[:n] {
			cut(s.samples[i*inputSamples:], samples, start, factor)
		}
		values, err := s.run(ctx, n)
		if err != nil {
			return Utterance{}, fmt.Errorf("ge2e: embed: %w", err)
		}
		width := s.model.cfg.Width
		for i, start := range left[:n] {
			e := values[i*width : (i+1)*width : (i+1)*width]
			all = append(all, e)
			u.Windows = append(u.Windows, Window{start * hop, e})
		}
		left = left[n:]
	}
	u.Embedding = mean(all, s.model.cfg.Width)
	return u, nil
}

// run returns the embeddings of the first n windows of s.samples.
func (s *Session) run(ctx context.Context, n int) ([]float32, error) {
	r, err := s.recording(ctx, n)
	if err != nil {
		return nil, err
	}
	run, err := r.Run(ctx, r.in.F32(s.samples[:n*inputSamples]))
	if err != nil {
		return nil, err
	}
	defer run.Close()
	if err := r.traced.Report(run, s.cfg.Trace); err != nil {
		return nil, err
	}
	values := make([]float32, r.out.Len())
	return values, run.ReadF32(r.out, values)
}

func (s *Session) recording(ctx context.Context, n int) (*recording, error) {
	if r := s.sizes[n]; r != nil {
		return r, nil
	}
	r := &recording{}
	rec, err := s.session.Record(ctx, pass.RecordOptions{Label: fmt.Sprintf("ge2e of %d", n), Math: s.cfg.Math}, func(p pass.Pass) {
		m, c := s.model, s.model.cfg
		r.in = p.Input(pass.F32, n*inputSamples)
		temp := func(n int) pass.View { return p.Temp(pass.F32, n).View() }
		mel, y := temp(n*windowFrames*mels), temp(n*windowFrames*c.Hidden)
		state := c.Layers * c.Hidden
		h, cell := temp(n*state), temp(n*state)
		e, unit := temp(n*c.Width), temp(n*c.Width)
		p.Do(
			pass.LogMel{X: r.in.View(), W: m.mel, Y: mel, Batch: n, Samples: inputSamples},
			pass.LSTM{X: mel, W: m.lstm, Y: y, Batch: n, Time: windowFrames, H: h, C: cell},
			pass.Gemm{A: h.At(state - c.Hidden).Rows(state), W: m.linear, C: e, Rows: n, Epilogue: pass.ReLU},
			pass.L2Norm{X: e, Y: unit, Rows: n, Cols: c.Width},
		)
		r.traced.Keep(p, s.cfg.Trace, "mel", mel, n*windowFrames*mels)
		if s.cfg.Trace != nil {
			for l := range c.Layers {
				last := temp(n * c.Hidden)
				p.Do(pass.Copy{From: h.At(l * c.Hidden).Rows(state), To: last, Rows: n, Cols: c.Hidden})
				r.traced.Keep(p, s.cfg.Trace, fmt.Sprintf("lstm%d_last_h", l), last, n*c.Hidden)
			}
		}
		r.out = p.Output(unit, n*c.Width)
	})
	if err != nil {
		return nil, err
	}
	r.Recording = rec
	s.sizes[n] = r
	return r, nil
}

// open opens a session that nobody configured.
func (m *Model) open(ctx context.Context) (*Session, error) {
	return m.NewSession(ctx, SessionConfig{})
}

// usable refuses sessions that NewSession did not open, and those of closed models.
func (s *Session) usable() error {
	if s.session == nil {
		return fmt.Errorf("ge2e: session: not opened: %w", pass.ErrInvalid)
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
