package asr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tandem-gpu/tandem/model/conformer"
	"github.com/tandem-gpu/tandem/model/transducer"
	"github.com/tandem-gpu/tandem/pass"
)

// A Recogniser recognises speech with a network, in a session of its own. One goroutine
// at a time may use it.
type Recogniser struct {
	net      Network
	cfg      Config
	window   int // samples
	overlap  int
	frames   int // of the encoder, in a window
	mel      pass.MelShape
	ses      pass.Session
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

// New makes a recogniser. It must be closed, before or after the network.
func New(ctx context.Context, net Network, cfg Config) (*Recogniser, error) {
	cfg, window, overlap, err := cfg.check(net)
	if err != nil {
		return nil, err
	}
	mel, ok := net.FrontEnd.Shape().(pass.MelShape)
	if !ok {
		return nil, fmt.Errorf("asr: front end: want the param of MelWeights, given %v: %w", net.FrontEnd, pass.ErrInvalid)
	}
	label := cfg.Label
	if label == "" {
		label = "asr"
	}
	ses, err := net.Device.NewSession(pass.SessionConfig{Label: label, Latency: cfg.Latency})
	if err != nil {
		return nil, fmt.Errorf("asr: %w", err)
	}
	r := &Recogniser{
		net: net, cfg: cfg, window: window, overlap: overlap, mel: mel, ses: ses,
		recs: map[size]*recording{}, decoders: map[int]*transducer.Decoder{},
	}
	mels := mel.Frames(window)
	stages := net.Encoder.Stages(mels)
	r.frames = stages[len(stages)-1]
	if r.state, err = net.Encoder.State(ctx, ses, mels); err != nil {
		return nil, errors.Join(fmt.Errorf("asr: %w", err), ses.Close())
	}
	return r, nil
}

// FrameDuration returns the time from one frame of the encoder to the next.
func (r *Recogniser) FrameDuration() time.Duration {
	return time.Duration(r.net.FrameSamples) * time.Second / SampleRate
}

// Recognise returns the tokens of audio, mono at 16 kHz, of any length. A sample that is
// NaN or infinite is refused with pass.ErrInvalid. After an error the recogniser may be
// used again.
func (r *Recogniser) Recognise(ctx context.Context, samples []float32) ([]Token, error) {
	all, err := r.RecogniseAll(ctx, samples)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// RecogniseAll returns the tokens of each of several clips, whose windows share batches.
func (r *Recogniser) RecogniseAll(ctx context.Context, clips ...[]float32) ([][]Token, error) {
	parts := make([][]window, len(clips))
	var work []*window
	for i, samples := range clips {
		for j, v := range samples {
			if v-v != 0 {
				return nil, fmt.Errorf("asr: clip %d: sample %d: want a finite value, given %v: %w", i, j, v, pass.ErrInvalid)
			}
		}
		parts[i] = windows(i, len(samples), r.window, r.overlap)
		for j := range parts[i] {
			work = append(work, &parts[i][j])
		}
	}
	// Windows of one length go together.
	place := func(w *window) int { return bucket(w.to-w.from, r.window) }
	slices.SortStableFunc(work, func(a, b *window) int { return cmp.Compare(place(a), place(b)) })
	total := len(work)
	for len(work) > 0 {
		n := 1
		if n < r.cfg.Batch && len(work) >= r.cfg.Batch && place(work[r.cfg.Batch-1]) == place(work[0]) {
			n = r.cfg.Batch
		}
		if err := r.recognise(ctx, clips, work[:n], place(work[0])); err != nil {
			return nil, fmt.Errorf("asr: %w", err)
		}
		work = work[n:]
		if r.cfg.Progress != nil {
			r.cfg.Progress(total-len(work), total)
		}
	}
	tokens := make([][]Token, len(clips))
	for i := range parts {
		tokens[i] = join(parts[i], r.net.FrameSamples)
	}
	return tokens, nil
}

// recognise finds the tokens of windows that are filled up to one length.
func (r *Recogniser) recognise(ctx context.Context, clips [][]float32, batch []*window, bucket int) error {
	items := len(batch)
	rec, err := r.recording(ctx, size{items, bucket})
	if err != nil {
		return err
	}
	n := filled(bucket, r.window)
	r.samples = slices.Grow(r.samples[:0], items*n)[:items*n]
	r.lengths = slices.Grow(r.lengths[:0], rec.lengths.Len())[:rec.lengths.Len()]
	clear(r.samples)
	frames := make([]int, items)
	for i, w := range batch {
		copy(r.samples[i*n:], clips[w.clip][w.from:w.to])
		r.lengths[i] = uint32(w.to - w.from)
		for j, length := range r.net.Encoder.Stages(r.net.Encoder.Frames(w.to - w.from)) {
			r.lengths[(j+1)*items+i], frames[i] = uint32(length), length
		}
	}
	run, err := rec.rec.Run(ctx, rec.samples.F32(r.samples), rec.lengths.U32(r.lengths))
	if err != nil {
		return err
	}
	defer run.Close()
	if r.cfg.Head == CTCHead {
		classes := make([]uint32, items*rec.frames)
		if err := run.ReadU32(rec.classes, classes); err != nil {
			return err
		}
		for i, w := range batch {
			for _, s := range r.net.CTC.Collapse(classes[i*rec.frames:][:frames[i]]) {
				w.tokens = append(w.tokens, Token{s.Token, s.First, s.Last - s.First + 1})
			}
		}
		return nil
	}
	blank := r.net.Transducer.Blank()
	return r.decoders[items].Greedy(ctx, frames, func(i int, s transducer.Step) {
		if s.Token != blank {
			batch[i].tokens = append(batch[i].tokens, Token{s.Token, s.Frame, max(s.Advance, 1)})
		}
	})
}

// recording returns the recording for a size.
func (r *Recogniser) recording(ctx context.Context, s size) (*recording, error) {
	if rec := r.recs[s]; rec != nil {
		return rec, nil
	}
	if r.cfg.Head == TransducerHead && r.decoders[s.items] == nil {
		d, err := r.net.Transducer.NewDecoder(ctx, r.ses, transducer.DecoderConfig{Items: s.items, Frames: max(r.frames, 1), Math: r.cfg.Math})
		if err != nil {
			return nil, err
		}
		r.decoders[s.items] = d
	}
	rec := &recording{}
	label := fmt.Sprintf("asr %d × %d samples", s.items, filled(s.bucket, r.window))
	var err error
	rec.rec, err = r.ses.Record(ctx, pass.RecordOptions{Label: label, Math: r.cfg.Math}, func(p pass.Pass) { r.record(p, s, rec) })
	if err != nil {
		return nil, err
	}
	r.recs[s] = rec
	return rec, nil
}

func (r *Recogniser) record(p pass.Pass, s size, rec *recording) {
	n := filled(s.bucket, r.window)
	mels := r.mel.Frames(n)
	stages := r.net.Encoder.Stages(mels)
	rec.samples, rec.lengths = p.Input(pass.F32, s.items*n), p.Input(pass.U32, (1+len(stages))*s.items)
	rec.frames = stages[len(stages)-1]
	in := conformer.Batch{Items: s.items, Frames: mels, State: r.state.View()}
	for i := range stages {
		in.Lengths = append(in.Lengths, pass.ItemsIn(rec.lengths.At((i+1)*s.items)))
	}
	features := p.Temp(pass.F32, s.items*mels*r.mel.Mels).View()
	p.Do(pass.LogMel{
		X: rec.samples.View(), W: r.net.FrontEnd, Y: features, Batch: s.items, Samples: n,
		Lengths: pass.ItemsIn(rec.lengths.View()),
	})
	x := r.net.Encoder.Encode(p, &in, features)
	if r.cfg.Head == TransducerHead {
		r.net.Transducer.Project(p, x, r.decoders[s.items].Frames(), s.items, rec.frames)
		return
	}
	rows := s.items * rec.frames
	rec.classes = p.Output(r.net.CTC.Best(p, r.net.CTC.Logits(p, x, rows), rows), rows)
}

// Close frees what the recogniser holds. It may be called again, and on nil.
func (r *Recogniser) Close() error {
	if r == nil {
		return nil
	}
	return r.ses.Close()
}
