package goldens_test

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/pass"
)

// runners compute the outputs of the cases of a model.
var runners = map[string]func(b *bench) goldens.Results{
	"front end":          frontEnd,
	"lstm":               lstm,
	"relative-attention": relativeAttention,
	"resnet-block":       residualBlocks,
	"statistics-pooling": statistics,
}

// elsewhere are the models whose cases are run by the packages of those networks.
var elsewhere = []string{
	"whisper", "moonshine", "parakeet-ctc", "parakeet-rnnt", "parakeet-tdt", "gigaam-v3-ctc", "gigaam-v3-rnnt",
	"pyannote-segmentation-3.0", "wespeaker-resnet34-lm",
}

// TestGoldens runs every case that it has a runner for on every device, and prints how
// close each output is. Cases of whole networks are run by the packages of those.
func TestGoldens(t *testing.T) {
	folders, err := goldens.Folders(filepath.Join("..", "testdata", "goldens"))
	require.NoError(t, err)
	ran := map[string]bool{}
	for _, dir := range folders {
		c, err := goldens.Open(dir)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		run, ok := runners[c.Model]
		if !ok {
			require.Contains(t, elsewhere, c.Model, "%s: a model that nothing runs", dir)
			t.Logf("%s: a case of %q", c.Name, c.Model)
			continue
		}
		ran[c.Model] = true
		t.Run(c.Name, func(t *testing.T) {
			undertest.EachMath(t, func(t *testing.T, dev pass.Device, m pass.Math) {
				results := run(&bench{TB: t, Case: c, dev: dev})
				require.NoError(t, c.Check(t.Output(), results, m))
			})
		})
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(runners)), slices.Collect(maps.Keys(ran)), "a runner without a case")
}
