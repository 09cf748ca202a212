package passtest

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// mel makes features of noise, by rules and sizes of no network. Weights of the bank are
// above 0, frames are long, and the noise swells: what is left of a small power, or of
// frames that are nearly equal when their mean is taken away, is no measure.
func (f *fuzzer) mel(batch int) {
	w := pass.MelWeights{FFT: 16 + 2*f.n(60), Mels: f.n(9), DropLast: f.random.IntN(3) == 0}
	frame := 16 + f.random.IntN(w.FFT-15)
	w.Window = f.draw("window", frame, 0.4, 0.6)
	w.Bank = f.draw("bank", w.Mels*(w.FFT/2+1), 0.5, 1)
	w.PadLeft, w.PadRight, w.Padding = f.random.IntN(frame), f.random.IntN(frame), pass.Padding(f.random.IntN(2))
	w.Gain = []float32{0, 0.5, 4}[f.random.IntN(3)]
	if f.random.IntN(2) == 0 {
		w.PreEmphasis = 0.97
	}
	w.PerFrame = f.random.IntN(2) == 0
	if w.Log = pass.MelLog(f.random.IntN(3)); w.Log != pass.MelPower {
		w.Normalise = pass.MelNormal(f.random.IntN(4))
		w.NormaliseEps = 1e-5
		if f.random.IntN(2) == 0 {
			w.Add = 0x1p-24
		} else {
			w.Min = 1e-9
		}
	}
	if w.Normalise == pass.MelAsIs && f.random.IntN(2) == 0 {
		w.Max = 20
	}
	w.Hop = f.n(frame)
	if w.Normalise == pass.MelPerBin || w.Normalise == pass.MelMean {
		w.Hop = max(w.Hop, frame/2)
	}
	shape, err := w.Shape()
	ok(f, err, "mel weights")
	frames := shape.(pass.MelShape).Frames
	// A deviation needs some frames, or none at all.
	usable := func(n int) bool {
		count := min(n/w.Hop, frames(n))
		return (n == 0 || w.Padding != pass.PadReflect || n > max(w.PadLeft, w.PadRight)) && (w.Normalise != pass.MelPerBin || count < 2 || count > 7)
	}
	samples := frame + f.random.IntN(12*w.Hop+frame)
	for !usable(samples) || frames(samples) < 1 {
		samples++
	}
	x := f.spread(batch, 1, samples, 0.25, 0)
	loud := float32(1)
	x.each(func(i, at int) {
		if i%frame == 0 {
			loud = float32(math.Exp2(-float64(f.random.IntN(6))))
		}
		x.input[at] = math.Float32bits(math.Float32frombits(x.input[at]) * loud)
	})
	if f.random.IntN(2) == 0 {
		op := pass.Scale{Batch: batch, Rows: 1, Cols: samples, Factor: 1.5}
		x = f.add(cases.Case{Op: op}, map[string]*fuzzValue{"X": x}, "Y", batch, 1, samples).outs[0]
	}
	m := pass.LogMel{Batch: batch, Samples: samples}
	m.Lengths = f.items("Lengths", batch, func(int) int {
		if n := f.random.IntN(samples + 1); usable(n) {
			return n
		}
		return 0
	})
	f.add(cases.Case{Op: m, Params: []cases.Param{{Field: "W", Weights: w}}}, map[string]*fuzzValue{"X": x}, "Y", batch, frames(samples), w.Mels)
}
