package asr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tandem-gpu/tandem/model/conformer"
	"github.com/tandem-gpu/tandem/model/internal/windows"
	"github.com/tandem-gpu/tandem/model/transducer"
	"github.com/tandem-gpu/tandem/pass"
)

// A Session transcribes with a network. Its memory is bounded by the window and the batch,
// however long the audio is. One goroutine at a time may use it.
type Session struct {
	net      Network
	cfg      SessionConfig
	window   int // samples
	overlap  int
	frames   int // of the encoder, in a window
	mel      pass.MelShape
	session  pass.Session
	state    pass.Buffer
	recs     map[size]*recording
	decoders map[int]*transducer.Decoder // by the number of items
	samples  []float32                   // of a batch
	lengths  []uint32
}

// A size is what a recording is for.
type size struct{ items, bucket int }

// A recording takes the samples of some windows to classes of frames, or to frames where
// a decoder wants them.
type recording struct {
	rec     pass.Recording
	samples pass.Input  // [items][filled]
	lengths pass.Input  // samples, then those of the stages: [1 + stages][items]
	classes pass.Output // CTC: [items][frames]
	frames  int
}

// NewSession opens a session with a network, which may be closed before or after it. Work
// is compiled when it is first needed.
func NewSession(ctx context.Context, net Network, cfg SessionConfig) (*Session, error) {
	cfg, window, overlap, err := cfg.check(net)
	if err != nil {
		return nil, err
	}
	if net.Usable != nil {
		if err := net.Usable(); err != nil {
			return nil, err
		}
	}
	mel, ok := net.FrontEnd.Shape().(pass.MelShape)
	if !ok {
		return nil, fmt.Errorf("asr: session: front end: want the param of MelWeights, given %v: %w", net.FrontEnd, pass.ErrInvalid)
	}
	if net.Name == "" {
		net.Name = "asr"
	}
	session, err := net.Device.NewSession(pass.SessionConfig{Label: net.Name, Latency: cfg.Latency})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", net.Name, err)
	}
	s := &Session{
		net: net, cfg: cfg, window: window, overlap: overlap, mel: mel, session: session,
		recs: map[size]*recording{}, decoders: map[int]*transducer.Decoder{},
	}
	mels := mel.Frames(window)
	stages := net.Encoder.Stages(mels)
	s.frames = stages[len(stages)-1]
	if s.state, err = net.Encoder.State(ctx, session, mels); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: session: %w", net.Name, err), session.Close())
	}
	return s, nil
}

// FrameDuration returns the time from one frame of the encoder to the next.
func (s *Session) FrameDuration() time.Duration {
	return time.Duration(s.net.FrameSamples) * time.Second / SampleRate
}

// Transcribe transcribes audio of any length, mono at 16 kHz. A sample that is NaN or
// infinite is refused with pass.ErrInvalid. After an error the session may be used again.
func (s *Session) Transcribe(ctx context.Context, samples []float32, opt Options) (Result, error) {
	all, err := s.TranscribeAll(ctx, [][]float32{samples}, opt)
	if err != nil {
		return Result{}, err
	}
	return all[0], nil
}

// TranscribeAll transcribes each of several clips, whose windows share batches; see
// [Session.Transcribe].
func (s *Session) TranscribeAll(ctx context.Context, clips [][]float32, opt Options) ([]Result, error) {
	if s.session == nil {
		return nil, fmt.Errorf("asr: session: not opened: %w", pass.ErrInvalid)
	}
	if s.net.Usable != nil {
		if err := s.net.Usable(); err != nil {
			return nil, err
		}
	}
	parts := make([][]window, len(clips))
	var work []*window
	for i, samples := range clips {
		if err := windows.Finite("sample", samples); err != nil {
			return nil, fmt.Errorf("%s: clip %d: %w", s.net.Name, i, err)
		}
		parts[i] = split(i, len(samples), s.window, s.overlap)
		for j := range parts[i] {
			work = append(work, &parts[i][j])
		}
	}
	// Windows of one length go together.
	place := func(w *window) int { return bucket(w.to-w.from, s.window) }
	slices.SortStableFunc(work, func(a, b *window) int { return cmp.Compare(place(a), place(b)) })
	total := len(work)
	for len(work) > 0 {
		n := 1
		if n < s.cfg.Batch && len(work) >= s.cfg.Batch && place(work[s.cfg.Batch-1]) == place(work[0]) {
			n = s.cfg.Batch
		}
		if err := s.transcribe(ctx, clips, work[:n], place(work[0])); err != nil {
			return nil, fmt.Errorf("%s: %w", s.net.Name, err)
		}
		work = work[n:]
		if opt.Progress != nil {
			opt.Progress(float64(total-len(work)) / float64(total))
		}
	}
	results := make([]Result, len(clips))
	for i := range parts {
		r := &results[i]
		r.Tokens = join(parts[i], s.net.FrameSamples)
		r.Text = s.net.Vocabulary.Text(r.IDs())
	}
	return results, nil
}

