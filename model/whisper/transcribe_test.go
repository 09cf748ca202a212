package whisper

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/vocabulary"
	"github.com/tandem-gpu/tandem/pass"
)

// smallText names the tokens of the small model.
func smallText(c Config) vocabulary.Vocabulary {
	tokens := make([]string, c.Classes)
	for i := range tokens {
		tokens[i] = "Ġ" + string(rune('A'+i%26))
	}
	return vocabulary.New(vocabulary.ByteLevel, tokens...)
}

// Audio of any length gives the same windows, however many are decoded at a time.
func TestTranscribe(t *testing.T) {
	onDevices(t, func(t *testing.T, dev pass.Device) {
		cfg := smallConfig()
		cfg.Vocabulary = smallText(cfg)
		m := loadSmall(t, dev, cfg)
		each := cfg.Samples()
		audio := noise(9, 4*each+123)
		opt := Options{Language: "en"}
		var progress []float64
		told := opt
		told.Progress = func(done float64) { progress = append(progress, done) }
		one, err := m.Transcribe(t.Context(), audio, told)
		require.NoError(t, err)
		require.Len(t, progress, 5)
		require.IsIncreasing(t, progress)
		require.EqualValues(t, 1, progress[4])
		require.Len(t, one.Windows, 5)
		var texts []string
		for i, w := range one.Windows {
			require.Equal(t, i*each, w.Start)
			if text := strings.TrimSpace(w.Text); text != "" {
				texts = append(texts, text)
			}
		}
		require.NotEmpty(t, texts)
		require.Equal(t, strings.Join(texts, " "), one.Text)
		require.NotEqual(t, one.Windows[0].IDs, one.Windows[1].IDs)
		three, err := open(t, m, SessionConfig{Batch: 3}).Transcribe(t.Context(), audio, opt)
		require.NoError(t, err)
		for i, w := range three.Windows {
			require.Equal(t, one.Windows[i].IDs, w.IDs)
			require.InDeltaSlice(t, one.Windows[i].LogProbs, w.LogProbs, 1e-4)
		}
		require.Equal(t, one.Text, three.Text)
		none, err := m.Transcribe(t.Context(), nil, opt)
		require.NoError(t, err)
		require.Equal(t, Result{}, none)

		// Each window decodes what it does on its own, and begins where the one before said.
		opt = Options{Mode: Timestamps, Language: "en"}
		timed, err := m.Transcribe(t.Context(), audio, opt)
		require.NoError(t, err)
		s := open(t, m, SessionConfig{})
		at := 0
		for _, w := range timed.Windows {
			require.Equal(t, at, w.Start)
			require.NoError(t, s.Encode(t.Context(), audio[at:min(at+each, len(audio))]))
			d, err := s.Decode(t.Context(), opt)
			require.NoError(t, err)
			require.Equal(t, d[0].IDs, w.IDs)
			used, _ := cfg.complete(w.IDs)
			at += used
		}
		require.GreaterOrEqual(t, at, len(audio))
		require.NotEmpty(t, timed.Segments)
	})
}

// What a window adds to a result.
func TestAdd(t *testing.T) {
	t.Parallel()
	cfg := smallConfig()
	cfg.Vocabulary = smallText(cfg)
	m := &Model{cfg: cfg}
	window := func(first int, quiet bool, ids ...int) Window {
		return Window{Decoded{IDs: ids, Text: m.text(ids), Segments: m.segments(ids)}, first, quiet}
	}
	const first, end = 48, 27
	var r Result
	require.Equal(t, 5*320, r.add(window(0, false, first, 0, first+5, first+5, 1, 2, end), cfg, 6400))
	require.Equal(t, 6400, r.add(window(1600, false, first, 1, 2, end), cfg, 3200))
	require.Equal(t, 6400, r.add(window(8000, true, first, 3, first+4, end), cfg, 3200))
	require.Equal(t, "A B C ", r.Text)
	require.Equal(t, []Segment{
		{0, 100 * time.Millisecond, []int{0}, "A"},
		{100 * time.Millisecond, 300 * time.Millisecond, []int{1, 2}, "B C"}, // it ends with the samples
	}, r.Segments)
	require.Len(t, r.Windows, 3)
}

// A model is used by several goroutines at a time.
func TestTranscribeConcurrently(t *testing.T) {
	t.Parallel()
	m := loadSmall(t, openCPU(t), smallConfig())
	want := make([]Result, 4)
	for i := range want {
		var err error
		want[i], err = m.Transcribe(t.Context(), noise(uint64(i), 9000), Options{})
		require.NoError(t, err)
	}
	var wg sync.WaitGroup
	for i := range want {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 3 {
				got, err := m.Transcribe(t.Context(), noise(uint64(i), 9000), Options{})
				assert.NoError(t, err)
				assert.Equal(t, want[i], got)
			}
		}()
	}
	wg.Wait()
}

// Sessions of Transcribe are kept, and closed with the model.
func TestSessionsAreKept(t *testing.T) {
	t.Parallel()
	cfg := smallConfig()
	dev := newCounting(t)
	m, err := Load(t.Context(), dev, smallWeights(cfg), cfg)
	require.NoError(t, err)
	for range 3 {
		_, err := m.Transcribe(t.Context(), noise(1, 100), Options{MaxTokens: 1})
		require.NoError(t, err)
		require.Equal(t, 1, dev.Sessions())
	}
	require.NoError(t, m.Close())
	require.Zero(t, dev.Sessions())
	require.Zero(t, dev.Held())
}
