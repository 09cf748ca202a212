package moonshine

import (
	"context"
	"strings"

	"github.com/tandem-gpu/tandem/model/internal/idle"
)

// A Result is the text of audio.
type Result struct {
	Text       string
	Utterances []Utterance
}

// An Utterance is a piece of audio, with its text.
type Utterance struct {
	Decoded
	Start, End int // samples, End not included
}

// Transcribe transcribes audio of any length, mono at 16 kHz, in a session of its own;
// see [Session.Transcribe].
func (m *Model) Transcribe(ctx context.Context, samples []float32, opt Options) (Result, error) {
	return idle.Use(ctx, &m.idle, m.open, func(s *Session) (Result, error) { return s.Transcribe(ctx, samples, opt) })
}

// Transcribe transcribes audio of any length, mono at 16 kHz: what is longer than the
// session's Seconds is cut where it is quietest in the second half of them. That is a
// makeshift for pauses that a detector of speech finds. Audio of less than [MinSamples]
// has no text.
func (s *Session) Transcribe(ctx context.Context, samples []float32, opt Options) (Result, error) {
	if err := s.usable(); err != nil {
		return Result{}, err
	}
	var r Result
	var pieces [][]float32
	for start := 0; len(samples)-start >= MinSamples; {
		end := start + cut(samples[start:], s.cfg.Seconds*SampleRate)
		pieces = append(pieces, samples[start:end])
		r.Utterances = append(r.Utterances, Utterance{Start: start, End: end})
		start = end
	}
	decoded, err := s.Generate(ctx, pieces, opt)
	if err != nil {
		return Result{}, err
	}
	var texts []string
	for i, d := range decoded {
		r.Utterances[i].Decoded = d
		if d.Text != "" {
			texts = append(texts, d.Text)
		}
	}
	r.Text = strings.Join(texts, " ")
	return r, nil
}

const (
	pause = 3 * SampleRate / 10 // a cut lies in the quietest 300 ms
	grain = SampleRate / 100    // and there in the quietest 10 ms
)

// cut returns how many samples the first piece of so many at most has.
func cut(samples []float32, most int) int {
	if len(samples) <= most {
		return len(samples)
	}
	// The rest must be an utterance too.
	most = min(most, len(samples)-MinSamples)
	at := quietest(samples, most/2, most, pause)
	at = quietest(samples, at, min(at+pause, most), grain)
	return at + min(grain, most-at)/2
}

// quietest returns where the stretch of n samples with the least energy begins, in steps
// of grain from one sample to before another; the last of equals.
func quietest(samples []float32, from, to, n int) int {
	best, least := from, -1.0
	for at := from; at == from || at+n <= to; at += grain {
		energy := 0.0
		for _, v := range samples[at:min(at+n, to)] {
			energy += float64(v) * float64(v)
		}
		if least < 0 || energy <= least {
			best, least = at, energy
		}
	}
	return best
}
