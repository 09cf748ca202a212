package silero

import (
	"fmt"
	"math"
	"time"

	"github.com/tandem-gpu/tandem/pass"
)

// Params are the parameters of the segment rule. Names and meanings are those of the
// reference's get_speech_timestamps; [DefaultParams] gives its defaults.
type Params struct {
	// Threshold is the probability at which a chunk is speech.
	Threshold float64
	// NegThreshold is the probability below which a chunk is silence. Chunks between
	// the two continue what was before. 0: Threshold − 0.15, but at least 0.01.
	NegThreshold float64
	// MinSpeech: speech that is not longer than this is dropped.
	MinSpeech time.Duration
	// MinSilence is how long silence must last to end speech.
	MinSilence time.Duration
	// SpeechPad is added before and after speech. Where two pads would meet, the gap
	// is split in halves.
	SpeechPad time.Duration
	// MaxSpeech is how long a segment may be, pads included; 0: as long as it is. Longer
	// speech is cut at the beginning of the longest silence of more than 98 ms in it, and
	// goes on at that silence's end; if there is no such silence, it is cut at the limit.
	MaxSpeech time.Duration
}

// DefaultParams returns the defaults of the reference: threshold 0.5 (silence below
// 0.35), speech of at least 250 ms, silence of at least 100 ms, pads of 30 ms, segments
// of any length.
func DefaultParams() Params {
	return Params{
		Threshold:  0.5,
		MinSpeech:  250 * time.Millisecond,
		MinSilence: 100 * time.Millisecond,
		SpeechPad:  30 * time.Millisecond,
	}
}

// Check returns an error that wraps pass.ErrInvalid and names the field, unless the
// parameters make sense: thresholds of 0 < NegThreshold ≤ Threshold ≤ 1, no negative
// durations, and a MaxSpeech that is longer than a chunk and two pads.
func (p Params) Check() error {
	if !(p.Threshold > 0 && p.Threshold <= 1) {
		return fmt.Errorf("silero: threshold: want more than 0 and at most 1, given %v: %w", p.Threshold, pass.ErrInvalid)
	}
	if n := p.negThreshold(); !(n > 0 && n <= p.Threshold) {
		return fmt.Errorf("silero: negative threshold: want more than 0 and at most the threshold %v, given %v: %w", p.Threshold, n, pass.ErrInvalid)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"minimum speech", p.MinSpeech}, {"minimum silence", p.MinSilence}, {"speech pad", p.SpeechPad}, {"maximum speech", p.MaxSpeech}} {
		if d.value < 0 {
			return fmt.Errorf("silero: %s: want at least 0, given %v: %w", d.name, d.value, pass.ErrInvalid)
		}
	}
	if least := chunkDuration + 2*p.SpeechPad; p.MaxSpeech > 0 && p.MaxSpeech <= least {
		return fmt.Errorf("silero: maximum speech: want more than a chunk and two pads, %v, given %v: %w", least, p.MaxSpeech, pass.ErrInvalid)
	}
	return nil
}

const chunkDuration = ChunkSamples * time.Second / SampleRate

func (p Params) negThreshold() float64 {
	if p.NegThreshold != 0 {
		return p.NegThreshold
	}
	return min(p.Threshold, max(p.Threshold-0.15, 0.01))
}

// inSamples returns a duration as a number of samples, which need not be whole.
func inSamples(d time.Duration) float64 { return d.Seconds() * SampleRate }

// A Segment is a stretch of speech: samples from Start up to, but not including, End,
// at 16 kHz from the beginning of the audio.
type Segment struct{ Start, End int }

// StartTime returns when the segment starts.
func (s Segment) StartTime() time.Duration { return inTime(s.Start) }

// EndTime returns when the segment ends.
func (s Segment) EndTime() time.Duration { return inTime(s.End) }

// Duration returns how long the segment is.
func (s Segment) Duration() time.Duration { return inTime(s.End - s.Start) }

// inTime is exact: a sample takes 62.5 microseconds.
func inTime(samples int) time.Duration {
	return time.Duration(samples) * (time.Second / SampleRate)
}

// String returns the segment in seconds: "0.322-2.270".
func (s Segment) String() string {
	return fmt.Sprintf("%.3f-%.3f", s.StartTime().Seconds(), s.EndTime().Seconds())
}

// A rule finds speech in a row of probabilities, one chunk after the other. Its
// positions are samples, not padded yet.
type rule struct {
	threshold, negThreshold float64
	minSpeech, minSilence   float64 // samples, like the following
	pad, maxSpeech          float64

	at      int  // where the next chunk begins
	active  bool // in speech
	start   int  // of this speech
	quiet   bool // in silence that may end it
	silence int  // where that silence began
	split   Segment
	closed  []Segment // by the last step
}

// splitSilence is the length that a silence must exceed for speech that is too long to
// be cut there, in samples: 98 ms.
const splitSilence = 98 * SampleRate / 1000

func newRule(p Params) (rule, error) {
	if err := p.Check(); err != nil {
		return rule{}, err
	}
	r := rule{
		threshold:    p.Threshold,
		negThreshold: p.negThreshold(),
		minSpeech:    inSamples(p.MinSpeech),
		minSilence:   inSamples(p.MinSilence),
		pad:          inSamples(p.SpeechPad),
		maxSpeech:    math.Inf(1),
	}
	if p.MaxSpeech > 0 {
		r.maxSpeech = inSamples(p.MaxSpeech) - ChunkSamples - 2*r.pad
	}
	return r, nil
}

// step takes the probability of the next chunk; speech that ended is in closed then.
func (r *rule) step(probability float32) {
	p, at := float64(probability), r.at
	r.at += ChunkSamples
	r.closed = r.closed[:0]
	speech := p >= r.threshold
	if speech && r.quiet {
		r.quiet = false
		if n := at - r.silence; n > splitSilence && n > r.split.End-r.split.Start {
			r.split = Segment{r.silence, at}
		}
	}
	if speech && !r.active {
		r.active, r.start, r.split = true, at, Segment{}
		return
	}
	if r.active && float64(at-r.start) > r.maxSpeech {
		if r.split == (Segment{}) {
			r.close(at)
			return
		}
		next := r.split.End
		r.close(r.split.Start)
		r.active, r.start = true, next
	}
	if r.active && p < r.negThreshold {
		if !r.quiet {
			r.quiet, r.silence = true, at
		}
		if float64(at-r.silence) < r.minSilence {
			return
		}
		if float64(r.silence-r.start) > r.minSpeech {
			r.close(r.silence)
		}
		r.active, r.quiet, r.split = false, false, Segment{}
	}
}

// close ends the speech at the given sample.
func (r *rule) close(end int) {
	r.closed = append(r.closed, Segment{r.start, end})
	r.active, r.quiet, r.split = false, false, Segment{}
}

// finish takes the length of the audio; speech that goes on to its end is in closed
// then.
func (r *rule) finish(samples int) {
	r.closed = r.closed[:0]
	if r.active && float64(samples-r.start) > r.minSpeech {
		r.close(samples)
	}
}

// certain reports whether the speech that goes on will be long enough, however the
// audio goes on.
func (r *rule) certain() bool {
	if !r.active {
		return false
	}
	end := r.at - ChunkSamples + 1 // at least a sample of the last chunk is there
	if r.quiet {
		end = r.silence
	}
	return float64(end-r.start) > r.minSpeech
}
