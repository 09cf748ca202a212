package moonshine

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
		if c.Model != "moonshine" {
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

// goldenModel loads the model of a case, whose sequences nothing ends, and its utterances.
func goldenModel(t *testing.T, c *goldens.Case, dev pass.Device) (*Model, [][]float32) {
	cfg, err := FromJSON(c.Config)
	require.NoError(t, err)
	cfg.End = -1
	m, err := Load(t.Context(), dev, c, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	all, err := c.Input("input_values")
	require.NoError(t, err)
	return m, slices.Collect(slices.Chunk(all, c.Inputs["input_values"].Shape[1]))
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
	s, err := m.NewSession(SessionConfig{Batch: batch, Seconds: (len(utterances[0])-1)/Rate + 1, Trace: see})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Encode(ctx, utterances...))
	_, logits, err := s.Logits(ctx, c.DecoderInputIDs)
	require.NoError(t, err)
	got["logits"] = slices.Concat(logits...)

	n := c.Outputs["greedy"].Shape[1] - 1
	decoded, err := s.Decode(ctx, Options{MaxTokens: n})
	require.NoError(t, err)
	var ids []int64
	prompts := make([][]uint32, batch)
	for b, d := range decoded {
		prompts[b] = []uint32{uint32(m.cfg.Start)}
		ids = append(ids, int64(m.cfg.Start))
		for _, id := range d.IDs {
			ids = append(ids, int64(id))
		}
	}
	got["greedy"] = ids
	// The logits of those steps, one at a time, from the caches.
	require.NoError(t, s.loop.Start(ctx, prompts))
	best2, values, first3 := make([][]int64, batch), make([][]float32, batch), make([][]float32, batch)
	for i := range n {
		next := make([]uint32, batch)
		for b := range next {
			next[b] = uint32(ids[b*(n+1)+i])
		}
		logits, err := s.loop.Step(ctx, next)
		require.NoError(t, err)
		for b, row := range logits {
			if i < 3 {
				first3[b] = append(first3[b], row...)
			}
			for range 2 {
				k := slices.Index(row, slices.Max(row))
				best2[b], values[b] = append(best2[b], int64(k)), append(values[b], row[k])
				row[k] = -1e30
			}
		}
	}
	got["greedy_best2_ids"], got["greedy_best2_logits"] = slices.Concat(best2...), slices.Concat(values...)
	got["greedy_first3_logits"] = slices.Concat(first3...)
	return got
}
