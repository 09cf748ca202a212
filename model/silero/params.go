package silero

import (
	"fmt"
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
