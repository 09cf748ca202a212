package moonshine

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/internal/greedytest"
	"github.com/tandem-gpu/tandem/pass"
)

// TestGoldens runs the golden cases of whole networks.
func TestGoldens(t *testing.T) { greedytest.Cases(t, "moonshine", runGolden) }

// goldenModel loads the model of a case, whose sequences nothing ends, and its utterances.
func goldenModel(t *testing.T, c *goldens.Case, dev pass.Device) (*Model, [][]float32) {
	cfg, err := FromJSON(c.Config, nil)
	require.NoError(t, err)
	cfg.End = -1
	m, err := Load(t.Context(), dev, c, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	in, err := c.InputAxes("input_values", 2)
	require.NoError(t, err)
	all, err := c.Input("input_values")
	require.NoError(t, err)
	return m, slices.Collect(slices.Chunk(all, in[1]))
}

func runGolden(t *testing.T, c *goldens.Case, dev pass.Device) goldens.Results {
	ctx := t.Context()
	m, utterances := goldenModel(t, c, dev)
	batch := len(utterances)
	got := goldens.Results{}
	frames := steps(len(utterances[0]))[2]
	see := func(name string, values []float32) {
		if name != "encoder" {
			return
		}
		var rows []float32
		for item := range slices.Chunk(values, len(values)/batch) {
			rows = append(rows, item[:frames*m.cfg.Width]...)
		}
		got["encoder"] = rows
	}
	s, err := m.NewSession(t.Context(), SessionConfig{Batch: batch, Seconds: (len(utterances[0])-1)/SampleRate + 1, Trace: see})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Encode(ctx, utterances...))
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
	decoded, err := s.Decode(ctx, Options{MaxTokens: greedy[1] - 1})
	require.NoError(t, err)
	sequences := make([][]uint32, batch)
	for b, d := range decoded {
		sequences[b] = []uint32{uint32(m.cfg.Start)}
		for _, id := range d.IDs {
			sequences[b] = append(sequences[b], uint32(id))
		}
	}
	greedytest.Steps(t, s.loop, sequences, got)
	return got
}
