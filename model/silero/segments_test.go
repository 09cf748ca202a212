package silero

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

// The segments of models that were run with the reference's rule, in seconds.
var wantSegments = map[string][]string{
	"jfk": {"0.322-2.270", "3.266-4.446", "5.378-7.678", "8.162-10.622"},
	"sense_and_sensibility_01_austen_64kb-0870": {"0.322-6.910"},
	"sense_and_sensibility_01_austen_64kb-0880": {"0.226-2.878"},
	"sense_and_sensibility_01_austen_64kb-0890": {"0.258-5.182"},
	"sense_and_sensibility_01_austen_64kb-0920": {"0.322-5.886"},
	"sense_and_sensibility_01_austen_64kb-0930": {"0.258-3.070"},
}

func TestSegmentsOfClips(t *testing.T) {
	t.Parallel()
	for name, want := range wantSegments {
		ref := reference(t, name)
		segments, err := Segments(ref.Probabilities, ref.Samples, DefaultParams())
		require.NoError(t, err)
		require.Equal(t, want, inSeconds(segments), name)
	}
}

func inSeconds(segments []Segment) []string {
	var s []string
	for _, x := range segments {
		s = append(s, x.String())
	}
	return s
}

// chunks makes probabilities from runs: a letter for each chunk, s for speech, - for
// silence, m for the middle between the thresholds.
func chunks(pattern string) []float32 {
	var p []float32
	for _, c := range pattern {
		p = append(p, map[rune]float32{'s': 0.9, '-': 0.1, 'm': 0.4}[c])
	}
	return p
}

func TestSegmentRule(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	params := func(change func(*Params)) Params {
		p := DefaultParams()
		change(&p)
		return p
	}
	for _, tc := range []struct {
		name    string
		pattern string
		params  Params
		want    []Segment // in samples
	}{
		{"nothing", "", DefaultParams(), nil},
		{"silence", "----------", DefaultParams(), nil},
		{"first chunk on, pad cut at the start", "ssssssssss----------", DefaultParams(), []Segment{{0, 5600}}},
		{"too short: 7 chunks are 3584 samples", "---sssssss----------", DefaultParams(), nil},
		{"long enough: 8 chunks are 4096 samples", "---ssssssss---------", DefaultParams(), []Segment{{1536 - 480, 11*512 + 480}}},
		{"a pause of 4 chunks is not silence enough", "ssssssssss----ssssssssss-----", DefaultParams(), []Segment{{0, 24*512 + 480}}},
		{"a pause of 5 chunks ends speech", "ssssssssss-----ssssssssss-----", DefaultParams(), []Segment{{0, 10*512 + 480}, {15*512 - 480, 25*512 + 480}}},
		{"the middle goes on in speech", "ssssssssssmmmmmmmmmm", DefaultParams(), []Segment{{0, 20 * 512}}},
		{"the middle goes on in silence", "mmmmmmmmmm", DefaultParams(), nil},
		{"the middle counts as silence after silence", "ssssssssss-mmm-sssssssss-----", DefaultParams(), []Segment{{0, 10*512 + 480}, {15*512 - 480, 24*512 + 480}}},
		{"speech to the end", "---ssssssssss", DefaultParams(), []Segment{{1536 - 480, 13 * 512}}},
		{"pads that meet split the gap", "ssssssssss-----ssssssssss-----", params(func(p *Params) { p.SpeechPad = 100 * ms }),
			[]Segment{{0, 12*512 + 256}, {12*512 + 256, 25*512 + 1600}}},
		{"pads do not reach beyond the end", "ssssssssss----", params(func(p *Params) { p.SpeechPad = 200 * ms }), []Segment{{0, 14 * 512}}},
		{"dropped speech does not take part in padding", "ssssssssss-----ss-------------", params(func(p *Params) { p.SpeechPad = 200 * ms }),
			[]Segment{{0, 10*512 + 3200}}},
		// 40 chunks less one less two pads: 19,008 samples, passed by chunk 38.
		{"too long without silence is cut at the limit", "ssssssssssssssssssssssssssssssssssssssssssssssssssssssss", params(func(p *Params) { p.MaxSpeech = 1280 * ms }),
			[]Segment{{0, 38*512 + 256}, {39*512 - 256, 56 * 512}}},
		{"too long is cut at its longest silence", "ssssssssss----ssss-----ssssss----ssssssssssssssssssssss", params(func(p *Params) { p.MaxSpeech, p.MinSilence = 1280*ms, 500*ms }),
			[]Segment{{0, 18*512 + 480}, {23*512 - 480, 55 * 512}}},
		{"a silence of 3 chunks is too short to cut at", "ssssssssss---sssssssssssssssssssssssssssssssssssssssssss", params(func(p *Params) { p.MaxSpeech, p.MinSilence = 1280*ms, 500*ms }),
			[]Segment{{0, 38*512 + 256}, {39*512 - 256, 56 * 512}}},
		{"other thresholds", "mmmmmmmmmm----------", params(func(p *Params) { p.Threshold = 0.3 }), []Segment{{0, 5600}}},
	} {
		got, err := Segments(chunks(tc.pattern), 512*len(tc.pattern), tc.params)
		require.NoError(t, err, tc.name)
		require.Equal(t, tc.want, got, tc.name)
		require.Equal(t, plainSegments(chunks(tc.pattern), 512*len(tc.pattern), tc.params), got, tc.name)
	}
}

