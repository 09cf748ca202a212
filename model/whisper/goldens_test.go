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
	cfg, err := FromJSON(c.Config, nil, nil)
	require.NoError(t, err)
	start := cfg.Tokens.Start
	cfg.Tokens = tokensOf(0) // nothing ends the sequence
	m, err := Load(ctx, dev, c, cfg)
	require.NoError(t, err)
	defer m.Close()

	in, err := c.InputAxes("input_features", 3)
	require.NoError(t, err)
	batch, mels, frames := in[0], in[1], in[2]
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
		got["encoder_every5"], got["encoder_first32"], got["encoder_last32"] = rows(0, steps, 5), rows(0, min(32, steps), 1), rows(max(steps-32, 0), steps, 1)
	}
	s, err := m.NewSession(ctx, SessionConfig{Batch: batch, Trace: see})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.EncodeMel(ctx, mel))
	if _, ok := c.Outputs["logits"]; ok {
		_, logits, err := s.Logits(ctx, c.DecoderInputIDs)
		require.NoError(t, err)
		got["logits"] = slices.Concat(logits...)
	}
	if _, ok := c.Outputs["greedy"]; !ok {
		return got
	}

	greedy, err := c.OutputAxes("greedy", 2)
	require.NoError(t, err)
	decoded, err := s.Decode(ctx, Options{Mode: Raw, Prompt: []int{start}, MaxTokens: greedy[1] - 1})
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
