package moonshine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/vocabulary"

	"github.com/tandem-gpu/tandem/pass"
)

// Utterances of different lengths give together what each gives on its own, whatever it is
// filled up to.
func TestLengths(t *testing.T) {
	onDevices(t, func(t *testing.T, dev pass.Device) {
		cfg := smallConfig()
		m := loadSmall(t, dev, cfg)
		all := [][]float32{noise(1, MinSamples), noise(2, 15999), noise(3, 16001), noise(4, 5000), noise(5, 40000)}
		traced := map[string][]float32{}
		alone, err := m.NewSession(t.Context(), SessionConfig{Trace: func(name string, v []float32) { traced[name] = v }})
		require.NoError(t, err)
		defer alone.Close()
		var want []Decoded
		for i, u := range all {
			require.NoError(t, alone.Encode(t.Context(), u))
			require.Zero(t, len(traced["encoder"])%cfg.Width)
			d, err := alone.Decode(t.Context(), Options{MaxTokens: 12})
			require.NoError(t, err)
			require.Len(t, d[0].IDs, 12)
			want = append(want, d...)
			if i > 0 {
				require.NotEqual(t, want[i-1].IDs, d[0].IDs, "the audio makes no difference")
			}
		}
		together, err := m.NewSession(t.Context(), SessionConfig{Batch: 3, Seconds: 3})
		require.NoError(t, err)
		defer together.Close()
		got, err := together.Generate(t.Context(), all, Options{MaxTokens: 12})
		require.NoError(t, err)
		for i, d := range got {
			require.Equal(t, want[i].IDs, d.IDs, "utterance %d", i)
			require.InDeltaSlice(t, want[i].LogProbs, d.LogProbs, 1e-4)
		}
		require.Len(t, got, len(all))
		require.Len(t, together.encode, 2, "the longest of a batch is of up to 2 s, then of up to 3 s")
		one, err := m.Generate(t.Context(), [][]float32{all[1]}, Options{MaxTokens: 12})
		require.NoError(t, err)
		require.Equal(t, want[1].IDs, one[0].IDs)
	})
}

// A text ends at its token, which is part of it, or at its limit; the limit follows from
// the length of each utterance.
func TestLimits(t *testing.T) {
	t.Parallel()
	ctx, dev := t.Context(), openCPU(t)
	cfg := smallConfig()
	m := loadSmall(t, dev, cfg)
	short, long := noise(6, 6400), noise(7, 3*SampleRate)
	free, err := m.Generate(ctx, [][]float32{short, long}, Options{})
	require.NoError(t, err)
	require.Len(t, free[0].IDs, 3)  // 2.6
	require.Len(t, free[1].IDs, 20) // 19.5
	both, err := m.NewSession(t.Context(), SessionConfig{Batch: 2})
	require.NoError(t, err)
	defer both.Close()
	batch, err := both.Generate(ctx, [][]float32{short, long}, Options{})
	require.NoError(t, err)
	require.Equal(t, free[0].IDs, batch[0].IDs)
	require.Equal(t, free[1].IDs, batch[1].IDs)
	all, err := m.Generate(ctx, [][]float32{short}, Options{MaxTokens: 1000})
	require.NoError(t, err)
	require.Len(t, all[0].IDs, cfg.Positions)

	cfg.End = free[1].IDs[10]
	at := 0
	for free[1].IDs[at] != cfg.End {
		at++
	}
	tokens := make([]string, cfg.Classes)
	tokens[free[1].IDs[0]], tokens[cfg.End] = "▁text", "▁end"
	cfg.Vocabulary = vocabulary.New(vocabulary.SentencePiece, tokens...)
	ends := loadSmall(t, dev, cfg)
	got, err := ends.Generate(ctx, [][]float32{long}, Options{})
	require.NoError(t, err)
	require.Equal(t, free[1].IDs[:at+1], got[0].IDs)
	require.Contains(t, got[0].Text, "text")
	require.NotContains(t, got[0].Text, "end")
}