func TestSegmentsRefuse(t *testing.T) {
	t.Parallel()
	_, err := Segments(make([]float32, 2), 512, DefaultParams())
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, err = Segments(nil, -1, DefaultParams())
	require.ErrorIs(t, err, pass.ErrInvalid)
	for name, change := range map[string]func(*Params){
		"threshold: want more than 0":  func(p *Params) { p.Threshold = 0 },
		"threshold: want more":         func(p *Params) { p.Threshold = math.NaN() },
		"at most 1":                    func(p *Params) { p.Threshold = 1.5 },
		"negative threshold":           func(p *Params) { p.NegThreshold = 0.6 },
		"minimum speech":               func(p *Params) { p.MinSpeech = -1 },
		"minimum silence":              func(p *Params) { p.MinSilence = -1 },
		"speech pad":                   func(p *Params) { p.SpeechPad = -1 },
		"maximum speech: want at leas": func(p *Params) { p.MaxSpeech = -1 },
		"more than a chunk and two":    func(p *Params) { p.MaxSpeech = 92 * time.Millisecond },
	} {
		p := DefaultParams()
		change(&p)
		_, err := Segments(nil, 0, p)
		require.ErrorIs(t, err, pass.ErrInvalid, name)
		require.ErrorContains(t, err, name)
		_, err = NewDetector(p)
		require.ErrorIs(t, err, pass.ErrInvalid, name)
	}
}

func TestDetectorLatency(t *testing.T) {
	t.Parallel()
	d, err := NewDetector(DefaultParams())
	require.NoError(t, err)
	told := map[int]Event{}
	for i, p := range chunks("-----ssssssssssssssssssss----------") {
		require.False(t, i < 5 && d.Active())
		for _, e := range d.Feed(p) {
			told[i] = e
		}
	}
	require.Equal(t, map[int]Event{
		5 + 8:      {SpeechStart, 5*512 - 480}, // 9 chunks of speech: 288 ms
		5 + 20 + 4: {SpeechEnd, 25*512 + 480},  // 5 chunks of silence: 160 ms
	}, told)
	require.Empty(t, d.Flush(35*512))
}

// A length that does not fit the chunks ends what was told all the same.
func TestDetectorFlush(t *testing.T) {
	t.Parallel()
	d, err := NewDetector(DefaultParams())
	require.NoError(t, err)
	for samples, end := range map[int]int{-1: 19*512 + 1, 0: 19*512 + 1, 19*512 + 7: 19*512 + 7, 1 << 30: 20 * 512} {
		var told []Event
		for _, p := range chunks("ssssssssssssssssssss") {
			told = append(told, d.Feed(p)...)
		}
		told = append(told, d.Flush(samples)...)
		require.Equal(t, []Event{{SpeechStart, 0}, {SpeechEnd, end}}, told, samples)
	}
	d.Feed(0.9)
	d.Reset()
	require.False(t, d.Active())
	require.Empty(t, d.Flush(512))
}

