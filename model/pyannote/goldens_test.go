package pyannote

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// TestGoldens runs the golden cases of the network, in windows of just their size and in
// longer ones; with the race detector, which makes it twenty times slower, and without
// TANDEM_FULL=1 fewer of those of this repository.
func TestGoldens(t *testing.T) {
	own := filepath.Join("..", "testdata", "goldens")
	folders, err := goldens.Folders(own)
	require.NoError(t, err)
	ran := 0
	for _, dir := range folders {
		c, err := goldens.Open(dir)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		if c.Model != "pyannote-segmentation-3.0" {
			continue
		}
		var config struct{ Batch, Samples int }
		require.NoError(t, c.Configuration(&config))
		sizes := slices.Compact([]int{config.Samples, max(config.Samples, defaultSamples)})
		if raced && filepath.Dir(dir) == own && os.Getenv("TANDEM_FULL") != "1" {
			if c.Name == "segmentation" {
				t.Logf("%s is not run with the race detector", c.Name)
				continue
			}
			sizes = sizes[:1]
		}
		for _, size := range sizes {
			ran++
			t.Run(fmt.Sprint(c.Name, " in ", size), func(t *testing.T) {
				undertest.EachMath(t, func(t *testing.T, dev pass.Device, m pass.Math) {
					require.NoError(t, c.Check(t.Output(), runGolden(t, c, dev, config.Batch, size), m))
				})
			})
		}
	}
	require.Positive(t, ran)
}

// sizeOf reads the size of a network from its tensors.
func sizeOf(t *testing.T, c *goldens.Case) Config {
	axis := func(name string, i int) int {
		shape, err := c.TensorAxes(name, 2)
		require.NoError(t, err)
		return shape[i]
	}
	cfg := Config{Hidden: axis("lstm.weight_hh_l0", 1), Classes: axis("classifier.weight", 0)}
	for weights.Has(c, fmt.Sprint("lstm.weight_hh_l", cfg.Layers)) {
		cfg.Layers++
	}
	for i := 0; weights.Has(c, fmt.Sprintf("linear.%d.weight", i)); i++ {
		cfg.Linear = append(cfg.Linear, axis(fmt.Sprintf("linear.%d.weight", i), 0))
	}
	return cfg
}

func runGolden(t *testing.T, c *goldens.Case, dev pass.Device, batch, size int) goldens.Results {
	shape, err := c.InputAxes("waveforms", 3)
	require.NoError(t, err)
	samples, err := c.InputOf("waveforms", batch, 1, shape[2])
	require.NoError(t, err)
	m, err := Load(t.Context(), dev, c, sizeOf(t, c))
	require.NoError(t, err)
	defer m.Close()
	all := slices.Collect(slices.Chunk(samples, len(samples)/batch))
	frames, most := Frames(len(all[0])), Frames(size)
	got := goldens.Results{}
	see := func(name string, values []float32) {
		var to []float32
		n := len(values) / batch / most
		for b := range batch {
			item := values[b*most*n:]
			if name == "sincnet" {
				for i := range frames * n {
					to = append(to, item[i%frames*n+i/frames])
				}
				continue
			}
			for f := 0; f < frames; f += 5 {
				to = append(to, item[f*n:(f+1)*n]...)
			}
		}
		if name == "lstm" {
			name = "lstm_every5"
		}
		got[name] = to
	}
	s, err := m.NewSession(t.Context(), SessionConfig{Batch: batch, Samples: size, Trace: see})
	require.NoError(t, err)
	defer s.Close()
	results, err := s.Segment(t.Context(), all...)
	require.NoError(t, err)
	got["log_probabilities"] = slices.Concat(results...)
	return got
}
