package parakeet

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/asr"
	"github.com/tandem-gpu/tandem/model/ctc"
	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/model/transducer"
	"github.com/tandem-gpu/tandem/model/vocabulary"
	"github.com/tandem-gpu/tandem/model/wav"
	"github.com/tandem-gpu/tandem/pass"
)

// features runs the front end over samples, and returns the frames that count.
func features(t *testing.T, net *Model, samples []float32) []float32 {
	t.Helper()
	ses, err := net.dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer func() { require.NoError(t, ses.Close()) }()
	n := net.mel.Shape().(pass.MelShape).Frames(len(samples)) * net.cfg.Mels
	var in pass.Input
	var out pass.Output
	rec, err := ses.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
		in = p.Input(pass.F32, len(samples))
		y := p.Temp(pass.F32, n).View()
		p.Do(pass.LogMel{X: in.View(), W: net.mel, Y: y, Samples: len(samples)})
		out = p.Output(y, n)
	})
	require.NoError(t, err)
	run, err := rec.Run(t.Context(), in.F32(samples))
	require.NoError(t, err)
	values := make([]float32, n)
	require.NoError(t, run.ReadF32(out, values))
	return values[:encoder{net}.Frames(len(samples))*net.cfg.Mels]
}

// alone transcribes a clip without windows, batches and padding.
func alone(t *testing.T, net *Model, samples []float32) (tokens []asr.Token) {
	t.Helper()
	mels := encoder{net}.Frames(len(samples))
	out := encode(t, net, features(t, net, samples), mels, []int{mels})
	frames := encoder{net}.Stages(mels)[2]
	if net.ctc != nil {
		var classes []uint32
		for row := range slices.Chunk(out["logits"], net.cfg.Classes) {
			classes = append(classes, uint32(slices.Index(row, slices.Max(row))))
		}
		require.Len(t, classes, frames)
		for _, s := range ctc.Collapse(classes, net.cfg.Classes-1) {
			tokens = append(tokens, asr.Token{ID: s.Token, Frame: s.First, Frames: s.Last - s.First + 1})
		}
		return tokens
	}
	ses, err := net.dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer func() { require.NoError(t, ses.Close()) }()
	d, err := net.transducer.NewDecoder(t.Context(), ses, transducer.DecoderConfig{Items: 1, Frames: frames})
	require.NoError(t, err)
	require.NoError(t, ses.Write(t.Context(), d.Frames().Buffer.View(), out["encoder_projected"]))
	require.NoError(t, d.Greedy(t.Context(), []int{frames}, func(_ int, s transducer.Step) {
		if s.Token != net.cfg.Classes-1 {
			tokens = append(tokens, asr.Token{ID: s.Token, Frame: s.Frame, Frames: max(s.Advance, 1)})
		}
	}))
	return tokens
}

// From samples to tokens: clips of any length, filled up and in batches with others, have
// the tokens that they have alone; and a window of a long one has those of its own.
func TestTranscribe(t *testing.T) {
	speech, _, err := wav.ReadFile("../testdata/audio/jfk.wav")
	require.NoError(t, err)
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		for _, tdt := range []bool{false, true} {
			src, cfg := small(tdt)
			net, err := Load(t.Context(), dev, src, cfg)
			require.NoError(t, err)
			transcribeClips(t, net, speech)
			require.NoError(t, net.Close())
		}
	})
}