// The events of a detector are the segments of the whole, and both are those of a plain
// evaluation of the rule, for audio and parameters of every kind.
func TestDetectorEqualsSegments(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	levels := []float32{0.05, 0.2, 0.4, 0.45, 0.6, 0.99}
	ms := func(most int) time.Duration { return time.Duration(rng.IntN(most+1)) * time.Millisecond }
	found := 0
	for range 5000 {
		p := Params{Threshold: 0.5, MinSpeech: ms(300), MinSilence: ms(300), SpeechPad: ms(200)}
		switch rng.IntN(4) {
		case 0:
			p = DefaultParams()
		case 1:
			p.MaxSpeech = chunkDuration + 2*p.SpeechPad + 1 + ms(2000)
		case 2:
			p.MinSilence, p.SpeechPad = ms(40), ms(40) // ends are settled by the last chunk
		}
		var probabilities []float32
		level := levels[0]
		for range rng.IntN(100) {
			if rng.IntN(4) == 0 {
				level = levels[rng.IntN(len(levels))]
			}
			probabilities = append(probabilities, level)
		}
		samples := max(0, 512*len(probabilities)-rng.IntN(512))
		segments, err := Segments(probabilities, samples, p)
		require.NoError(t, err)
		require.Equal(t, plainSegments(probabilities, samples, p), segments, "%+v %v", p, probabilities)
		require.Equal(t, segments, detect(t, probabilities, samples, p), "%+v %v", p, probabilities)
		found += len(segments)
	}
	require.Greater(t, found, 5000)
}

// detect collects the events of a detector as segments, and checks that each is told
// only when the audio so far reaches it.
func detect(t *testing.T, probabilities []float32, samples int, p Params) []Segment {
	t.Helper()
	d, err := NewDetector(p)
	require.NoError(t, err)
	var segments []Segment
	kind := SpeechStart
	take := func(events []Event, heard int) {
		for _, e := range events {
			require.Equal(t, kind, e.Kind)
			require.LessOrEqual(t, e.Sample, heard)
			if kind = SpeechStart + SpeechEnd - kind; e.Kind == SpeechStart {
				segments = append(segments, Segment{Start: e.Sample})
			} else {
				segments[len(segments)-1].End = e.Sample
			}
		}
	}
	for i, probability := range probabilities {
		take(d.Feed(probability), min(samples, 512*(i+1)))
	}
	take(d.Flush(samples), samples)
	require.Equal(t, SpeechStart, kind, "a start without an end")
	return segments
}

// plainSegments is the rule as its authors state it, over the whole at once.
func plainSegments(probabilities []float32, samples int, p Params) []Segment {
	n := func(d time.Duration) float64 { return 16000 * d.Seconds() }
	low := max(p.Threshold-0.15, 0.01)
	longest := math.Inf(1)
	if p.MaxSpeech > 0 {
		longest = n(p.MaxSpeech) - 512 - 2*n(p.SpeechPad)
	}
	var found, pauses []Segment
	start, quiet := -1, -1
	for i, probability := range probabilities {
		at, v := 512*i, float64(probability)
		if v >= p.Threshold {
			if quiet >= 0 && float64(at-quiet) > 16000*0.098 {
				pauses = append(pauses, Segment{quiet, at})
			}
			quiet = -1
			if start < 0 {
				start, pauses = at, nil
				continue
			}
		}
		if start < 0 {
			continue
		}
		if float64(at-start) > longest {
			if len(pauses) == 0 {
				found = append(found, Segment{start, at})
				start, quiet = -1, -1
				continue
			}
			cut := pauses[0]
			for _, pause := range pauses {
				if pause.End-pause.Start > cut.End-cut.Start {
					cut = pause
				}
			}
			found = append(found, Segment{start, cut.Start})
			start, quiet, pauses = cut.End, -1, nil
		}
		if v < low {
			if quiet < 0 {
				quiet = at
			}
			if float64(at-quiet) >= n(p.MinSilence) {
				if float64(quiet-start) > n(p.MinSpeech) {
					found = append(found, Segment{start, quiet})
				}
				start, quiet = -1, -1
			}
		}
	}
	if start >= 0 && float64(samples-start) > n(p.MinSpeech) {
		found = append(found, Segment{start, samples})
	}
	var padded []Segment
	for i, s := range found {
		a, b := float64(s.Start)-n(p.SpeechPad), float64(s.End)+n(p.SpeechPad)
		if i > 0 {
			if gap := s.Start - found[i-1].End; float64(gap) < 2*n(p.SpeechPad) {
				a = float64(s.Start - gap/2)
			}
		}
		if i+1 < len(found) {
			if gap := found[i+1].Start - s.End; float64(gap) < 2*n(p.SpeechPad) {
				b = float64(s.End + gap/2)
			}
		}
		padded = append(padded, Segment{int(max(0, a)), int(min(float64(samples), b))})
	}
	return padded
}
