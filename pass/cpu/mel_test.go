package cpu_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// wantMel evaluates the definition of LogMel for a clip: its frames and the logarithms.
func wantMel(w pass.MelWeights, clip []float32) (y [][]float64) {
	n := len(clip)
	if n == 0 {
		return nil
	}
	x := make([]float64, n)
	for i, v := range clip {
		x[i] = float64(v)
		if i > 0 && !w.PerFrame {
			x[i] -= float64(w.PreEmphasis) * float64(clip[i-1])
		}
		if w.Gain != 0 {
			x[i] *= float64(w.Gain)
		}
	}
	padded := make([]float64, w.PadLeft, w.PadLeft+n+w.PadRight)
	padded = append(append(padded, x...), make([]float64, w.PadRight)...)
	if w.Padding == pass.PadReflect {
		for i := range w.PadLeft {
			padded[w.PadLeft-1-i] = x[i+1]
		}
		for i := range w.PadRight {
			padded[w.PadLeft+n+i] = x[n-2-i]
		}
	}
	for from := 0; from+len(w.Window) <= len(padded); from += w.Hop {
		frame := append([]float64(nil), padded[from:from+len(w.Window)]...)
		if w.PerFrame {
			mean, _ := meanVariance(frame)
			before := frame[0] - mean
			for i, v := range frame {
				frame[i] = v - mean - float64(w.PreEmphasis)*before
				before = v - mean
			}
		}
		row := make([]float64, w.Mels)
		for k := range w.FFT/2 + 1 {
			var re, im float64
			for i, v := range frame {
				sin, cos := math.Sincos(2 * math.Pi * float64(i*k%w.FFT) / float64(w.FFT))
				re, im = re+v*float64(w.Window[i])*cos, im+v*float64(w.Window[i])*sin
			}
			for m := range row {
				row[m] += (re*re + im*im) * float64(w.Bank[m*(w.FFT/2+1)+k])
			}
		}
		y = append(y, row)
	}
	if w.DropLast && len(y) > 0 {
		y = y[:len(y)-1]
	}
	for _, row := range y {
		for m, v := range row {
			if w.Min != 0 {
				v = math.Max(v, float64(w.Min))
			}
			if w.Max != 0 {
				v = math.Min(v, float64(w.Max))
			}
			v += float64(w.Add)
			switch w.Log {
			case pass.MelLn:
				v = math.Log(v)
			case pass.MelLog10:
				v = math.Log10(v)
			}
			row[m] = v
		}
	}
	normaliseMel(w, y, n/w.Hop)
	return y
}

func normaliseMel(w pass.MelWeights, y [][]float64, whole int) {
	bin := func(m, n int) []float64 {
		v := make([]float64, n)
		for t := range v {
			v[t] = y[t][m]
		}
		return v
	}
	most := math.Inf(-1)
	for _, row := range y {
		for _, v := range row {
			most = math.Max(most, v)
		}
	}
	for m := range w.Mels {
		n := len(y)
		if w.Normalise == pass.MelPerBin {
			n = min(n, whole)
		}
		mean, variance := meanVariance(bin(m, n))
		for t := range y {
			v := &y[t][m]
			switch w.Normalise {
			case pass.MelWhisper:
				*v = (math.Max(*v, most-8) + 4) / 4
			case pass.MelMean:
				*v -= mean
			case pass.MelPerBin:
				if t >= n || n == 1 {
					*v = 0
				} else {
					*v = (*v - mean) / (math.Sqrt(variance*float64(n)/float64(n-1)) + float64(w.NormaliseEps))
				}
			}
		}
	}
}

// bank makes a filter bank: random weights in random ranges, one of them empty.
func (r *rig) bank(mels, bins int) []float32 {
	w := make([]float32, mels*bins)
	for m := 1; m < mels; m++ {
		from := r.rng.IntN(bins)
		for k := from; k < from+1+r.rng.IntN(bins-from); k++ {
			w[m*bins+k] = r.rng.Float32()
		}
	}
	return w
}

func (r *rig) window(n int) []float32 {
	w := make([]float32, n)
	for i := range w {
		w[i] = 0.1 + r.rng.Float32()
	}
	return w
}

