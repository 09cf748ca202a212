package moonshine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/vocabulary"
)

// Long audio is cut in its pauses.
func TestCut(t *testing.T) {
	t.Parallel()
	audio := noise(1, 20*SampleRate)
	clear(audio[3*SampleRate : 3*SampleRate+SampleRate/2])   // too early, for pieces of 8 s
	clear(audio[6*SampleRate : 6*SampleRate+SampleRate/2])   // found
	clear(audio[9*SampleRate : 9*SampleRate+SampleRate/100]) // too short
	require.Equal(t, 5000, cut(audio[:5000], 8*SampleRate))
	require.Equal(t, 8*SampleRate, cut(audio[:8*SampleRate], 8*SampleRate))
	at := cut(audio, 8*SampleRate)
	require.Greater(t, at, 6*SampleRate+SampleRate/5)
	require.Less(t, at, 6*SampleRate+SampleRate/2)
	// What is left is long enough to be an utterance.
	loud := make([]float32, 2*SampleRate+1)
	for i := range loud {
		loud[i] = float32(len(loud) - i)
	}
	at = cut(loud, 2*SampleRate)
	require.LessOrEqual(t, at, 2*SampleRate+1-MinSamples)
	require.Greater(t, at, 2*SampleRate-2*MinSamples)
	for n := 1; n < 4*SampleRate; n += 777 {
		at := cut(loud[:min(n, len(loud))], SampleRate)
		require.LessOrEqual(t, at, SampleRate)
		require.Positive(t, at)
	}
}

func TestTranscribe(t *testing.T) {
	t.Parallel()
	cfg := smallConfig()
	tokens := make([]string, cfg.Classes)
	for i := range tokens {
		tokens[i] = "▁" + string(rune('A'+i%26))
	}
	cfg.Vocabulary = vocabulary.New(vocabulary.SentencePiece, tokens...)
	m := loadSmall(t, openCPU(t), cfg)
	s, err := m.NewSession(t.Context(), SessionConfig{Batch: 2, Seconds: 1})
	require.NoError(t, err)
	defer s.Close()
	audio := noise(3, 5*SampleRate/2)
	var progress []float64
	got, err := s.Transcribe(t.Context(), audio, Options{Progress: func(done float64) { progress = append(progress, done) }})
	require.NoError(t, err)
	require.Greater(t, len(got.Utterances), 2)
	require.Len(t, progress, (len(got.Utterances)+1)/2)
	require.IsIncreasing(t, progress)
	require.EqualValues(t, 1, progress[len(progress)-1])
	at, text := 0, ""
	for _, u := range got.Utterances {
		require.Equal(t, at, u.Start)
		alone, err := s.Generate(t.Context(), [][]float32{audio[u.Start:u.End]}, Options{})
		require.NoError(t, err)
		require.Equal(t, alone[0].IDs, u.IDs)
		if at > 0 {
			text += " "
		}
		at, text = u.End, text+u.Text
	}
	require.Equal(t, len(audio), at)
	require.Equal(t, text, got.Text)
	whole, err := m.Transcribe(t.Context(), audio, Options{})
	require.NoError(t, err)
	require.Len(t, whole.Utterances, 1)
	none, err := m.Transcribe(t.Context(), audio[:MinSamples-1], Options{})
	require.NoError(t, err)
	require.Equal(t, Result{}, none)
}