// transcribe finds the tokens of windows that are filled up to one length.
func (s *Session) transcribe(ctx context.Context, clips [][]float32, batch []*window, bucket int) error {
	items := len(batch)
	rec, err := s.recording(ctx, size{items, bucket})
	if err != nil {
		return err
	}
	n := filled(bucket, s.window)
	s.samples = slices.Grow(s.samples[:0], items*n)[:items*n]
	s.lengths = slices.Grow(s.lengths[:0], rec.lengths.Len())[:rec.lengths.Len()]
	clear(s.samples)
	frames := make([]int, items)
	for i, w := range batch {
		copy(s.samples[i*n:], clips[w.clip][w.from:w.to])
		s.lengths[i] = uint32(w.to - w.from)
		for j, length := range s.net.Encoder.Stages(s.net.Encoder.Frames(w.to - w.from)) {
			s.lengths[(j+1)*items+i], frames[i] = uint32(length), length
		}
	}
	run, err := rec.rec.Run(ctx, rec.samples.F32(s.samples), rec.lengths.U32(s.lengths))
	if err != nil {
		return err
	}
	defer run.Close()
	if s.cfg.Head == CTCHead {
		classes := make([]uint32, items*rec.frames)
		if err := run.ReadU32(rec.classes, classes); err != nil {
			return err
		}
		for i, w := range batch {
			for _, span := range s.net.CTC.Collapse(classes[i*rec.frames:][:frames[i]]) {
				w.tokens = append(w.tokens, Token{span.Token, span.First, span.Last - span.First + 1})
			}
		}
		return nil
	}
	blank := s.net.Transducer.Config().Blank
	return s.decoders[items].Greedy(ctx, frames, func(i int, step transducer.Step) {
		if step.Token != blank {
			batch[i].tokens = append(batch[i].tokens, Token{step.Token, step.Frame, max(step.Advance, 1)})
		}
	})
}

// recording returns the recording for a size.
func (s *Session) recording(ctx context.Context, k size) (*recording, error) {
	if rec := s.recs[k]; rec != nil {
		return rec, nil
	}
	if s.cfg.Head == TransducerHead && s.decoders[k.items] == nil {
		d, err := s.net.Transducer.NewDecoder(ctx, s.session, transducer.DecoderConfig{Items: k.items, Frames: max(s.frames, 1), Math: s.cfg.Math})
		if err != nil {
			return nil, err
		}
		s.decoders[k.items] = d
	}
	rec := &recording{}
	label := fmt.Sprintf("%s %d × %d samples", s.net.Name, k.items, filled(k.bucket, s.window))
	var err error
	rec.rec, err = s.session.Record(ctx, pass.RecordOptions{Label: label, Math: s.cfg.Math}, func(p pass.Pass) { s.record(p, k, rec) })
	if err != nil {
		return nil, err
	}
	s.recs[k] = rec
	return rec, nil
}

func (s *Session) record(p pass.Pass, k size, rec *recording) {
	n := filled(k.bucket, s.window)
	mels := s.mel.Frames(n)
	stages := s.net.Encoder.Stages(mels)
	rec.samples, rec.lengths = p.Input(pass.F32, k.items*n), p.Input(pass.U32, (1+len(stages))*k.items)
	rec.frames = stages[len(stages)-1]
	in := conformer.Batch{Items: k.items, Frames: mels, State: s.state.View()}
	for i := range stages {
		in.Lengths = append(in.Lengths, pass.ItemsIn(rec.lengths.At((i+1)*k.items)))
	}
	features := p.Temp(pass.F32, k.items*mels*s.mel.Mels).View()
	p.Do(pass.LogMel{
		X: rec.samples.View(), W: s.net.FrontEnd, Y: features, Batch: k.items, Samples: n,
		Lengths: pass.ItemsIn(rec.lengths.View()),
	})
	x := s.net.Encoder.Encode(p, &in, features)
	if s.cfg.Head == TransducerHead {
		s.net.Transducer.Project(p, x, s.decoders[k.items].Frames(), k.items, rec.frames)
		return
	}
	rows := k.items * rec.frames
	rec.classes = p.Output(s.net.CTC.Best(p, s.net.CTC.Logits(p, x, rows), rows), rows)
}

// Close frees what the session holds. It may be called again, and on nil.
func (s *Session) Close() error {
	if s == nil || s.session == nil {
		return nil
	}
	return s.session.Close()
}
