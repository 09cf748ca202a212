package silero

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/pass"
)

func TestProbabilities(t *testing.T) {
	t.Parallel()
	onDevices(t, func(t *testing.T, model *Model) {
		ctx := context.Background()
		for _, name := range names {
			ref := reference(t, name)
			var steps []float64
			p, err := model.Probabilities(ctx, samples(t, name), nil, func(done float64) { steps = append(steps, done) })
			require.NoError(t, err)
			requireClose(t, ref.Probabilities, p, name)
			require.IsIncreasing(t, append([]float64{0}, steps...))
			require.Equal(t, 1.0, steps[len(steps)-1])
			segments, err := Segments(p, ref.Samples, DefaultParams())
			require.NoError(t, err)
			require.Equal(t, wantSegments[name], inSeconds(segments), name)
		}
		p, err := model.Probabilities(ctx, nil)
		require.NoError(t, err)
		require.Empty(t, p)
	})
}

// In Fast math, where a device has its own, probabilities are close and segments the same.
func TestProbabilitiesInFastMath(t *testing.T) {
	t.Parallel()
	undertest.EachMath(t, func(t *testing.T, dev pass.Device, m pass.Math) {
		if m != pass.Fast {
			return
		}
		model := load(t, dev)
		for _, name := range names {
			ref := reference(t, name)
			p, err := model.Probabilities(t.Context(), samples(t, name))
			require.NoError(t, err)
			require.Len(t, p, len(ref.Probabilities))
			for i, want := range ref.Probabilities {
				require.InDelta(t, want, p[i], goldens.Fast, "%s: chunk %d", name, i)
			}
			segments, err := Segments(p, ref.Samples, DefaultParams())
			require.NoError(t, err)
			require.Equal(t, wantSegments[name], inSeconds(segments), name)
		}
	})
}

// The clip that is made in code, with its voice after a second of silence and its noise
// at the end.
func TestSyntheticClip(t *testing.T) {
	t.Parallel()
	onDevices(t, func(t *testing.T, model *Model) {
		p, err := model.Probabilities(context.Background(), synthetic())
		require.NoError(t, err)
		require.Len(t, p, 125)
		for i, want := range map[int]float64{
			0: 0.001670, 1: 0.006884, 30: 0.003643, 31: 0.919386, 49: 0.642026, 50: 0.516119, 61: 0.498159,
			92: 0.007309, 93: 0.057093, 100: 0.028053, 124: 0.008830,
		} {
			require.InDelta(t, want, p[i], 1e-4, "chunk %d", i)
		}
		segments, err := Segments(p, 64000, DefaultParams())
		require.NoError(t, err)
		require.Equal(t, []string{"0.962-1.822"}, inSeconds(segments))
	})
}

// synthetic makes four seconds: a buzz of 120 Hz through three resonators from 1 s to
// 2.5 s, noise from 3 s on.
func synthetic() []float32 {
	const n = 64000
	x := make([]float64, n)
	period := -1
	for i := range x {
		t := float64(i) / 16000
		if k := i * 120 / 16000; k != period {
			period = k
			if t >= 1 && t < 2.5 {
				x[i] = 1
			}
		}
	}
	for _, f := range [][2]float64{{700, 130}, {1220, 70}, {2600, 160}} {
		r := math.Exp(-math.Pi * f[1] / 16000)
		c, d := 2*r*math.Cos(2*math.Pi*f[0]/16000), -r*r
		y1, y2 := 0.0, 0.0
		for i := range x {
			y := (1-c-d)*x[i] + c*y1 + d*y2
			x[i], y1, y2 = y, y, y1
		}
	}
	largest := 0.0
	for _, v := range x {
		largest = max(largest, math.Abs(v))
	}
	s := uint32(1)
	out := make([]float32, n)
	for i, v := range x {
		t := float64(i) / 16000
		v *= 0.5 / largest
		if t >= 1 && t < 2.5 {
			v *= 0.6 + 0.4*math.Sin(2*math.Pi*4*(t-1))
		}
		s = 1664525*s + 1013904223
		if t >= 3 {
			v += 0.05 * (2*float64(s)/(1<<32) - 1)
		}
		out[i] = float32(math.Floor(v*32767+0.5) / 32768)
	}
	return out
}

func TestStream(t *testing.T) {
	t.Parallel()
	onDevices(t, func(t *testing.T, model *Model) {
		ctx := context.Background()
		rng := rand.New(rand.NewPCG(3, 4))
		s, err := model.NewStream(ctx)
		require.NoError(t, err)
		defer s.Close()
		for _, name := range names { // one after the other in one stream, which Flush makes as new
			ref := reference(t, name)
			var got []float32
			fed := 0
			for rest := samples(t, name); len(rest) > 0; {
				n := min(len(rest), []int{1, 160, 511, 512, 513, 1000, 3000, 20000}[rng.IntN(8)])
				p, err := s.Feed(ctx, rest[:n])
				require.NoError(t, err)
				got = append(got, p...)
				fed += n
				rest = rest[n:]
				require.Len(t, got, fed/ChunkSamples, "every whole chunk is answered at once")
			}
			p, err := s.Flush(ctx)
			require.NoError(t, err)
			requireClose(t, ref.Probabilities, append(got, p...), name)
		}
	})
}

