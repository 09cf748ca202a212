package whisper

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/goldens"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/pass"
)

// smallConfig is a model of a few thousand weights, whose windows are of 0.4 s.
func smallConfig() Config {
	return Config{
		Mels: 8, Width: 16, Heads: 2, DecoderHeads: 4, Layers: 1, DecoderLayers: 2, FFN: 24, DecoderFFN: 40,
		Classes: 69, AudioPositions: 20, TextPositions: 24,
		Tokens: Tokens{
			End: 27, Start: 41, Languages: map[string]int{"en": 42, "de": 43}, Translate: 44, Transcribe: 45,
			NoSpeech: 46, NoTimestamps: 47, FirstTimestamp: 48,
		},
		Suppress: []int{1, 3, 41, 42, 43, 44, 45, 46}, SuppressAtBegin: []int{5, 27},
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
	linear := func(name string, out, in int, biased bool) {
		scale := float32(0.6)
		if strings.HasPrefix(name, "decoder.") && (strings.HasSuffix(name, "out_proj") || strings.HasSuffix(name, "fc2")) {
			scale = 2.5
		}
		add(scale, 0, name+".weight", out, in)
		if biased {
			add(0.1, 0, name+".bias", out)
		}
	}
	norm := func(name string) {
		add(0.2, 1, name+".weight", d)
		add(0.1, 0, name+".bias", d)
	}
	attention := func(name string) {
		linear(name+".q_proj", d, d, true)
		linear(name+".k_proj", d, d, false)
		linear(name+".v_proj", d, d, true)
		linear(name+".out_proj", d, d, true)
		norm(name + "_layer_norm")
	}
	for side, n := range map[string]struct{ layers, ffn, positions int }{
		"encoder": {c.Layers, c.FFN, c.AudioPositions}, "decoder": {c.DecoderLayers, c.DecoderFFN, c.TextPositions},
	} {
		add(1.5, 0, side+".embed_positions.weight", n.positions, d)
		norm(side + ".layer_norm")
		for i := range n.layers {
			name := fmt.Sprintf("%s.layers.%d.", side, i)
			attention(name + "self_attn")
			if side == "decoder" {
				attention(name + "encoder_attn")
			}
			linear(name+"fc1", n.ffn, d, true)
			linear(name+"fc2", d, n.ffn, true)
			norm(name + "final_layer_norm")
		}
	}
	for i, in := range []int{c.Mels, d} {
		name := fmt.Sprint("encoder.conv", i+1)
		add(0.2, 0, name+".weight", d, in, 3)
		add(0.1, 0, name+".bias", d)
	}
	add(0.5, 0, "decoder.embed_tokens.weight", c.Classes, d)
	return m
}

// noise is audio whose pitch and loudness change with time, and with the seed.
func noise(seed uint64, samples int) []float32 {
	values := make([]float32, samples)
	goldens.Values(values, "noise", seed, 0.1, 0)
	for i := range values {
		x := float64(i) / 16000
		loud := math.Sin(2 * math.Pi * float64(seed+1) * x)
		values[i] = float32(float64(values[i]) * math.Exp(-4*loud) * math.Sin(2*math.Pi*(300+500*float64(seed))*x*(1+x)))
	}
	return values
}

func loadSmall(t *testing.T, dev pass.Device, cfg Config) *Model {
	m, err := Load(t.Context(), dev, smallWeights(cfg), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

func open(t *testing.T, m *Model, cfg SessionConfig) *Session {
	s, err := m.NewSession(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// newCounting opens a device that counts what is on it.
func newCounting(t *testing.T) *undertest.Counted { return &undertest.Counted{Device: openCPU(t)} }