func TestLogMel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, w := range []pass.MelWeights{
		{FFT: 40, Hop: 16, Mels: 3, Window: r.window(40)},
		{FFT: 40, Hop: 16, Mels: 20, Window: r.window(40), PadLeft: 20, PadRight: 20, Padding: pass.PadReflect, DropLast: true, Log: pass.MelLog10, Min: 1e-10, Normalise: pass.MelWhisper},
		{FFT: 64, Hop: 20, Mels: 17, Window: r.window(64), PadLeft: 32, PadRight: 32, PreEmphasis: 0.97, Log: pass.MelLn, Add: 0x1p-24, Normalise: pass.MelPerBin, NormaliseEps: 1e-5},
		{FFT: 34, Hop: 7, Mels: 5, Window: r.window(30), Log: pass.MelLn, Min: 1, Max: 9},
		{FFT: 64, Hop: 20, Mels: 16, Window: r.window(50), Gain: 32768, PreEmphasis: 0.97, PerFrame: true, Log: pass.MelLn, Min: 1.2e-7, Normalise: pass.MelMean},
		{FFT: 10, Hop: 30, Mels: 4, Window: r.window(9), PerFrame: true, PadLeft: 3, PadRight: 8},
		{FFT: 2, Hop: 1, Mels: 2, Window: r.window(1), Log: pass.MelLn, Add: 1},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			w.Bank = r.bank(w.Mels, w.FFT/2+1)
			param := r.load(w)
			shape := param.Shape().(pass.MelShape)
			for _, n := range []int{0, 35, 700} {
				lengths := []int{n, n - n/3, n * 2 / 3, 0}
				frames := shape.Frames(n)
				var x []float32
				var want []float64
				for _, l := range lengths {
					clip := random(r.rng, n)
					for _, row := range wantMel(w, clip[:l]) {
						want = append(want, row...)
					}
					want = append(want, make([]float64, (frames-shape.Frames(l))*w.Mels)...)
					for i := l; i < n; i++ {
						clip[i] = nan // is not read
					}
					x = append(x, clip...)
				}
				y := r.output(len(lengths), frames, w.Mels)
				op := pass.LogMel{X: r.floats(len(lengths), 1, n, x).View, W: param, Y: y.View, Batch: len(lengths), Samples: n, Lengths: pass.Fixed(lengths...)}
				r.do(op)
				r.exact(want, y.values(), n)
				all := y.result()
				op.Lengths = pass.ItemsIn(r.numbers(uint32(lengths[0]), uint32(lengths[1]), uint32(lengths[2]), 0))
				r.do(op)
				require.Equal(t, all, y.result())
			}
		})
	}
}

func TestLogMelLengths(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.load(pass.MelWeights{FFT: 4, Hop: 2, Mels: 1, Window: r.window(4), Bank: r.bank(1, 3), PadLeft: 2, PadRight: 2, Padding: pass.PadReflect})
	x, y := r.floats(2, 1, 9, make([]float32, 18)), r.output(2, 5, 1)
	op := pass.LogMel{X: x.View, W: w, Y: y.View, Batch: 2, Samples: 9, Lengths: pass.ItemsIn(r.numbers(9, 10))}
	r.fails(op, "Lengths", "item 1", "0 to 9", "given 10")
	op.Lengths = pass.ItemsIn(r.numbers(2, 9))
	r.fails(op, "Lengths", "item 0", "more than the 2 samples", "given 2")
}

// A bin of a quiet frame keeps its digits beside loud frames, and NaN stays in its
// frames where nothing is normalised.
func TestLogMelRange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := pass.MelWeights{FFT: 8, Hop: 8, Mels: 1, Window: []float32{1, 1, 1, 1, 1, 1, 1, 1}, Bank: []float32{1, 0, 0, 0, 0}}
	x := make([]float32, 24)
	for i := range 8 {
		x[i], x[8+i] = 1e10, 1e-10
	}
	x[20] = nan
	y := r.output(1, 3, 1)
	r.do(pass.LogMel{X: r.floats(1, 1, 24, x).View, W: r.load(w), Y: y.View, Samples: 24})
	got := y.values()
	require.InEpsilon(t, 6.4e21, got[0], 1e-6)
	require.InEpsilon(t, 6.4e-19, got[1], 1e-6)
	require.True(t, got[2] != got[2])
}

// BenchmarkLogMel takes Whisper's thirty seconds.
func BenchmarkLogMel(b *testing.B) {
	r := newRig(b)
	const n = 480000
	w := pass.MelWeights{
		FFT: 400, Hop: 160, Mels: 80, Window: r.window(400), Bank: make([]float32, 80*201),
		PadLeft: 200, PadRight: 200, Padding: pass.PadReflect, Log: pass.MelLog10, Min: 1e-10, Normalise: pass.MelWhisper,
	}
	for m := range 80 {
		for k := range 5 {
			w.Bank[m*201+2*m+k] = 1
		}
	}
	param := r.load(w)
	frames := param.Shape().(pass.MelShape).Frames(n)
	op := pass.LogMel{X: r.floats(1, 1, n, random(r.rng, n)).View, W: param, Y: r.output(1, frames, 80).View, Samples: n}
	rec, err := r.ses.Record(b.Context(), pass.RecordOptions{}, func(p pass.Pass) { p.Do(op) })
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		run, err := rec.Run(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		run.Close()
	}
}
