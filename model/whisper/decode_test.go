package whisper

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// reference decodes on the host, from the logits of the whole text at each step.
func reference(t *testing.T, s *Session, prompts [][]int, opt Options, steps int) (ids [][]int, logprobs [][]float64) {
	c := s.model.cfg
	ids, logprobs = make([][]int, len(prompts)), make([][]float64, len(prompts))
	for step := range steps {
		all := make([][]int, len(prompts))
		for i := range all {
			all[i] = append(slices.Clone(prompts[i]), ids[i]...)
			all[i] = append(all[i], make([]int, len(prompts[i])+step-len(all[i]))...)
		}
		_, logits, err := s.Logits(t.Context(), all)
		require.NoError(t, err)
		for i := range all {
			if n := len(ids[i]); n > 0 && ids[i][n-1] == c.Tokens.End {
				continue
			}
			row := logits[i][(len(all[i])-1)*c.Classes:]
			if opt.Mode == Timestamps {
				c.timestampRules(row, ids[i])
			} else {
				first, rest := s.model.masks(opt.Mode)
				mask := rest
				if step == 0 {
					mask = first
				}
				for k := range row {
					row[k] += mask[k]
				}
			}
			id := largest(row)
			ids[i], logprobs[i] = append(ids[i], id), append(logprobs[i], logProb(row, id))
		}
	}
	return ids, logprobs
}

// Every mode chooses what the logits of the whole text give, for each item of a batch that
// is not full.
func TestDecode(t *testing.T) {
	onDevices(t, func(t *testing.T, dev pass.Device) {
		cfg := smallConfig()
		m := loadSmall(t, dev, cfg)
		s := open(t, m, SessionConfig{Batch: 4})
		n := cfg.Samples()
		require.Equal(t, 6400, n)
		require.NoError(t, s.Encode(t.Context(), noise(1, n), noise(2, n/2), noise(3, n)))
		ended := false
		for _, opt := range []Options{
			{Mode: Raw, Language: "en"}, {Mode: Plain, Language: "de"}, {Mode: Timestamps, Language: "en", Translate: true},
			{Mode: Plain}, {Mode: Plain, MaxTokens: 1}, {Mode: Raw, Prompt: []int{7, 9, 11, 41, 43, 45, 2}}, {Mode: Timestamps, Prompt: []int{41}},
			{Mode: Raw, Prompt: []int{41}}, {Mode: Raw, Prompt: []int{9}, MaxTokens: 100},
		} {
			got, err := s.Decode(t.Context(), opt)
			require.NoError(t, err)
			require.Len(t, got, 3)
			steps := opt.MaxTokens
			if steps == 0 {
				steps = cfg.TextPositions / 2
			}
			steps = min(steps, cfg.TextPositions-len(got[0].Prompt)+1)
			prompts := [][]int{got[0].Prompt, got[1].Prompt, got[2].Prompt}
			ids, logprobs := reference(t, s, prompts, opt, steps)
			for i, d := range got {
				require.Equal(t, ids[i], d.IDs, "%+v: item %d", opt, i)
				require.Len(t, d.LogProbs, len(ids[i]))
				for k, v := range logprobs[i] {
					require.InDelta(t, v, d.LogProbs[k], 1e-4)
				}
				ended = ended || d.IDs[len(d.IDs)-1] == cfg.Tokens.End
				if start := slices.Index(d.Prompt, cfg.Tokens.Start); start >= 0 {
					_, logits, err := s.Logits(t.Context(), prompts)
					require.NoError(t, err)
					row := logits[i][start*cfg.Classes : (start+1)*cfg.Classes]
					require.InDelta(t, logProb(row, cfg.Tokens.NoSpeech), logOf(d.NoSpeech), 1e-4)
					if opt.Language == "" && opt.Prompt == nil {
						require.Equal(t, likeliest(row, cfg.Tokens.Languages), d.Language)
						require.Equal(t, cfg.Tokens.Languages[d.Language], d.Prompt[1])
					}
				}
			}
		}
		require.True(t, ended, "no item came to its end")
	})
}

// Caches of halves change little.
func TestHalfCaches(t *testing.T) {
	onDevices(t, func(t *testing.T, dev pass.Device) {
		cfg := smallConfig()
		m := loadSmall(t, dev, cfg)
		ids := [][]int{{41, 42, 45, 47, 9, 33, 7, 12}}
		var rows [2][]float32
		for i, cache := range []pass.DType{pass.F32, pass.F16} {
			s := open(t, m, SessionConfig{Cache: cache})
			require.NoError(t, s.Encode(t.Context(), noise(1, cfg.Samples())))
			hidden, _, err := s.Logits(t.Context(), ids)
			require.NoError(t, err)
			rows[i] = hidden[0]
		}
		require.NotEqual(t, rows[0], rows[1])
		require.Less(t, relative(rows[0], rows[1]), 5e-3)
	})
}

