package whisper

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tandem-gpu/tandem/model/internal/idle"
)

// A Result is the text of audio.
type Result struct {
	Text     string
	Segments []Segment // with Timestamps
	Windows  []Window
}

// A Window is a part of audio of up to 30 s.
type Window struct {
	Decoded
	Start int  // its first sample
	Quiet bool // no speech, by the rule of the authors' decoder: its text does not count
}

// The rule of windows without speech (transcribe in whisper/transcribe.py).
const (
	quietAbove = 0.6 // probability of no speech
	quietBelow = -1  // mean of the logarithms of probabilities
)

// Transcribe transcribes audio of any length, mono at 16 kHz, in a session of its own
// with one window at a time; see [Session.Transcribe].
func (m *Model) Transcribe(ctx context.Context, samples []float32, opt Options) (Result, error) {
	return idle.Use(ctx, &m.idle, m.open, func(s *Session) (Result, error) { return s.Transcribe(ctx, samples, opt) })
}

// Transcribe transcribes audio of any length, mono at 16 kHz, in windows of 30 s one after
// the other, or as many at a time as the session's batch. With Timestamps a window begins
// where the last complete segment of the one before ended, so that there is one at a time.
// Each window is decoded for itself. Audio without samples has no windows.
func (s *Session) Transcribe(ctx context.Context, samples []float32, opt Options) (Result, error) {
	if err := s.usable(); err != nil {
		return Result{}, err
	}
	each, batch := s.model.cfg.Samples(), s.cfg.Batch
	if opt.Mode == Timestamps {
		batch = 1
	}
	var r Result
	for at := 0; at < len(samples); {
		var windows [][]float32
		var starts []int
		for ; len(windows) < batch && at < len(samples); at += each {
			windows = append(windows, samples[at:min(at+each, len(samples))])
			starts = append(starts, at)
		}
		if err := s.Encode(ctx, windows...); err != nil {
			return Result{}, fmt.Errorf("window at sample %d: %w", starts[0], err)
		}
		decoded, err := s.Decode(ctx, opt)
		if err != nil {
			return Result{}, fmt.Errorf("window at sample %d: %w", starts[0], err)
		}
		for i, d := range decoded {
			w := Window{Decoded: d, Start: starts[i]}
			w.Quiet = opt.Mode != Raw && d.NoSpeech > quietAbove && len(d.IDs) > 0 && d.SumLogProb()/float64(len(d.IDs)) < quietBelow
			used := r.add(w, s.model.cfg, len(windows[i]))
			if opt.Mode == Timestamps {
				at = starts[i] + used
			}
		}
		if opt.Progress != nil {
			opt.Progress(min(float64(at)/float64(len(samples)), 1))
		}
	}
	r.Text = strings.TrimSpace(r.Text)
	return r, nil
}

// add adds a window of so many samples, and returns how many are done with it.
func (r *Result) add(w Window, c Config, samples int) int {
	r.Windows = append(r.Windows, w)
	used := c.Samples()
	if w.Quiet {
		return used
	}
	text := strings.TrimSpace(w.Text)
	if len(w.Segments) > 0 {
		var end time.Duration
		if used, end = c.complete(w.IDs); end == 0 {
			end = time.Duration(samples) * time.Second / SampleRate
		}
		text = ""
		from := time.Duration(w.Start) * time.Second / SampleRate
		for _, s := range w.Segments {
			if s.Start >= end {
				break // it is decoded again with the next window
			}
			s.Start, s.End = s.Start+from, min(s.End, end)+from
			r.Segments = append(r.Segments, s)
			text += " " + s.Text
		}
		text = strings.TrimSpace(text)
	}
	if text != "" {
		r.Text += text + " "
	}
	return used
}

// complete returns where the next window begins, in samples: at the last pair of
// timestamps, unless the text ends with a single one, or there is no pair, and then after
// this window. The time is that of the pair, or 0.
func (c Config) complete(ids []int) (int, time.Duration) {
	first := c.Tokens.FirstTimestamp
	if n := len(ids); n > 0 && ids[n-1] == c.Tokens.End {
		ids = ids[:n-1]
	}
	n := len(ids)
	if single := n >= 2 && ids[n-1] >= first && ids[n-2] < first; single {
		return c.Samples(), 0
	}
	for i := n - 1; i > 0; i-- {
		if ids[i] >= first && ids[i-1] >= first {
			if ticks := ids[i-1] - first; ticks > 0 {
				return min(ticks*2*hop, c.Samples()), time.Duration(ticks) * tick
			}
			break
		}
	}
	return c.Samples(), 0
}
