package asr

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/conformer"
	"github.com/tandem-gpu/tandem/model/ctc"
	"github.com/tandem-gpu/tandem/model/frontend"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/model/vocabulary"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// bins is an encoder that takes every fourth frame of the features as it is.
type bins struct{ mels int }

func (*bins) Frames(samples int) int { return max(samples-320, -160)/160 + 1 }

func (*bins) Stages(n int) []int { return []int{n, (n + 3) / 4} }

func (*bins) State(context.Context, pass.Session, int) (pass.Buffer, error) {
	return pass.Buffer{}, nil
}

func (b *bins) Encode(p pass.Pass, in *conformer.Batch, x pass.View) pass.View {
	t := b.Stages(in.Frames)[1]
	y := p.Temp(pass.F32, in.Items*t*b.mels).View()
	p.Do(pass.Copy{
		From: x.Rows(4 * b.mels).Batch(in.Frames * b.mels), To: y,
		Batch: in.Items, Rows: t, Cols: b.mels,
	})
	return y
}

// hearsTones returns a network whose tokens are tones, each that of a mel bin.
func hearsTones(t *testing.T, dev pass.Device, of ...int) Network {
	w := frontend.GigaAM()
	net := Network{
		Device: dev, Encoder: &bins{w.Mels}, FrameSamples: 640,
		Vocabulary: vocabulary.New(vocabulary.SentencePiece, "▁low", "▁mid", "▁high", "▁top"),
	}
	classes := len(of) + 1
	weight, bias := make([]float32, classes*w.Mels), make([]float32, classes)
	for i, bin := range of {
		weight[i*w.Mels+bin] = 1
	}
	bias[len(of)] = -3 // of silence, whose features are −20
	l := weights.NewLoader(t.Context(), dev, memory{
		"head.weight": pass.Float32s("head.weight", weight, classes, w.Mels), "head.bias": pass.Float32s("head.bias", bias, classes),
	})
	net.FrontEnd = l.Load(w, nil)
	net.CTC = ctc.Load(l, "head", ctc.Config{Width: w.Mels, Classes: classes, Blank: len(of)})
	_, err := l.Params()
	require.NoError(t, err)
	return net
}

type memory map[string]pass.Tensor

func (m memory) Tensor(name string) (pass.Tensor, error) {
	if t, ok := m[name]; ok {
		return t, nil
	}
	return pass.Tensor{}, pass.ErrInvalid
}

func (m memory) Names() []string { return nil }

// tones returns audio of tones of 200 ms with pauses between, and the token of each with
// the frame that it begins at.
func tones(r *rand.Rand, count int, of []int) (samples []float32, ids []int) {
	bank := frontend.GigaAM()
	n := bank.FFT/2 + 1
	for range count {
		id := r.IntN(len(of))
		bin := 0 // of the spectrum, in the middle of the triangle
		for k := range n {
			if bank.Bank[of[id]*n+k] > bank.Bank[of[id]*n+bin] {
				bin = k
			}
		}
		hz := float64(bin) * SampleRate / float64(bank.FFT)
		samples = append(samples, make([]float32, SampleRate/10+r.IntN(SampleRate/4))...)
		for i := range SampleRate / 5 {
			samples = append(samples, float32(0.5*math.Sin(2*math.Pi*hz*float64(i)/SampleRate)))
		}
		ids = append(ids, id)
	}
	return samples, ids
}

// What is heard does not depend on windows, batches and what fills them up, and is what
// is played.
func TestTranscribe(t *testing.T) {
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		of := []int{20, 30, 40, 50}
		net := hearsTones(t, dev, of...)
		s, err := NewSession(t.Context(), net, SessionConfig{Window: 4 * time.Second, Overlap: time.Second, Batch: 3})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		require.Equal(t, 40*time.Millisecond, s.FrameDuration())
		random := rand.New(rand.NewPCG(1, 2))
		var clips [][]float32
		var want [][]int
		for _, n := range []int{0, 1, 3, 5, 9, 8, 40} {
			samples, ids := tones(random, n, of)
			clips, want = append(clips, samples), append(want, ids)
		}
		clips, want = append(clips, make([]float32, 100)), append(want, []int{}) // not one frame
		var progress []float64
		all, err := s.TranscribeAll(t.Context(), clips, Options{Progress: func(done float64) { progress = append(progress, done) }})
		require.NoError(t, err)
		require.Greater(t, len(progress), 5)
		require.IsIncreasing(t, progress)
		require.EqualValues(t, 1, progress[len(progress)-1])
		for i, r := range all {
			require.Equal(t, append([]int{}, want[i]...), r.IDs(), "clip %d", i)
			words := strings.Fields(r.Text)
			require.Len(t, words, len(want[i]))
			for j, id := range want[i] {
				require.Equal(t, []string{"low", "mid", "high", "top"}[id], words[j])
			}
			for j, token := range r.Tokens {
				require.InDelta(t, 5, token.Frames, 1)
				require.Greater(t, rms(clips[i][token.Frame*640:][:640]), 0.1, "clip %d: token %d: no tone at frame %d", i, j, token.Frame)
			}
			alone, err := s.Transcribe(t.Context(), clips[i], Options{})
			require.NoError(t, err)
			require.Equal(t, r, alone, "clip %d", i)
		}
		require.LessOrEqual(t, len(s.recs), 2*len(shares))
		before := len(s.recs)
		for n := range 9 {
			samples := clips[6][:1+n*n*SampleRate/16]
			_, err := s.Transcribe(t.Context(), samples, Options{})
			require.NoError(t, err)
		}
		require.LessOrEqual(t, len(s.recs), len(shares)+before)
	})
}

func rms(x []float32) float64 {
	s := 0.0
	for _, v := range x {
		s += float64(v) * float64(v)
	}
	return math.Sqrt(s / float64(len(x)))
}

func TestTranscribeRefuses(t *testing.T) {
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		net := hearsTones(t, dev, 20)
		bad := net
		bad.FrontEnd = pass.Param{}
		_, err := NewSession(t.Context(), bad, SessionConfig{})
		require.ErrorIs(t, err, pass.ErrInvalid)
		_, err = new(Session).Transcribe(t.Context(), nil, Options{})
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.NoError(t, new(Session).Close())
		s, err := NewSession(t.Context(), net, SessionConfig{Window: 2 * time.Second})
		require.NoError(t, err)
		samples := make([]float32, 1000)
		samples[7] = float32(math.NaN())
		_, err = s.TranscribeAll(t.Context(), [][]float32{make([]float32, 3), samples}, Options{})
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, "clip 1: sample 7")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = s.Transcribe(ctx, make([]float32, 1000), Options{})
		require.ErrorIs(t, err, context.Canceled)
		_, err = s.Transcribe(t.Context(), make([]float32, 1000), Options{})
		require.NoError(t, err, "usable again")
		s.net.Usable = func() error { return pass.ErrDeviceLost }
		_, err = s.Transcribe(t.Context(), nil, Options{})
		require.ErrorIs(t, err, pass.ErrDeviceLost)
		_, err = NewSession(t.Context(), s.net, SessionConfig{})
		require.ErrorIs(t, err, pass.ErrDeviceLost)
		s.net.Usable = nil
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
		require.NoError(t, (*Session)(nil).Close())
		_, err = s.Transcribe(t.Context(), make([]float32, 1000), Options{})
		require.ErrorIs(t, err, pass.ErrClosed)
	})
}
