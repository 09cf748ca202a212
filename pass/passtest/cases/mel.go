package cases

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases/truth"
)

func logMelKind() kind {
	return kind{
		zero:    pass.LogMel{},
		outputs: []string{"Y"},
		sizes:   map[string][3]string{"X": {"Batch", "", "Samples"}},
		weights: (*weightReader).mel,
		list:    logMelEntries,
		truth: func(op pass.Checked, d *data) ([]Tensor, error) {
			m := op.Op.(pass.LogMel)
			y := truth.LogMel(m, d.weights("W").(pass.MelWeights), d.values("X"), d.lengths(m.Lengths, m.Batch, m.Samples))
			return []Tensor{result(op, "Y", rounded(y))}, nil
		},
		match: melTolerance,
	}
}

// melTolerance judges powers relative to the largest, and logarithms of those that are
// not far below it, where normalisation leaves both visible.
func melTolerance(c Case) Tolerance {
	tol := ExactTolerance
	for _, p := range c.Params {
		w, _ := p.Weights.(pass.MelWeights)
		unit := map[pass.MelLog]float64{pass.MelLn: 1, pass.MelLog10: math.Log10E}[w.Log]
		switch {
		case w.Normalise == pass.MelWhisper:
			tol.Log = unit / 4
		case w.Normalise == pass.MelAsIs && unit > 0:
			tol.Log = unit
		case w.Normalise == pass.MelAsIs:
			tol.Max = 1e-6
		}
	}
	return tol
}

// cosineWindow returns a − (1 − a)·cos over n samples; the period is n, or n − 1 if the
// window is symmetric.
func cosineWindow(n int, a float64, symmetric bool) []float32 {
	period := float64(n)
	if symmetric {
		period--
	}
	w := make([]float32, n)
	for i := range w {
		w[i] = float32(a - (1-a)*math.Cos(2*math.Pi*float64(i)/period))
	}
	return w
}

// A melScale turns frequency into pitch.
type melScale func(hz float64) float64

func kaldiMel(hz float64) float64 { return 1127 * math.Log(1+hz/700) }
func htkMel(hz float64) float64   { return 2595 * math.Log10(1+hz/700) }

// slaneyMel is linear up to 1000 Hz, logarithmic from there on.
func slaneyMel(hz float64) float64 {
	if hz < 1000 {
		return hz * 3 / 200
	}
	return 15 + 27*math.Log(hz/1000)/math.Log(6.4)
}

