package resample_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/resample"
	"github.com/tandem-gpu/tandem/model/wav"
	"github.com/tandem-gpu/tandem/pass"
)

// ratios are pairs of rates of every kind: up and down, simple and not, exact and
// interpolated.
var ratios = [][2]int{
	{8000, 16000}, {11025, 16000}, {44100, 16000}, {48000, 16000}, {96000, 16000}, {16000, 8000}, {16000, 44100},
	{44101, 16000}, {16000, 44101},
}

func each(t *testing.T, f func(t *testing.T, in, out int)) {
	for _, r := range ratios {
		t.Run(fmt.Sprintf("%d to %d", r[0], r[1]), func(t *testing.T) {
			t.Parallel()
			f(t, r[0], r[1])
		})
	}
}

func noise(n int) []float32 {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	x := make([]float32, n)
	for i := range x {
		x[i] = 2*rng.Float32() - 1
	}
	return x
}

// tone is n samples of a cosine of the given frequency and phase.
func tone(n int, frequency, rate, phase float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		_, turn := math.Modf(frequency / rate * float64(i))
		x[i] = math.Cos(2*math.Pi*turn + phase)
	}
	return x
}

func single(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

// steady is what of n output samples is not touched by the ends of the signal.
func steady(t *testing.T, n, in, out int) (from, to int) {
	r, err := resample.New(in, out)
	require.NoError(t, err)
	edge := (r.Delay()+1)*out/in + 2
	require.Greater(t, n, 3*edge, "too few samples to measure")
	return edge, n - edge
}

func decibels(ratio float64) float64 { return 20 * math.Log10(ratio) }

// A tone in the pass band comes out as the same tone, sampled at the other rate: with
// its amplitude, without delay, and with nothing else beside it, as images would be.
func TestPassBand(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in, out int) {
		nyquist := float64(min(in, out)) / 2
		n := int(math.Ceil(900 * max(1, float64(in)/float64(out))))
		for _, part := range []float64{0, 0.013, 0.5, 0.91} {
			phase := 0.4
			if part == 0 {
				phase = 0
			}
			got, err := resample.Resample(single(tone(n, part*nyquist, float64(in), phase)), in, out)
			require.NoError(t, err)
			want := tone(len(got), part*nyquist, float64(out), phase)
			from, to := steady(t, len(got), in, out)
			worst := 0.0
			for i := from; i < to; i++ {
				worst = max(worst, math.Abs(float64(got[i])-want[i]))
			}
			if part == 0 {
				require.Less(t, worst, 1e-6, "gain at 0 Hz")
			}
			// −105 dB of images, or 5e-5 dB of gain: both at once are less than 0.001 dB.
			require.Less(t, decibels(worst), -105.0, "at %g of the band", part)
		}
	})
}

// A tone in the stop band, which exists only where the rate falls, leaves nothing.
func TestStopBand(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in, out int) {
		nyquist := float64(out) / 2
		n := int(math.Ceil(900 * max(1, float64(in)/float64(out))))
		for _, part := range []float64{1, 1.003, 1.2, 2, 2.9} {
			if part*nyquist > float64(in)/2 {
				break
			}
			got, err := resample.Resample(single(tone(n, part*nyquist, float64(in), 0.4)), in, out)
			require.NoError(t, err)
			from, to := steady(t, len(got), in, out)
			worst := 0.0
			for _, v := range got[from:to] {
				worst = max(worst, math.Abs(float64(v)))
			}
			require.Less(t, decibels(worst), -105.0, "at %g of the band", part)
		}
	})
}

// An impulse stays at its time, and the response to it is symmetric.
func TestNoDelay(t *testing.T) {
	t.Parallel()
	for _, r := range [][2]int{{8000, 16000}, {48000, 16000}, {16000, 48000}, {32000, 16000}} {
		in, out := r[0], r[1]
		x := make([]float32, 4801)
		at := 2400
		x[at] = 1
		y, err := resample.Resample(x, in, out)
		require.NoError(t, err)
		center := at * out / in
		for i := range y {
			require.LessOrEqual(t, math.Abs(float64(y[i])), float64(y[center]))
		}
		for k := range min(center, len(y)-1-center) {
			require.InDelta(t, y[center-k], y[center+k], 1e-9)
		}
	}
}

func TestLength(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in, out int) {
		for _, n := range []int{0, 1, 2, 3, 99, 1000, 4096, 5001} {
			got, err := resample.Resample(make([]float32, n), in, out)
			require.NoError(t, err)
			require.Len(t, got, (n*out+in-1)/in, "%d samples", n)
			r, err := resample.New(in, out)
			require.NoError(t, err)
			require.Len(t, r.Flush(r.Process(nil, make([]float32, n))), len(got), "%d samples", n)
		}
	})
}

// A stream gives the bits of the whole, however it is cut, and again after Flush.
func TestStreamEqualsWhole(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in, out int) {
		const n = 9000
		x := noise(n)
		want, err := resample.Resample(x, in, out)
		require.NoError(t, err)
		r, err := resample.New(in, out)
		require.NoError(t, err)
		for _, size := range []int{n, 1, 512, 4097} {
			got := []float32{}
			for rest := x; len(rest) > 0; {
				k := min(size, len(rest))
				got = r.Process(got, rest[:k])
				rest = rest[k:]
				if done := n - len(rest); size == 512 && done > 2*r.Delay() {
					require.InDelta(t, float64(done-r.Delay())*float64(out)/float64(in), len(got), 2+float64(out)/float64(in), "delay")
				}
			}
			got = r.Flush(got)
			require.Equal(t, want, got, "blocks of %d", size)
		}
	})
}

