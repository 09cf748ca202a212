package wespeaker

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// TestGoldens runs the golden cases of the network; the large one of this repository, ten
// seconds of audio, with TANDEM_FULL=1 only.
func TestGoldens(t *testing.T) {
	own := filepath.Join("..", "testdata", "goldens")
	folders, err := goldens.Folders(own)
	require.NoError(t, err)
	ran := 0
	for _, dir := range folders {
		c, err := goldens.Open(dir)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		if c.Model != "wespeaker-resnet34-lm" {
			continue
		}
		if dir == filepath.Join(own, "resnet34") && os.Getenv("TANDEM_FULL") != "1" {
			t.Logf("%s is not run, since TANDEM_FULL is not 1", c.Name)
			continue
		}
		ran++
		t.Run(c.Name, func(t *testing.T) {
			undertest.EachMath(t, func(t *testing.T, dev pass.Device, m pass.Math) {
				require.NoError(t, c.Check(t.Output(), runGolden(t, c, dev), m))
			})
		})
	}
	require.Positive(t, ran)
}

// sizeOf reads the size of a network from its tensors.
func sizeOf(t *testing.T, c *goldens.Case, mels int) Config {
	conv, err := c.TensorAxes("resnet.conv1.weight", 4)
	require.NoError(t, err)
	head, err := c.TensorAxes("resnet.seg_1.weight", 2)
	require.NoError(t, err)
	cfg := Config{Mels: mels, Channels: conv[0], Width: head[0]}
	for s := range cfg.Blocks {
		for weights.Has(c, fmt.Sprintf("resnet.layer%d.%d.conv1.weight", s+1, cfg.Blocks[s])) {
			cfg.Blocks[s]++
		}
	}
	return cfg
}

func runGolden(t *testing.T, c *goldens.Case, dev pass.Device) goldens.Results {
	var config struct{ Batch, Frames, Mels, Masks int }
	require.NoError(t, c.Configuration(&config))
	m, err := Load(t.Context(), dev, c, sizeOf(t, c, config.Mels))
	require.NoError(t, err)
	defer m.Close()
	fbank, err := c.InputOf("fbank", config.Batch, 1, config.Mels, config.Frames)
	require.NoError(t, err)
	shape, err := c.InputAxes("masks", 3)
	require.NoError(t, err)
	masks, err := c.InputOf("masks", config.Batch, config.Masks, shape[2])
	require.NoError(t, err)
	all := make([]Window, config.Batch)
	n, each := config.Frames*config.Mels, shape[2]
	for b := range all {
		all[b].Features = make([]float32, n)
		for i, v := range fbank[b*n : (b+1)*n] {
			all[b].Features[i%config.Frames*config.Mels+i/config.Frames] = v
		}
		for range config.Masks {
			all[b].Masks, masks = append(all[b].Masks, masks[:each]), masks[each:]
		}
	}
	got := goldens.Results{}
	see := func(name string, values []float32) {
		stage := max(0, strings.Index("1234", strings.TrimPrefix(name, "layer")))
		channels := m.cfg.channels(stage)
		pixels := len(values) / config.Batch / channels
		means := make([]float64, config.Batch*channels)
		for i, v := range values {
			means[i/(pixels*channels)*channels+i%channels] += float64(v) / float64(pixels)
		}
		rounded := make([]float32, len(means))
		for i, v := range means {
			rounded[i] = float32(v)
		}
		got[name+"_channel_means"] = rounded
		if name == "layer4" {
			trunk := make([]float32, pixels*channels)
			for i := range trunk {
				trunk[i%channels*pixels+i/channels] = values[i]
			}
			got["trunk"] = trunk
		}
	}
	s, err := m.NewSession(t.Context(), SessionConfig{Batch: config.Batch, Masks: config.Masks, Trace: see})
	require.NoError(t, err)
	defer s.Close()
	embeddings, err := s.Embed(t.Context(), all...)
	require.NoError(t, err)
	var flat []float32
	for _, w := range embeddings {
		for _, e := range w {
			flat = append(flat, e...)
		}
	}
	got["embeddings"] = flat
	return got
}