func TestPrompts(t *testing.T) {
	t.Parallel()
	m := &Model{cfg: smallConfig()}
	s := &Session{model: m}
	out := make([]Decoded, 1)
	for _, c := range []struct {
		opt    Options
		want   []int
		detect bool
	}{
		{Options{Language: "de"}, []int{41, 43, 45, 47}, false},
		{Options{Language: "de", Mode: Timestamps}, []int{41, 43, 45}, false},
		{Options{Language: "en", Translate: true}, []int{41, 42, 44, 47}, false},
		{Options{}, []int{41, 0, 45, 47}, true},
		{Options{Prompt: []int{3}}, []int{3}, false},
	} {
		detect, err := s.prompts(c.opt, out)
		require.NoError(t, err)
		require.Equal(t, c.detect, detect)
		require.Equal(t, c.want, out[0].Prompt)
	}
	for _, opt := range []Options{{Language: "xx"}, {Prompt: []int{}}, {Prompt: []int{69}}, {Prompt: []int{-1}}, {Prompt: make([]int, 25)}} {
		_, err := s.prompts(opt, out)
		require.ErrorIs(t, err, pass.ErrInvalid, "%+v", opt)
	}
	m.cfg.Tokens.Languages = nil
	_, err := s.prompts(Options{Language: "en"}, out)
	require.NoError(t, err)
	require.Equal(t, []int{41, 47}, out[0].Prompt)
	for _, opt := range []Options{{Language: "de"}, {Translate: true}} {
		_, err := s.prompts(opt, out)
		require.ErrorIs(t, err, pass.ErrUnsupported)
	}
}

func TestWrongCalls(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cfg := smallConfig()
	dev := newCounting(t)
	m, err := Load(ctx, dev, smallWeights(cfg), cfg)
	require.NoError(t, err)
	s, err := m.NewSession(ctx, SessionConfig{Batch: 2})
	require.NoError(t, err)
	_, err = s.Decode(ctx, Options{})
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, _, err = s.Logits(ctx, [][]int{{1}})
	require.ErrorIs(t, err, pass.ErrInvalid)
	w := noise(1, 100)
	w[7] /= 0
	for _, windows := range [][][]float32{{}, {nil, nil, nil}, {noise(1, cfg.Samples()+1)}, {noise(1, 3), w}} {
		require.ErrorIs(t, s.Encode(ctx, windows...), pass.ErrInvalid)
	}
	require.ErrorIs(t, s.EncodeMel(ctx, w), pass.ErrInvalid)
	require.NoError(t, s.Encode(ctx, noise(1, 1000)))
	for _, opt := range []Options{{Mode: 3}, {MaxTokens: -1}, {Language: "xx"}} {
		_, err = s.Decode(ctx, opt)
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, "whisper: decode: ")
	}
	for _, ids := range [][][]int{{}, {{1}, {2}}, {{69}}, {{}}, {make([]int, 25)}} {
		_, _, err = s.Logits(ctx, ids)
		require.ErrorIs(t, err, pass.ErrInvalid)
	}
	for _, batch := range []int{-1, maxBatch + 1} {
		_, err = m.NewSession(ctx, SessionConfig{Batch: batch})
		require.ErrorIs(t, err, pass.ErrInvalid)
	}
	_, err = m.NewSession(ctx, SessionConfig{Cache: pass.Q8_0})
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.Equal(t, 1, dev.Sessions(), "a session that failed stays open")

	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	require.NoError(t, (*Model)(nil).Close())
	require.Zero(t, dev.Held())
	_, err = m.NewSession(ctx, SessionConfig{})
	require.ErrorIs(t, err, pass.ErrClosed)
	require.ErrorIs(t, s.Encode(ctx, noise(1, 1000)), pass.ErrClosed)
	_, err = s.Decode(ctx, Options{})
	require.ErrorIs(t, err, pass.ErrClosed)
	_, err = m.Transcribe(ctx, noise(1, 1000), Options{})
	require.ErrorIs(t, err, pass.ErrClosed)
	require.NoError(t, s.Close())
	require.NoError(t, (*Session)(nil).Close())
	require.Zero(t, dev.Sessions())
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
	_, decode := s.Decode(ctx, Options{})
	_, _, logits := s.Logits(ctx, nil)
	for _, err := range []error{newSession, ofModel, transcribe, decode, logits, s.Encode(ctx), s.EncodeMel(ctx, nil)} {
		require.ErrorIs(t, err, pass.ErrInvalid)
	}
	require.NoError(t, m.Close())
	require.NoError(t, s.Close())
}
