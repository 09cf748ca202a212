package whisper

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/pass"
)

// TestGoldens runs the golden cases of whole networks.
func TestGoldens(t *testing.T) {
	folders, err := goldens.Folders(filepath.Join("..", "testdata", "goldens"))
	require.NoError(t, err)
	ran := 0
	for _, dir := range folders {
		c, err := goldens.Open(dir)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		if c.Model != "whisper" {
			continue
		}
		ran++
		t.Run(c.Name, func(t *testing.T) {
			onDevices(t, func(t *testing.T, dev pass.Device) {
				require.NoError(t, c.Check(t.Output(), runGolden(t, c, dev), pass.Exact))
			})
		})
	}
	require.Positive(t, ran)
}

func runGolden(t *testing.T, c *goldens.Case, dev pass.Device) goldens.Results {
	ctx := t.Context()
	cfg, err := FromJSON(c.Config, nil)
	require.NoError(t, err)
	start := cfg.Tokens.Start
	cfg.Tokens = tokensOf(0) // nothing ends the sequence
	m, err := Load(ctx, dev, c, cfg)
	require.NoError(t, err)
	defer m.Close()

	in := c.Inputs["input_features"]
	batch, mels, frames := in.Shape[0], in.Shape[1], in.Shape[2]
	turned, err := c.Input("input_features")
	require.NoError(t, err)
	mel := make([]float32, len(turned))
	for i, v := range turned {
		b, r, f := i/(mels*frames), i/frames%mels, i%frames
		mel[(b*frames+f)*mels+r] = v
	}
	got := goldens.Results{}
	see := func(name string, values []float32) {
		if name != "encoder" {
			return
		}
		steps := frames / 2
		rows := func(from, to, by int) (out []float32) {
			for b := range batch {
				for r := from; r < to; r += by {
					at := (b*steps + r) * cfg.Width
					out = append(out, values[at:at+cfg.Width]...)
				}
			}
			return out
		}
		got["encoder_every5"], got["encoder_first32"], got["encoder_last32"] = rows(0, steps, 5), rows(0, 32, 1), rows(steps-32, steps, 1)
	}
	s, err := m.NewSession(ctx, SessionConfig{Batch: batch, Trace: see})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.EncodeMel(ctx, mel))
	_, logits, err := s.Logits(ctx, c.DecoderInputIDs)
	require.NoError(t, err)
	got["logits"] = slices.Concat(logits...)

	steps := c.Outputs["greedy"].Shape[1] - 1
	decoded, err := s.Decode(ctx, Options{Mode: Raw, Prompt: []int{start}, MaxTokens: steps})
	require.NoError(t, err)
	var ids []int64
	for _, d := range decoded {
		for _, id := range slices.Concat(d.Prompt, d.IDs) {
			ids = append(ids, int64(id))
		}
	}
	got["greedy"] = ids
	// Step by step, from the caches: two steps may not be told apart by their ids alone.
	require.NoError(t, s.loop.Start(ctx, prompts(decoded)))
	best2, values := make([][]int64, batch), make([][]float32, batch)
	first3 := make([][]float32, batch)
	for i := range steps {
		next := make([]uint32, batch)
		for b := range next {
			next[b] = uint32(ids[b*(steps+1)+i])
		}
		logits, err := s.loop.Step(ctx, next)
		require.NoError(t, err)
		for b, row := range logits {
			if i < 3 {
				first3[b] = append(first3[b], row...)
			}
			for range 2 {
				k := largest(row)
				best2[b], values[b] = append(best2[b], int64(k)), append(values[b], row[k])
				row[k] = never
			}
		}
	}
	got["greedy_best2_ids"], got["greedy_best2_logits"] = slices.Concat(best2...), slices.Concat(values...)
	got["greedy_first3_logits"] = slices.Concat(first3...)
	return got
}