func transcribeClips(t *testing.T, net *Model, speech []float32) {
	s, err := net.NewSession(t.Context(), asr.SessionConfig{Window: 3 * time.Second, Overlap: time.Second, Batch: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.Equal(t, 80*time.Millisecond, s.FrameDuration())
	clips := [][]float32{speech[5000:49000], speech[60000:62000], speech[70000:110000], speech[:0], speech[:100], speech[20000:60160]}
	all, err := s.TranscribeAll(t.Context(), clips, asr.Options{})
	require.NoError(t, err)
	total := 0
	for i, samples := range clips {
		if len(samples) < 160 {
			require.Empty(t, all[i].Tokens)
			continue
		}
		require.Equal(t, alone(t, net, samples), all[i].Tokens, "clip %d", i)
		total += len(all[i].Tokens)
	}
	require.Greater(t, total, 20, "a test of something")

	whole, err := s.Transcribe(t.Context(), speech, asr.Options{})
	require.NoError(t, err)
	long := whole.Tokens
	first := alone(t, net, speech[:3*asr.SampleRate/1280*1280])
	for i, token := range first { // the seam is not before 2.25 s
		if (token.Frame+1)*1280 > 9*asr.SampleRate/4 {
			break
		}
		require.Equal(t, token, long[i])
	}
	require.True(t, slices.IsSortedFunc(long, func(a, b asr.Token) int { return a.Frame - b.Frame }))
	require.Less(t, long[len(long)-1].Frame, len(speech)/1280+1)
}

// A hybrid has two heads, and either can be used.
func TestHybrid(t *testing.T) {
	t.Parallel()
	src, cfg := small(true)
	src.linear("ctc_decoder.decoder_layers.0", cfg.Classes, cfg.Blocks.Width, 1)
	cfg.Channels = 0
	var words []string
	for i := range cfg.Classes - 1 {
		words = append(words, fmt.Sprint("▁w", i))
	}
	cfg.Vocabulary = vocabulary.New(vocabulary.SentencePiece, words...)
	net, err := Load(t.Context(), undertest.Open(t, "cpu"), src, cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, net.Close()) }()
	require.Equal(t, 12, net.Config().Channels)
	samples := make([]float32, 12*1280) // a window of whole frames
	goldens.Values(samples, "samples", 1, 0.3, 0)
	var heard [3]asr.Result
	for i, head := range []asr.Head{asr.BestHead, asr.TransducerHead, asr.CTCHead} {
		s, err := net.NewSession(t.Context(), asr.SessionConfig{Head: head, Window: time.Second})
		require.NoError(t, err)
		heard[i], err = s.Transcribe(t.Context(), samples, asr.Options{})
		require.NoError(t, err)
		require.NotEmpty(t, heard[i].Tokens)
		require.NoError(t, s.Close())
	}
	require.Equal(t, heard[0], heard[1])
	require.Equal(t, "w3", cfg.Vocabulary.Text([]int{3}))
	require.Equal(t, cfg.Vocabulary.Text(heard[0].IDs()), heard[0].Text)
	require.NotEmpty(t, heard[0].Text)
	alone, err := net.Transcribe(t.Context(), samples, asr.Options{})
	require.NoError(t, err)
	require.Equal(t, heard[0], alone)
	require.NotEqual(t, heard[1], heard[2])
}

func TestClosed(t *testing.T) {
	t.Parallel()
	dev := &undertest.Counted{Device: undertest.Open(t, "cpu")}
	src, cfg := small(true)
	net, err := Load(t.Context(), dev, src, cfg)
	require.NoError(t, err)
	require.Positive(t, dev.Held())
	s, err := net.NewSession(t.Context(), asr.SessionConfig{Window: time.Second})
	require.NoError(t, err)
	_, err = net.NewSession(t.Context(), asr.SessionConfig{Head: asr.CTCHead})
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.NoError(t, net.Close())
	require.Zero(t, dev.Held())
	_, err = net.NewSession(t.Context(), asr.SessionConfig{})
	require.ErrorIs(t, err, pass.ErrClosed)
	_, err = s.Transcribe(t.Context(), make([]float32, 5000), asr.Options{})
	require.ErrorIs(t, err, pass.ErrClosed)
	_, err = net.Transcribe(t.Context(), make([]float32, 5000), asr.Options{})
	require.ErrorIs(t, err, pass.ErrClosed)
	require.NoError(t, s.Close())
	require.NoError(t, (*Model)(nil).Close())
}

// Slices of time of the subsampling meet without a seam: a batch of many items has shorter
// ones.
func TestSlices(t *testing.T) {
	undertest.Each(t, func(t *testing.T, dev pass.Device) {
		src, cfg := small(false)
		net, err := Load(t.Context(), dev, src, cfg)
		require.NoError(t, err)
		defer func() { require.NoError(t, net.Close()) }()
		const frames, items = 163, 32
		require.Less(t, sliceRows/items, encoder{net}.Stages(frames)[2])
		x := make([]float32, items*frames*80)
		goldens.Values(x, "x", 5, 1, 0)
		lengths := slices.Repeat([]int{9}, items)
		lengths[3], lengths[31] = frames, 149
		together := encode(t, net, x, frames, lengths)["subsampled"]
		for _, i := range []int{0, 3, 31} {
			item := x[i*frames*80:][:lengths[i]*80]
			want := encode(t, net, item, lengths[i], lengths[i:i+1])["subsampled"]
			got := together[i*len(together)/items:][:len(want)]
			require.Less(t, goldens.Error(got, want), 1e-6, "item %d", i)
		}
	})
}
