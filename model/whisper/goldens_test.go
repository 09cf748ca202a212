package whisper

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/internal/greedytest"
	"github.com/tandem-gpu/tandem/pass"
)

// TestGoldens runs the golden cases of whole networks.
func TestGoldens(t *testing.T) { greedytest.Cases(t, "whisper", runGolden) }

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
	sequences := make([][]uint32, batch)
	for b, d := range decoded {
		for _, id := range slices.Concat(d.Prompt, d.IDs) {
			sequences[b] = append(sequences[b], uint32(id))
		}
	}
	greedytest.Steps(t, s.loop, sequences, got)
	return got
}
