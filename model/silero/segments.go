package silero

import (
	"fmt"
	"time"

	"github.com/tandem-gpu/tandem/pass"
)

// A Segment is a stretch of speech: samples from Start up to, but not including, End,
// at 16 kHz from the beginning of the audio.
type Segment struct{ Start, End int }

// StartTime returns when the segment starts.
func (s Segment) StartTime() time.Duration { return inTime(s.Start) }

// EndTime returns when the segment ends.
func (s Segment) EndTime() time.Duration { return inTime(s.End) }

// inTime is exact: a sample takes 62.5 microseconds.
func inTime(samples int) time.Duration {
	return time.Duration(samples) * (time.Second / SampleRate)
}

// String returns the segment in seconds: "0.322-2.270".
func (s Segment) String() string {
	return fmt.Sprintf("%.3f-%.3f", s.StartTime().Seconds(), s.EndTime().Seconds())
}

// Segments returns the speech in audio of the given number of samples with these
// probabilities, one for each chunk of 512 samples as [Model.Probabilities] gives them. It
// follows the rule of the reference's get_speech_timestamps. [Detector] gives the same
// while the audio arrives.
func Segments(probabilities []float32, samples int, p Params) ([]Segment, error) {
	r, err := newRule(p)
	if err != nil {
		return nil, err
	}
	if want := Chunks(samples); samples < 0 || len(probabilities) != want {
		return nil, fmt.Errorf("silero: segments: want %d probabilities for %d samples, given %d: %w", want, samples, len(probabilities), pass.ErrInvalid)
	}
	var segments []Segment
	for _, probability := range probabilities {
		r.step(probability)
		segments = append(segments, r.closed...)
	}
	r.finish(samples)
	segments = append(segments, r.closed...)
	for i := range segments {
		s := &segments[i]
		if i == 0 {
			s.Start = r.before(s.Start)
		}
		if i == len(segments)-1 {
			s.End = min(samples, r.after(s.End))
			break
		}
		s.End, segments[i+1].Start = r.between(s.End, segments[i+1].Start, samples)
	}
	return segments, nil
}

// before and after move the ends of speech by the pad.
func (r *rule) before(start int) int { return int(max(0, float64(start)-r.pad)) }
func (r *rule) after(end int) int    { return int(float64(end) + r.pad) }

// near reports whether the pads of speech that ends and speech that starts meet.
func (r *rule) near(end, start int) bool { return float64(start-end) < 2*r.pad }

// between pads the end of speech and the start of the next.
func (r *rule) between(end, start, samples int) (paddedEnd, paddedStart int) {
	if r.near(end, start) {
		half := (start - end) / 2
		return end + half, start - half
	}
	return min(samples, r.after(end)), r.before(start)
}
