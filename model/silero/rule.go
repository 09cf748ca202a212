package silero

import "math"

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
