package pass

import (
	"fmt"
	"math"
)

// MelWeights are the tables and rules of an audio front end; see [LogMel].
type MelWeights struct {
	Name   string    // for error messages and dumps
	Window []float32 // factors of the samples of a frame; its length is the frame's
	FFT    int       // length of the transform, at least the frame's; zeros follow the frame
	Hop    int       // samples from one frame to the next
	Bank   []float32 // [Mels][FFT/2 + 1] weights of the power spectrum
	Mels   int

	PadLeft, PadRight int     // samples before the first and after the last
	Padding           Padding // what they are; PadReflect wants more samples than either
	DropLast          bool    // leave out the last frame

	Gain         float32   // factor of the samples; 0: 1
	PreEmphasis  float32   // x[i] − PreEmphasis·x[i−1]; 0: none
	PerFrame     bool      // pre-emphasis within each frame, the first sample repeated, after its mean is subtracted; else over the clip, the first sample kept, before padding
	Log          MelLog    // of the mel power
	Min, Max     float32   // clamp before the logarithm; 0: no bound
	Add          float32   // added before the logarithm
	Normalise    MelNormal // after the logarithm
	NormaliseEps float32   // of MelPerBin
}

// A MelLog is a logarithm of the mel power.
type MelLog uint8

// The logarithms.
const (
	MelPower MelLog = iota // none
	MelLn                  // natural
	MelLog10               // decimal
)

// A MelNormal is what is done with the logarithms of an item.
type MelNormal uint8

// The normalisations.
const (
	MelAsIs    MelNormal = iota // nothing
	MelWhisper                  // (max(x, largest of the item − 8) + 4)/4
	// MelPerBin: per bin over the first length/Hop frames, (x − mean)/(deviation + eps)
	// with the unbiased deviation, which is 0 for a single frame; later frames are 0.
	MelPerBin
	MelMean // minus the bin's mean over time
)

// MelShape is the geometry and the rules of MelWeights.
type MelShape struct {
	Frame, FFT, Hop, Mels int
	PadLeft, PadRight     int
	Padding               Padding
	DropLast              bool
	Gain, PreEmphasis     float32
	PerFrame              bool
	Log                   MelLog
	Min, Max, Add         float32
	Normalise             MelNormal
	NormaliseEps          float32
}

// String gives the shape for error messages.
func (s MelShape) String() string {
	return fmt.Sprintf("mel %d bins, frames of %d every %d, transform of %d", s.Mels, s.Frame, s.Hop, s.FFT)
}

func (MelShape) paramShape() {}

// Frames returns how many frames a clip of some samples has.
func (s MelShape) Frames(samples int) int {
	n := samples + s.PadLeft + s.PadRight
	if samples <= 0 || n < s.Frame || s.Hop < 1 {
		return 0
	}
	frames := (n-s.Frame)/s.Hop + 1
	if s.DropLast {
		frames--
	}
	return frames
}

// Shape implements Weights.
func (w MelWeights) Shape() (ParamShape, error) {
	fail := func(format string, a ...any) (ParamShape, error) {
		return nil, fmt.Errorf("pass: mel weights %q: %s: %w", w.Name, fmt.Sprintf(format, a...), ErrInvalid)
	}
	n := len(w.Window)
	switch {
	case n < 1 || w.FFT < n || w.FFT > 4096 || w.FFT%2 != 0:
		return fail("want a window of at least one sample and an even transform that holds it, of at most 4096, given %d and %d", n, w.FFT)
	case w.Hop < 1 || w.Hop > 1<<20:
		return fail("hop: want 1 to 2^20, given %d", w.Hop)
	case w.Mels < 1 || len(w.Bank) != w.Mels*(w.FFT/2+1):
		return fail("bank: want %d × %d weights, given %d", w.Mels, w.FFT/2+1, len(w.Bank))
	case w.PadLeft < 0 || w.PadRight < 0 || w.PadLeft > 1<<20 || w.PadRight > 1<<20 || w.Padding > PadReflect:
		return fail("padding: want 0 to 2^20 samples of zeros or reflection, given %d and %d", w.PadLeft, w.PadRight)
	case w.Log > MelLog10 || w.Normalise > MelMean:
		return fail("want a known logarithm and normalisation, given %d and %d", w.Log, w.Normalise)
	}
	s := MelShape{
		Frame: n, FFT: w.FFT, Hop: w.Hop, Mels: w.Mels,
		PadLeft: w.PadLeft, PadRight: w.PadRight, Padding: w.Padding, DropLast: w.DropLast,
		Gain: w.Gain, PreEmphasis: w.PreEmphasis, PerFrame: w.PerFrame,
		Log: w.Log, Min: w.Min, Max: w.Max, Add: w.Add, Normalise: w.Normalise, NormaliseEps: w.NormaliseEps,
	}
	if s.Gain == 0 {
		s.Gain = 1
	}
	for _, v := range []float32{s.Gain, s.PreEmphasis, s.Min, s.Max, s.Add, s.NormaliseEps} {
		if v != v || math.IsInf(float64(v), 0) {
			return fail("want finite numbers, given %v", v)
		}
	}
	return s, nil
}

func (MelWeights) weights() {}

// LogMel makes mel features of audio: frames of samples are windowed and transformed,
// their power spectra weighed by the bank, and the logarithm taken and normalised, by
// the rules of W. With Lengths, an item ends after its length: its padding starts there,
// normalisation is over its own frames, and later frames are zero.
type LogMel struct {
	X       View  // [Batch][1][Samples]
	W       Param // MelWeights
	Y       View  // [Batch][frames of Samples][mels]
	Batch   int   // 0: one item
	Samples int   // samples of X
	Lengths Items // samples of each item; zero: Samples
}

// Name implements Op.
func (LogMel) Name() string { return "logmel" }

func (m LogMel) describe(c *checker) Op {
	w := param[MelShape](c, "W", m.W)
	m.Batch = c.batch(m.Batch)
	c.atLeast("Samples", m.Samples, 0)
	m.Lengths.check(c, "Lengths", m.Batch, m.Samples, false)
	if pad := max(w.PadLeft, w.PadRight); w.Padding == PadReflect && pad > 0 {
		if m.Samples > 0 && m.Samples <= pad {
			c.failf("Samples: want more than the %d to reflect, given %d", pad, m.Samples)
		}
		for b, n := range m.Lengths.Fixed() {
			if n > 0 && n <= pad {
				c.failf("Lengths: item %d: want more than the %d samples to reflect, or 0, given %d", b, pad, n)
			}
		}
	}
	frames := w.Frames(m.Samples)
	m.X = c.read("X", F32, m.X, m.Batch, 1, m.Samples)
	m.Y = c.write("Y", F32, m.Y, m.Batch, frames, w.Mels)
	bins := w.FFT/2 + 1
	flop := 5*float64(w.FFT)*math.Log2(float64(max(w.FFT, 2))) + 2*float64(bins)*float64(w.Mels)
	c.done(float64(m.Batch)*float64(frames)*flop, 4*int64(w.Mels)*int64(bins))
	return m
}

// Cuts implements Op.
func (m LogMel) Cuts() []Cut { return []Cut{{AxisBatch, m.Batch, 1}} }

func (m LogMel) part(_ Axis, from, to int) Op {
	m.X, m.Y, m.Batch = m.X.item(from), m.Y.item(from), to-from
	m.Lengths = m.Lengths.part(from, to)
	return m
}