// A stream that was cut short starts anew after a Reset, and only then.
func TestStreamReset(t *testing.T) {
	t.Parallel()
	onDevices(t, func(t *testing.T, model *Model) {
		ctx := context.Background()
		jfk, want := samples(t, "jfk")[:20*512], reference(t, "jfk").Probabilities[:20]
		s, err := model.NewStream(ctx)
		require.NoError(t, err)
		defer s.Close()
		ended, end := context.WithCancel(ctx)
		end()
		_, err = s.Feed(ctx, jfk[:5000])
		require.NoError(t, err)
		_, err = s.Feed(ended, jfk[5000:])
		require.ErrorIs(t, err, context.Canceled)
		_, err = s.Feed(ctx, jfk[5000:])
		require.ErrorContains(t, err, "not Reset since")
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, s.Reset(ctx))
		p, err := s.Feed(ctx, jfk)
		require.NoError(t, err)
		requireClose(t, want, p)
		require.NoError(t, s.Reset(ctx))
		_, err = s.Feed(ctx, []float32{0, float32(math.NaN())})
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, "sample 1: want a finite value, given NaN")
		p, err = s.Feed(ctx, jfk) // nothing was taken of what was refused
		require.NoError(t, err)
		requireClose(t, want, p)
		require.NoError(t, s.Reset(ctx))
		loud := make([]float32, 2048)
		for i := range loud {
			loud[i] = float32(math.MaxFloat32 * float64(1-i%2*2))
		}
		if p, err = s.Feed(ctx, loud); err == nil {
			require.Equal(t, -1, notFinite(p))
		}
	})
}

func TestCancelledProbabilities(t *testing.T) {
	t.Parallel()
	onDevices(t, func(t *testing.T, model *Model) {
		ctx, cancel := context.WithCancel(context.Background())
		_, err := model.Probabilities(ctx, make([]float32, 16000*20), func(float64) { cancel() })
		require.ErrorIs(t, err, context.Canceled)
		p, err := model.Probabilities(context.Background(), samples(t, "jfk"))
		require.NoError(t, err)
		requireClose(t, reference(t, "jfk").Probabilities, p)
	})
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	onDevices(t, func(t *testing.T, model *Model) {
		var wg sync.WaitGroup
		errs := make([]error, maxIdle+2)
		results := make([][]float32, len(errs))
		clip := samples(t, names[2])
		for i := range errs {
			wg.Add(1)
			go func() {
				defer wg.Done()
				results[i], errs[i] = model.Probabilities(context.Background(), clip)
			}()
		}
		wg.Wait()
		require.NoError(t, errors.Join(errs...))
		for _, p := range results {
			require.Equal(t, results[0], p, "same input, same bits")
		}
	})
}

// Hours of streaming take no more memory than minutes, because a step leaves nothing
// behind.
func TestStreamMemory(t *testing.T) {
	onDevices(t, func(t *testing.T, model *Model) {
		ctx := context.Background()
		s, err := model.NewStream(ctx)
		require.NoError(t, err)
		defer s.Close()
		d, err := NewDetector(DefaultParams())
		require.NoError(t, err)
		clip := samples(t, "jfk")
		at := 0
		step := func() {
			p, err := s.Feed(ctx, clip[at:at+ChunkSamples])
			if err != nil || len(p) != 1 {
				t.Fatal(p, err)
			}
			d.Feed(p[0])
			if at += ChunkSamples; at > len(clip)-ChunkSamples {
				at = 0
			}
		}
		use := func() (inUse, allocated uint64) {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapInuse, m.TotalAlloc
		}
		for range 200 {
			step()
		}
		const steps = 600
		inUse, allocated := use()
		for range steps {
			step()
		}
		inUseAfter, allocatedAfter := use()
		perStep := float64(allocatedAfter-allocated) / steps
		t.Logf("%.0f bytes allocated a step", perStep)
		require.Less(t, perStep, 1024.0)
		require.Less(t, inUseAfter, inUse+1<<20)
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	for _, d := range devices {
		t.Run(d, func(t *testing.T) {
			ctx := context.Background()
			dev := undertest.Open(t, d)
			model := load(t, dev)
			s, err := model.NewStream(ctx)
			require.NoError(t, err)
			group, err := model.NewStreams(ctx, 2)
			require.NoError(t, err)
			id, err := group.Add()
			require.NoError(t, err)
			_, err = model.Probabilities(ctx, make([]float32, 100))
			require.NoError(t, err)
			busy, err := model.idle.Take(ctx, model.NewBatchStream)
			require.NoError(t, err)
			require.NoError(t, model.Close())
			require.NoError(t, model.Close())
			require.NoError(t, model.give(busy))
			_, err = model.idle.Take(ctx, model.NewBatchStream)
			require.ErrorIs(t, err, pass.ErrClosed, "nothing is kept that no one would close")
			_, err = model.Probabilities(ctx, make([]float32, 100))
			require.ErrorIs(t, err, pass.ErrClosed)
			_, err = s.Feed(ctx, make([]float32, 5000))
			require.ErrorIs(t, err, pass.ErrClosed)
			_, err = model.NewStream(ctx)
			require.ErrorIs(t, err, pass.ErrClosed)
			_, err = model.NewStreams(ctx, 2)
			require.ErrorIs(t, err, pass.ErrClosed)
			require.ErrorIs(t, group.Step(ctx, []Chunk{{Stream: id, Samples: make([]float32, 512)}}), pass.ErrClosed)
			require.NoError(t, dev.Close())
			require.NoError(t, s.Close())
			require.NoError(t, s.Close())
			require.NoError(t, group.Close())
			require.NoError(t, group.Close())

			dev = undertest.Open(t, d)
			model = load(t, dev)
			require.NoError(t, dev.Close())
			_, err = model.Probabilities(ctx, make([]float32, 100))
			require.ErrorIs(t, err, pass.ErrClosed)
			require.NoError(t, model.Close())
		})
	}
	require.NoError(t, (*Model)(nil).Close())
	require.NoError(t, (*Stream)(nil).Close())
	require.NoError(t, (*Streams)(nil).Close())
}
