package wespeaker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/model/internal/parallel"
	"github.com/tandem-gpu/tandem/model/internal/windows"
	"github.com/tandem-gpu/tandem/pass"
)

// A SessionConfig configures a session. The zero value is good.
type SessionConfig struct {
	Batch   int       // windows at a time; 0: 8
	Masks   int       // the most masks of a window; 0: 3
	Math    pass.Math // of all recordings
	Latency pass.Latency
	// Trace, if not nil, is called with intermediate results, for the windows of a batch
	// at a time: "stem", "layer1", "layer2", "layer3" and "layer4", images
	// [windows][lines][columns][channels].
	Trace func(name string, values []float32)
}

const (
	defaultBatch = 8
	maxBatch     = 1 << 10
	defaultMasks = 3
	maxMasks     = 1 << 10
	// maxSizes is how many recordings a session keeps: for windows of other lengths the
	// one that was not used for longest is given up.
	maxSizes = 8
)

// A Session makes embeddings. Its memory is that of its largest recordings. One goroutine
// at a time may use it.
type Session struct {
	model   *Model
	cfg     SessionConfig
	session pass.Session
	kept    []*recording // used last, last
	data    []float32
	masks   []float32
}

// A size is what a recording is for.
type size struct {
	windows, frames int
	features        bool // they are given, not samples
}

type recording struct {
	pass.Recording
	size      size
	in, masks pass.Input
	out       pass.Output
	traced    windows.Traced
}

// NewSession opens a session. Work is compiled when it is first needed.
func (m *Model) NewSession(ctx context.Context, cfg SessionConfig) (*Session, error) {
	if cfg.Batch == 0 {
		cfg.Batch = defaultBatch
	}
	if cfg.Masks == 0 {
		cfg.Masks = defaultMasks
	}
	if cfg.Batch < 1 || cfg.Batch > maxBatch || cfg.Masks < 1 || cfg.Masks > maxMasks {
		return nil, fmt.Errorf("wespeaker: session: want a batch of 1 to %d windows and 1 to %d masks, given %d and %d: %w", maxBatch, maxMasks, cfg.Batch, cfg.Masks, pass.ErrInvalid)
	}
	session, err := m.params.NewSession(ctx, cfg.Latency)
	if err != nil {
		return nil, err
	}
	return &Session{model: m, cfg: cfg, session: session}, nil
}

// Embed takes any number of windows and returns for each the embeddings of its masks,
// [masks][width]. Windows of the same length that follow each other are taken together. A
// mask of zeros gives an embedding that says nothing. The results are the caller's.
func (s *Session) Embed(ctx context.Context, all ...Window) ([][][]float32, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	sizes := make([]size, len(all))
	for i, w := range all {
		k, err := s.check(w)
		if err != nil {
			return nil, fmt.Errorf("wespeaker: embed: window %d: %w", i, err)
		}
		sizes[i] = k
	}
	result := make([][][]float32, 0, len(all))
	for from := 0; from < len(all); {
		like := 1
		for from+like < len(all) && sizes[from+like] == sizes[from] {
			like++
		}
		k := sizes[from]
		k.windows = windows.Next(like, s.cfg.Batch)
		values, err := s.run(ctx, k, all[from:from+k.windows])
		if err != nil {
			return nil, fmt.Errorf("wespeaker: embed: %w", err)
		}
		width := s.model.cfg.Width
		for i, w := range all[from : from+k.windows] {
			embeddings := make([][]float32, max(len(w.Masks), 1))
			for j := range embeddings {
				at := (i*s.cfg.Masks + j) * width
				embeddings[j] = slices.Clone(values[at : at+width])
			}
			result = append(result, embeddings)
		}
		from += k.windows
	}
	return result, nil
}

// run returns [windows][masks of the session][width].
func (s *Session) run(ctx context.Context, k size, all []Window) ([]float32, error) {
	r, err := s.recording(ctx, k)
	if err != nil {
		return nil, err
	}
	each, columns := k.frames*s.model.cfg.Mels, halved(k.frames, 3)
	if !k.features {
		each = samplesOf(k.frames)
	}
	s.data, s.masks = slices.Grow(s.data[:0], len(all)*each)[:len(all)*each], s.masks[:0]
	parallel.For(len(all), 4*each, func(from, to int) {
		for i := from; i < to; i++ {
			given := all[i].Samples
			if k.features {
				given = all[i].Features
			}
			copy(s.data[i*each:(i+1)*each], given)
		}
	})
	for _, w := range all {
		for j := range s.cfg.Masks {
			s.masks = w.appendMask(s.masks, j, columns)
		}
	}
	run, err := r.Run(ctx, r.in.F32(s.data), r.masks.F32(s.masks))
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

// recording returns the recording for a size, a new one in place of the one that was not
// used for longest if there are too many.
func (s *Session) recording(ctx context.Context, k size) (*recording, error) {
	if i := slices.IndexFunc(s.kept, func(r *recording) bool { return r.size == k }); i >= 0 {
		r := s.kept[i]
		s.kept = append(slices.Delete(s.kept, i, i+1), r)
		return r, nil
	}
	if len(s.kept) == maxSizes {
		err := s.kept[0].Close()
		s.kept = slices.Delete(s.kept, 0, 1)
		if err != nil {
			return nil, err
		}
	}
	r := &recording{size: k}
	label := fmt.Sprintf("wespeaker of %d × %d frames", k.windows, k.frames)
	rec, err := s.session.Record(ctx, pass.RecordOptions{Label: label, Math: s.cfg.Math}, func(p pass.Pass) {
		m := s.model
		features := k.windows * k.frames * m.cfg.Mels
		var mel pass.View
		if k.features {
			r.in = p.Input(pass.F32, features)
			mel = r.in.View()
		} else {
			samples := samplesOf(k.frames)
			r.in = p.Input(pass.F32, k.windows*samples)
			mel = p.Temp(pass.F32, features).View()
			p.Do(pass.LogMel{X: r.in.View(), W: m.mel, Y: mel, Batch: k.windows, Samples: samples})
		}
		r.masks = p.Input(pass.F32, k.windows*s.cfg.Masks*halved(k.frames, 3))
		e := m.embed(p, mel, r.masks.View(), k, s.cfg.Masks, func(name string, x image) {
			r.traced.Keep(p, s.cfg.Trace, name, x.v, x.len())
		})
		r.out = p.Output(e, k.windows*s.cfg.Masks*m.cfg.Width)
	})
	if err != nil {
		return nil, err
	}
	r.Recording = rec
	s.kept = append(s.kept, r)
	return r, nil
}

// open opens a session that nobody configured.
func (m *Model) open(ctx context.Context) (*Session, error) {
	return m.NewSession(ctx, SessionConfig{})
}

// usable refuses sessions that NewSession did not open, and those of closed models.
func (s *Session) usable() error {
	if s.session == nil {
		return fmt.Errorf("wespeaker: session: not opened: %w", pass.ErrInvalid)
	}
	return s.model.params.Usable()
}

// Close frees what the session holds. It may be called again, and on nil.
func (s *Session) Close() error {
	if s == nil || s.session == nil {
		return nil
	}
	var errs []error
	for _, r := range s.kept {
		errs = append(errs, r.Close())
	}
	s.kept = nil
	return errors.Join(append(errs, s.session.Close())...)
}
