package moonshine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/pass"
)

// smallConfig is a model of a few thousand weights.
func smallConfig() Config {
	return Config{
		Width: 16, FFN: 24, DecoderFFN: 20, Layers: 1, DecoderLayers: 2, Heads: 2, DecoderHeads: 4, Rotary: 0.5, Base: 10000,
		Classes: 50, Positions: 30, Start: 1, End: -1,
	}
}

// smallWeights are random weights under Hugging Face's names.
func smallWeights(c Config) undertest.Source {
	m := undertest.Source{}
	add := func(scale, offset float32, name string, shape ...int) {
		values := make([]float32, pass.Tensor{Shape: shape}.Len())
		goldens.Values(values, name, 5, scale, offset)
		m["model."+name] = pass.Float32s(name, values, shape...)
	}
	d := c.Width
	// Wide scales of what is added to a row, so that texts do not repeat themselves.
	linear := func(name string, out, in int) {
		scale := float32(0.6)
		if strings.HasPrefix(name, "decoder.") && (strings.HasSuffix(name, "o_proj") || strings.HasSuffix(name, "fc2")) {
			scale = 2.5
		}
		add(scale, 0, name+".weight", out, in)
	}
	add(0.2, 0, "encoder.conv1.weight", d, 1, 127)
	add(0.1, 0, "encoder.conv2.weight", 2*d, d, 7)
	add(0.1, 0, "encoder.conv2.bias", 2*d)
	add(0.1, 0, "encoder.conv3.weight", d, 2*d, 3)
	add(0.1, 0, "encoder.conv3.bias", d)
	add(0.2, 1, "encoder.groupnorm.weight", d)
	add(0.1, 0, "encoder.groupnorm.bias", d)
	for side, n := range map[string]struct {
		layers, wide, ffn int
		attention, norms  []string
		last              string
	}{
		"encoder": {c.Layers, c.FFN, c.FFN, []string{"self_attn"}, []string{"input_layernorm", "post_attention_layernorm"}, "layer_norm"},
		"decoder": {c.DecoderLayers, 2 * c.DecoderFFN, c.DecoderFFN, []string{"self_attn", "encoder_attn"}, []string{"input_layernorm", "post_attention_layernorm", "final_layernorm"}, "norm"},
	} {
		for i := range n.layers {
			name := fmt.Sprintf("%s.layers.%d.", side, i)
			for _, a := range n.attention {
				for _, p := range []string{"q", "k", "v", "o"} {
					linear(name+a+"."+p+"_proj", d, d)
				}
			}
			for _, norm := range n.norms {
				add(0.2, 1, name+norm+".weight", d)
			}
			linear(name+"mlp.fc1", n.wide, d)
			add(0.1, 0, name+"mlp.fc1.bias", n.wide)
			linear(name+"mlp.fc2", d, n.ffn)
			add(0.1, 0, name+"mlp.fc2.bias", d)
		}
		add(0.2, 1, side+"."+n.last+".weight", d)
	}
	add(0.5, 0, "decoder.embed_tokens.weight", c.Classes, d)
	return m
}

func noise(seed uint64, samples int) []float32 {
	values := make([]float32, samples)
	goldens.Values(values, "noise", seed, 0.5, 0)
	return values
}

func loadSmall(t *testing.T, dev pass.Device, cfg Config) *Model {
	m, err := Load(t.Context(), dev, smallWeights(cfg), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// newCounting opens a device that counts what is on it.
func newCounting(t *testing.T) *undertest.Counted { return &undertest.Counted{Device: openCPU(t)} }