func TestWrongCalls(t *testing.T) {
	t.Parallel()
	ctx, dev := t.Context(), newCounting(t)
	cfg := smallConfig()
	m, err := Load(ctx, dev, smallWeights(cfg), cfg)
	require.NoError(t, err)
	for _, c := range []SessionConfig{{Batch: maxBatch + 1}, {Batch: -1}, {Seconds: 129}, {Seconds: -1}, {Cache: pass.Q8_0}} {
		_, err = m.NewSession(t.Context(), c)
		require.ErrorIs(t, err, pass.ErrInvalid)
	}
	require.Zero(t, dev.Sessions())
	s, err := m.NewSession(t.Context(), SessionConfig{Seconds: 5})
	require.NoError(t, err)
	_, err = s.Decode(ctx, Options{})
	require.ErrorIs(t, err, pass.ErrInvalid)
	bad := noise(1, 2000)
	bad[1999] /= 0
	for _, u := range [][][]float32{{}, {noise(1, 2000), noise(2, 2000)}, {noise(1, MinSamples-1)}, {noise(1, 5*SampleRate+1)}, {bad}} {
		err := s.Encode(ctx, u...)
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, "moonshine: encode: ")
	}
	require.NoError(t, s.Encode(ctx, noise(1, 5*SampleRate)))
	require.Equal(t, 5*SampleRate, s.bucket(5*SampleRate))
	_, err = s.Decode(ctx, Options{MaxTokens: -1})
	require.ErrorIs(t, err, pass.ErrInvalid)
	for _, ids := range [][][]int{{}, {{1}, {2}}, {{50}}, {{-1}}, {{}}, {make([]int, 31)}} {
		_, _, err = s.Logits(ctx, ids)
		require.ErrorIs(t, err, pass.ErrInvalid)
	}
	_, err = m.Generate(ctx, [][]float32{noise(1, 2000)}, Options{})
	require.NoError(t, err)
	require.Equal(t, 2, dev.Sessions(), "the session of Generate is kept")
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	require.NoError(t, (*Model)(nil).Close())
	require.Zero(t, dev.Held())
	_, err = m.NewSession(t.Context(), SessionConfig{})
	require.ErrorIs(t, err, pass.ErrClosed)
	require.ErrorIs(t, s.Encode(ctx, noise(1, 2000)), pass.ErrClosed)
	_, err = m.Generate(ctx, [][]float32{noise(1, 2000)}, Options{})
	require.ErrorIs(t, err, pass.ErrClosed)
	require.NoError(t, s.Close())
	require.NoError(t, (*Session)(nil).Close())
	require.Zero(t, dev.Sessions())
}

func TestSteps(t *testing.T) {
	t.Parallel()
	require.Equal(t, [3]int{2749, 915, 457}, steps(11*SampleRate))
	require.Equal(t, [3]int{13, 3, 1}, steps(MinSamples))
	require.Equal(t, 0, steps(MinSamples - 1)[2])
	require.Equal(t, [3]int{}, steps(0))
	require.LessOrEqual(t, steps(128 * SampleRate)[2], maxFrames)
}

// Values that were not made by this package's functions are refused, not followed.
func TestZeroValues(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var m Model
	var s Session
	_, newSession := m.NewSession(ctx, SessionConfig{})
	_, ofModel := m.Transcribe(ctx, nil, Options{})
	_, transcribe := s.Transcribe(ctx, nil, Options{})
	_, generate := s.Generate(ctx, nil, Options{})
	_, decode := s.Decode(ctx, Options{})
	_, _, logits := s.Logits(ctx, nil)
	for _, err := range []error{newSession, ofModel, transcribe, generate, decode, logits, s.Encode(ctx)} {
		require.ErrorIs(t, err, pass.ErrInvalid)
	}
	require.NoError(t, m.Close())
	require.NoError(t, s.Close())
}