// Long signals are cut into pieces for the processors, at places that must not show.
func TestPiecesDoNotShow(t *testing.T) {
	t.Parallel()
	for _, r := range [][2]int{{48000, 16000}, {44101, 16000}, {11025, 16000}} {
		x := noise(140000 * r[0] / r[1])
		whole, err := resample.Resample(x, r[0], r[1])
		require.NoError(t, err)
		s, err := resample.New(r[0], r[1])
		require.NoError(t, err)
		got := s.Flush(s.Process(nil, x))
		require.Len(t, got, len(whole))
		for i := range got {
			if got[i] != whole[i] {
				require.Equal(t, whole[i], got[i], "sample %d", i)
			}
		}
	}
}

func TestEqualRatesCopy(t *testing.T) {
	t.Parallel()
	x := noise(10000)
	got, err := resample.Resample(x, 16000, 16000)
	require.NoError(t, err)
	require.Equal(t, x, got)
	got[0] = 7
	require.NotEqual(t, float32(7), x[0], "memory is not shared")
	r, err := resample.New(16000, 16000)
	require.NoError(t, err)
	require.Zero(t, r.Delay())
	require.Equal(t, x[:100], r.Process(nil, x[:100]))
	require.Equal(t, x[100:], r.Flush(r.Process(nil, x[100:])))
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, out int
		want    string
	}{
		{0, 16000, "rate 0 Hz"}, {16000, 0, "rate 0 Hz"}, {-8000, 16000, "rate -8000 Hz"}, {16000, 1<<24 + 1, "rate 16777217 Hz"},
		{math.MaxInt, 16000, "rate"}, {256000, 1000, "ratio"}, {1, 16000, "ratio"}, {16000, 1, "ratio"},
	} {
		_, err := resample.New(c.in, c.out)
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, "resample: ")
		require.ErrorContains(t, err, c.want)
		_, err = resample.Resample(nil, c.in, c.out)
		require.ErrorIs(t, err, pass.ErrInvalid)
	}
}

// No pair of rates makes the weights explode, and a stream needs no more memory.
func TestMemory(t *testing.T) {
	var before, after runtime.MemStats
	for _, c := range [][2]int{{44101, 16000}, {16000, 44101}, {1<<24 - 3, 1 << 24}, {16777213, 65537}, {65537, 16777213}} {
		runtime.ReadMemStats(&before)
		r, err := resample.New(c[0], c[1])
		require.NoError(t, err)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20), c)
		_ = r
	}
	r, err := resample.New(48000, 16000)
	require.NoError(t, err)
	x, y := make([]float32, 1000), make([]float32, 0, 1000)
	require.Zero(t, testing.AllocsPerRun(50, func() { y = r.Process(y[:0], x) }))
}

// Where both filters are flat, SoX at its best quality gives the same signal.
func TestSoX(t *testing.T) {
	t.Parallel()
	for _, rate := range []int{8000, 44100} {
		x, f, err := wav.ReadFile(fmt.Sprintf("testdata/speech-%d.wav", rate))
		require.NoError(t, err)
		require.Equal(t, rate, f.Rate)
		want, _, err := wav.ReadFile(fmt.Sprintf("testdata/sox-%d-16000.wav", rate))
		require.NoError(t, err)
		got, err := resample.Resample(x, rate, 16000)
		require.NoError(t, err)
		require.Len(t, got, len(want))
		whole := signalToNoise(want, got)
		band := float64(min(rate, 16000)) / 2 * 0.88
		inside := signalToNoise(lowPass(want, band/16000), lowPass(got, band/16000))
		t.Logf("%d to 16000 Hz: %.1f dB, %.1f dB up to %.0f Hz", rate, whole, inside, band)
		require.Greater(t, inside, 100.0)
		require.Greater(t, whole, 40.0)
	}
}

// signalToNoise compares the middle of two signals, in dB.
func signalToNoise(want, got []float32) float64 {
	signal, noise := 0.0, 0.0
	for i := 1000; i < len(want)-1000; i++ {
		d := float64(got[i]) - float64(want[i])
		signal += float64(want[i]) * float64(want[i])
		noise += d * d
	}
	return 10 * math.Log10(signal/noise)
}

// lowPass removes what lies above the frequency, in cycles a sample: a sinc of 601
// samples under Blackman's window.
func lowPass(x []float32, frequency float64) []float32 {
	const half = 300
	var h [2*half + 1]float64
	for i := range h {
		t := float64(i - half)
		w := 0.42 + 0.5*math.Cos(math.Pi*t/half) + 0.08*math.Cos(2*math.Pi*t/half)
		h[i] = 2 * frequency * w
		if t != 0 {
			h[i] = math.Sin(2*math.Pi*frequency*t) / (math.Pi * t) * w
		}
	}
	y := make([]float32, len(x))
	for i := half; i < len(x)-half; i++ {
		sum := 0.0
		for j, w := range h {
			sum += w * float64(x[i+j-half])
		}
		y[i] = float32(sum)
	}
	return y
}

func BenchmarkResample(b *testing.B) {
	for _, r := range [][2]int{{48000, 16000}, {44100, 16000}, {8000, 16000}, {44101, 16000}} {
		b.Run(fmt.Sprintf("%d_to_%d", r[0], r[1]), func(b *testing.B) {
			x := noise(10 * r[0])
			for b.Loop() {
				if _, err := resample.Resample(x, r[0], r[1]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(10*float64(b.N)/b.Elapsed().Seconds(), "s_audio/s")
		})
	}
}

func TestZeroResampler(t *testing.T) {
	t.Parallel()
	var r resample.Resampler
	require.Empty(t, r.Process(nil, []float32{1, 2}))
	require.Empty(t, r.Flush(nil))
	require.Zero(t, r.Delay())
}
