package silero

import "math"

// An EventKind says what happened.
type EventKind uint8

// The kinds of events. They alternate, beginning with a start.
const (
	SpeechStart EventKind = iota + 1
	SpeechEnd
)

// String returns "start" or "end".
func (k EventKind) String() string {
	switch k {
	case SpeechStart:
		return "start"
	case SpeechEnd:
		return "end"
	}
	return "no event"
}

// An Event is the start or the end of a segment.
type Event struct {
	Kind   EventKind
	Sample int // as in [Segment], pads included
}

// A Detector finds the segments of audio while it arrives: for each chunk it takes the
// probability and tells what has become certain. Its events are the segments that
// [Segments] gives for the whole.
//
// # Latency
//
// An event is told with the first chunk after which nothing that may follow could
// change it. Too short speech is dropped and never told, so a start is told when the
// speech has lasted longer than MinSpeech: 288 ms after it began, with the default
// parameters and no silence in between. [Detector.Active] tells at once, but takes it
// back if the speech is too short. An end is told after MinSilence of silence: 160 ms
// after the speech, by default. If two pads are longer than that, it is told after two
// pads of silence, and if speech returns within them, once it is certain whether that
// speech counts.
//
// A Detector is used by one goroutine at a time.
type Detector struct {
	rule    rule
	open    bool // the start of the rule's speech has been told
	pending bool // an end has not been told yet
	end     int  // that end, without pad
	events  []Event
}

// NewDetector makes a detector. It fails with [Params.Check]'s error.
func NewDetector(p Params) (*Detector, error) {
	r, err := newRule(p)
	if err != nil {
		return nil, err
	}
	return &Detector{rule: r}, nil
}

// Feed takes the probability of the next chunk and returns the events that it settles,
// in order; usually none. The slice is used again by the next call.
func (d *Detector) Feed(probability float32) []Event {
	d.events = d.events[:0]
	d.rule.step(probability)
	d.close()
	if !d.open && d.rule.certain() {
		d.tellStart(d.rule.start)
	}
	if d.pending {
		next := d.rule.at // where speech could start at the earliest
		if d.rule.active {
			next = d.rule.start
		}
		padded := d.rule.after(d.end)
		if !d.rule.near(d.end, next) && padded < d.rule.at-ChunkSamples+1 {
			d.tellEnd(padded)
		}
	}
	return d.events
}

// Flush takes the number of samples that the audio had, after the probability of its
// last chunk, which may have been partial; a number that does not fit the chunks is
// taken as the nearest that does. It returns the events that remain, and makes the
// detector ready for other audio. The slice is used again by the next call.
func (d *Detector) Flush(samples int) []Event {
	d.events = d.events[:0]
	samples = min(d.rule.at, max(samples, d.rule.at-ChunkSamples+1))
	d.rule.finish(samples)
	d.close()
	if d.pending {
		d.tellEnd(min(samples, d.rule.after(d.end)))
	}
	d.Reset()
	return d.events
}

// Reset forgets everything and makes the detector ready for other audio. Events that
// were not told are lost.
func (d *Detector) Reset() {
	d.rule.at, d.rule.active, d.rule.quiet, d.rule.split = 0, false, false, Segment{}
	d.open, d.pending = false, false
}

// Active reports whether the last chunk was within speech, which may turn out to be too
// short to be told.
func (d *Detector) Active() bool { return d.rule.active }

// close takes over the speech that the rule has closed.
func (d *Detector) close() {
	for _, s := range d.rule.closed {
		if !d.open {
			d.tellStart(s.Start)
		}
		d.open, d.pending, d.end = false, true, s.End
	}
}

// tellStart tells a start, and before it the end that waited for it.
func (d *Detector) tellStart(start int) {
	padded := d.rule.before(start)
	if d.pending {
		var end int
		end, padded = d.rule.between(d.end, start, math.MaxInt)
		d.tellEnd(end)
	}
	d.events = append(d.events, Event{SpeechStart, padded})
	d.open = true
}

func (d *Detector) tellEnd(end int) {
	d.events = append(d.events, Event{SpeechEnd, end})
	d.pending = false
}
