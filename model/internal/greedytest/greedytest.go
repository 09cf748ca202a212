// Package greedytest runs the golden cases of encoders with a greedy decoder. Only tests
// import it.
package greedytest

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/internal/greedy"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/pass"
)

// Cases runs every golden case of a kind of network on every device, and prints how close
// each output is.
func Cases(t *testing.T, model string, run func(t *testing.T, c *goldens.Case, dev pass.Device) goldens.Results) {
	t.Helper()
	folders, err := goldens.Folders(filepath.Join("..", "testdata", "goldens"))
	require.NoError(t, err)
	ran := 0
	for _, dir := range folders {
		c, err := goldens.Open(dir)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		if c.Model != model {
			continue
		}
		ran++
		t.Run(c.Name, func(t *testing.T) {
			undertest.EachMath(t, func(t *testing.T, dev pass.Device, m pass.Math) {
				require.NoError(t, c.Check(t.Output(), run(t, c, dev), m))
			})
		})
	}
	require.Positive(t, ran)
}

// Steps adds to results the ids of sequences, which begin with prompts of one id, and what
// a loop finds when it takes them step by step, from its caches: two steps may not be told
// apart by their ids alone.
func Steps(t *testing.T, loop *greedy.Loop, sequences [][]uint32, results goldens.Results) {
	t.Helper()
	batch := len(sequences)
	prompts := make([][]uint32, batch)
	var ids []int64
	for b, sequence := range sequences {
		prompts[b] = sequence[:1]
		for _, id := range sequence {
			ids = append(ids, int64(id))
		}
	}
	require.NoError(t, loop.Start(t.Context(), prompts))
	best2, values, first3 := make([][]int64, batch), make([][]float32, batch), make([][]float32, batch)
	for i := range len(sequences[0]) - 1 {
		next := make([]uint32, batch)
		for b := range next {
			next[b] = sequences[b][i]
		}
		logits, err := loop.Step(t.Context(), next)
		require.NoError(t, err)
		for b, row := range logits {
			if i < 3 {
				first3[b] = append(first3[b], row...)
			}
			for range 2 {
				k := slices.Index(row, slices.Max(row))
				best2[b], values[b] = append(best2[b], int64(k)), append(values[b], row[k])
				row[k] = float32(math.Inf(-1))
			}
		}
	}
	results["greedy"] = ids
	results["greedy_best2_ids"], results["greedy_best2_logits"] = slices.Concat(best2...), slices.Concat(values...)
	results["greedy_first3_logits"] = slices.Concat(first3...)
}