// hertz is the inverse of a scale.
func (s melScale) hertz(mel float64) float64 {
	low, high := 0.0, 20000.0
	for range 200 {
		if middle := (low + high) / 2; s(middle) < mel {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// A bankRule describes triangles, equally wide on a scale, at 16,000 samples a second.
type bankRule struct {
	scale     melScale
	mels, fft int
	low, high float64 // Hz
	inPitch   bool    // straight on the scale, else in Hz
	area      bool    // divided by half their width in Hz
	skipLast  bool    // nothing of the highest bin
}

// bank returns the weights [mels][fft/2 + 1].
func (r bankRule) bank() []float32 {
	bins := r.fft/2 + 1
	weights := make([]float32, r.mels*bins)
	from, to := r.scale(r.low), r.scale(r.high)
	edge := func(i int) float64 { return from + (to-from)*float64(i)/float64(r.mels+1) }
	for m := range r.mels {
		left, centre, right := edge(m), edge(m+1), edge(m+2)
		lowHz, highHz := r.scale.hertz(left), r.scale.hertz(right)
		if !r.inPitch {
			left, centre, right = lowHz, r.scale.hertz(centre), highHz
		}
		for k := range bins {
			at := 16000 * float64(k) / float64(r.fft)
			if r.inPitch {
				at = r.scale(at)
			}
			w := max(0, min((at-left)/(centre-left), (right-at)/(right-centre)))
			if r.area {
				w *= 2 / (highHz - lowHz)
			}
			if !r.skipLast || k < bins-1 {
				weights[m*bins+k] = float32(w)
			}
		}
	}
	return weights
}

// MelUsers are the front ends of the networks, by name.
func MelUsers() map[string]pass.MelWeights {
	whisper := pass.MelWeights{Window: cosineWindow(400, 0.5, false), FFT: 400, Hop: 160, Mels: 80,
		Bank:    bankRule{scale: slaneyMel, mels: 80, fft: 400, high: 8000, area: true}.bank(),
		PadLeft: 200, PadRight: 200, Padding: pass.PadReflect, DropLast: true,
		Log: pass.MelLog10, Min: 1e-10, Normalise: pass.MelWhisper}
	// A window in the middle of the transform: padding moves it there.
	parakeet := pass.MelWeights{Window: cosineWindow(400, 0.5, true), FFT: 512, Hop: 160, Mels: 80,
		Bank:    bankRule{scale: slaneyMel, mels: 80, fft: 512, high: 8000, area: true}.bank(),
		PadLeft: 200, PadRight: 200, PreEmphasis: 0.97,
		Log: pass.MelLn, Add: 0x1p-24, Normalise: pass.MelPerBin, NormaliseEps: 1e-5}
	gigaam := pass.MelWeights{Window: cosineWindow(320, 0.5, false), FFT: 320, Hop: 160, Mels: 64,
		Bank: bankRule{scale: htkMel, mels: 64, fft: 320, high: 8000}.bank(),
		Log:  pass.MelLn, Min: 1e-9, Max: 1e9}
	kaldi := pass.MelWeights{Window: cosineWindow(400, 0.54, true), FFT: 512, Hop: 160, Mels: 80,
		Bank: bankRule{scale: kaldiMel, mels: 80, fft: 512, low: 20, high: 8000, inPitch: true, skipLast: true}.bank(),
		Gain: 32768, PerFrame: true, PreEmphasis: 0.97,
		Log: pass.MelLn, Min: 1.1920929e-7, Normalise: pass.MelMean}
	ge2e := pass.MelWeights{Window: cosineWindow(400, 0.5, false), FFT: 400, Hop: 160, Mels: 40,
		Bank:    bankRule{scale: slaneyMel, mels: 40, fft: 400, high: 8000, area: true}.bank(),
		PadLeft: 200, PadRight: 200}
	return map[string]pass.MelWeights{"whisper": whisper, "parakeet": parakeet, "gigaam": gigaam, "kaldi": kaldi, "ge2e": ge2e}
}

// sound returns noise with a tone in it: no bin of its spectrum is far below the others.
func sound(name string, n int) []float32 {
	x := Recipe(name, 1, n, 0.25, 0)
	for i := range x {
		x[i] += float32(0.125 * math.Sin(float64(i)*0.31))
	}
	return x
}

// A melSpec is a LogMel case in few words.
type melSpec struct {
	weights  pass.MelWeights
	batch    int
	samples  int
	lengths  []int
	onDevice bool
	values   func(string, int) []float32
	special  func(c *Case)
}

func (s melSpec) entry(label string) Entry {
	batch := max(s.batch, 1)
	name := fmt.Sprintf("logmel/%s-%dx%d", label, batch, s.samples)
	return Entry{Name: name, Op: "logmel", make: func(name string) Case {
		values := s.values
		if values == nil {
			values = sound
		}
		s.weights.Name = name
		c := Case{Op: pass.LogMel{Batch: s.batch, Samples: s.samples}, Outputs: []string{"Y"}, Params: []Param{{"W", s.weights}}}
		c.Inputs = []Tensor{F32("X", values(name+"/X", batch*s.samples), batch, 1, s.samples)}
		if s.lengths != nil {
			for b, n := range s.lengths {
				for i := n; i < s.samples; i++ {
					c.Inputs[0].Words[b*s.samples+i] = nan
				}
			}
			c.setItems("Lengths", s.lengths, s.onDevice)
		}
		if s.special != nil {
			s.special(&c)
		}
		return c
	}}
}

func logMelEntries() []Entry {
	var all []Entry
	add := func(label string, s melSpec) { all = append(all, s.entry(label)) }
	users := MelUsers()
	for _, user := range sortedKeys(users) {
		w := users[user]
		add(user, melSpec{weights: w, samples: 1903})
		for _, onDevice := range []bool{false, true} {
			add(user+"-lengths"+whereLabel(onDevice), melSpec{weights: w, batch: 3, samples: 1200, lengths: []int{1200, 0, 777}, onDevice: onDevice})
		}
		if w.Normalise != pass.MelPerBin { // one frame has no deviation
			add(user+"-short", melSpec{weights: w, samples: 401})
		}
		all = append(all, full(melSpec{weights: w, batch: 2, samples: 16_000, lengths: []int{16_000, 9_999}}.entry(user+"-second")))
	}
	// Quiet bins beside a loud one, silence, an offset, and what is cut off.
	tone := func(_ string, n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(0.5 * math.Sin(2*math.Pi*1000*float64(i)/16000))
		}
		return x
	}
	for _, user := range []string{"whisper", "gigaam", "ge2e"} {
		add(user+"-tone", melSpec{weights: users[user], samples: 1203, values: tone})
		add(user+"-silence", melSpec{weights: users[user], samples: 803, values: special(0)})
	}
	offset := func(name string, n int) []float32 {
		x := sound(name, n)
		for i := range x {
			x[i] += 0.5
		}
		return x
	}
	add("kaldi-offset", melSpec{weights: users["kaldi"], samples: 1203, values: offset})
	add("kaldi-silence", melSpec{weights: users["kaldi"], samples: 803, values: special(0)})
	add("parakeet-silence", melSpec{weights: users["parakeet"], samples: 7777, values: special(0)})
	add("gigaam-loud", melSpec{weights: users["gigaam"], samples: 803, values: scaled(3e4, 0)})
	add("gigaam-nan", melSpec{weights: users["gigaam"], batch: 2, samples: 1203, special: putNaN(600, 1203+5)})
	add("gigaam-too-short", melSpec{weights: users["gigaam"], samples: 319})
	add("empty", melSpec{weights: users["whisper"]})
	// Transforms of other lengths.
	for i, fft := range []int{2, 6, 14, 16, 26, 64, 200, 202, 256, 1024} {
		frame := fft - i%3*fft/8
		w := pass.MelWeights{Window: cosineWindow(frame, 0.54, false), FFT: fft, Hop: max(fft/3, 1), Mels: 3, Gain: 4,
			Bank: Recipe("bank", uint64(fft), 3*(fft/2+1), 0.5, 1), PadLeft: i % 4, PadRight: i % 5}
		add(fmt.Sprintf("fft%d", fft), melSpec{weights: w, batch: 1 + i%2, samples: 2*fft + 7})
	}
	return all
}
