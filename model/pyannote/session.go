package pyannote

import (
	"context"
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/model/internal/parallel"
	"github.com/tandem-gpu/tandem/model/internal/windows"
	"github.com/tandem-gpu/tandem/pass"
)

// A SessionConfig configures a session. The zero value is good.
type SessionConfig struct {
	Batch   int       // windows at a time; 0: 32
	Samples int       // the most samples of a window; 0: 160000, ten seconds
	Math    pass.Math // of all recordings
	Latency pass.Latency
	// Trace, if not nil, is called with intermediate results, for the windows of a batch
	// at a time: "sincnet" [windows][frames][60] and "lstm" [windows][frames][2·hidden],
	// with as many frames as the longest window has; rows beyond a window's own are 0.
	Trace func(name string, values []float32)
}

const (
	defaultBatch   = 32
	maxBatch       = 1 << 12
	defaultSamples = 10 * SampleRate
	maxSamples     = 600 * SampleRate
)

// A Session computes windows. Its memory does not depend on how many there are: it is
// that of the largest batch. One goroutine at a time may use it.
type Session struct {
	model   *Model
	cfg     SessionConfig
	session pass.Session
	sizes   map[int]*recording // by number of windows: a few
	samples []float32
	lengths []uint32
}

// A recording is for some windows.
type recording struct {
	pass.Recording
	in, lengths pass.Input
	out         pass.Output
	traced      windows.Traced
}

// NewSession opens a session. Work is compiled when it is first needed.
func (m *Model) NewSession(ctx context.Context, cfg SessionConfig) (*Session, error) {
	if cfg.Batch == 0 {
		cfg.Batch = defaultBatch
	}
	if cfg.Samples == 0 {
		cfg.Samples = defaultSamples
	}
	if cfg.Batch < 1 || cfg.Batch > maxBatch || cfg.Samples < FrameField || cfg.Samples > maxSamples {
		return nil, fmt.Errorf("pyannote: session: want a batch of 1 to %d windows of %d to %d samples, given %d of %d: %w", maxBatch, FrameField, maxSamples, cfg.Batch, cfg.Samples, pass.ErrInvalid)
	}
	session, err := m.params.NewSession(ctx, cfg.Latency)
	if err != nil {
		return nil, err
	}
	return &Session{model: m, cfg: cfg, session: session, sizes: map[int]*recording{}}, nil
}

// Segment takes any number of windows, mono at 16 kHz, each of at least 991 samples and
// at most those of the session. It returns for each window the logarithms of the
// probabilities of classes, [Frames][classes]. A window's result does not depend on the
// others: a shorter one is not filled up. A sample that is NaN or infinite is refused
// with pass.ErrInvalid. The results are the caller's.
func (s *Session) Segment(ctx context.Context, all ...[]float32) ([][]float32, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	wrong := make([]error, len(all))
	parallel.For(len(all), 4*s.cfg.Samples, func(from, to int) {
		for i, w := range all[from:to] {
			wrong[from+i] = s.check(w)
		}
	})
	for i, err := range wrong {
		if err != nil {
			return nil, fmt.Errorf("pyannote: segment: window %d: %w", i, err)
		}
	}
	result := make([][]float32, 0, len(all))
	for left := all; len(left) > 0; {
		n := windows.Next(len(left), s.cfg.Batch)
		values, err := s.run(ctx, left[:n])
		if err != nil {
			return nil, fmt.Errorf("pyannote: segment: %w", err)
		}
		each := len(values) / n
		for i, w := range left[:n] {
			result = append(result, slices.Clone(values[i*each:i*each+Frames(len(w))*s.model.cfg.Classes]))
		}
		left = left[n:]
	}
	return result, nil
}

// check looks at a window.
func (s *Session) check(w []float32) error {
	if len(w) < FrameField || len(w) > s.cfg.Samples {
		return fmt.Errorf("want %d to %d samples, given %d: %w", FrameField, s.cfg.Samples, len(w), pass.ErrInvalid)
	}
	return windows.Finite("sample", w)
}

// run returns [windows][frames of a session's window][classes].
func (s *Session) run(ctx context.Context, all [][]float32) ([]float32, error) {
	n := len(all)
	r, err := s.recording(ctx, n)
	if err != nil {
		return nil, err
	}
	s.samples = slices.Grow(s.samples[:0], n*s.cfg.Samples)[:n*s.cfg.Samples]
	s.lengths = slices.Grow(s.lengths[:0], n*(stages+1))[:n*(stages+1)]
	parallel.For(n, 4*s.cfg.Samples, func(from, to int) {
		for i := from; i < to; i++ {
			copy(s.samples[i*s.cfg.Samples:], all[i]) // what follows is not looked at
		}
	})
	for i, w := range all {
		for stage, length := range steps(len(w)) {
			s.lengths[stage*n+i] = uint32(length)
		}
	}
	run, err := r.Run(ctx, r.in.F32(s.samples), r.lengths.U32(s.lengths))
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
	rec, err := s.session.Record(ctx, pass.RecordOptions{Label: fmt.Sprintf("pyannote of %d", n), Math: s.cfg.Math}, func(p pass.Pass) {
		r.in = p.Input(pass.F32, n*s.cfg.Samples)
		r.lengths = p.Input(pass.U32, n*(stages+1))
		y := s.model.segment(p, r.in.View(), r.lengths.View(), n, s.cfg.Samples, func(name string, v pass.View, elements int) {
			r.traced.Keep(p, s.cfg.Trace, name, v, elements)
		})
		r.out = p.Output(y, n*Frames(s.cfg.Samples)*s.model.cfg.Classes)
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
		return fmt.Errorf("pyannote: session: not opened: %w", pass.ErrInvalid)
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
