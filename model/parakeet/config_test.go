package parakeet

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/pass"
)

func TestPresets(t *testing.T) {
	t.Parallel()
	for name := range variants {
		c, err := Preset(name)
		require.NoError(t, err)
		require.NoError(t, c.Check(), name)
	}
	c, err := Preset("tdt_ctc-110m")
	require.NoError(t, err)
	require.Equal(t, 17, c.Blocks.Layers)
	require.Equal(t, 64, c.Blocks.Width/c.Blocks.Heads)
	require.False(t, c.Scale)
	require.True(t, c.Blocks.LinearBias)
	require.Equal(t, []int{0, 1, 2, 3, 4}, c.Durations)
	c, err = Preset("ctc-1.1b")
	require.NoError(t, err)
	require.True(t, c.Scale)
	require.Nil(t, c.Durations)
	c, err = Preset("tdt-0.6b-v3")
	require.NoError(t, err)
	require.Equal(t, 8193, c.Classes)
	require.False(t, c.Blocks.ConvBias)
	_, err = Preset("tdt-9b")
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, "tdt-0.6b-v2")
}

const configJSON = `{"model_type": "parakeet_ctc", "vocab_size": 1025, "pad_token_id": 1024, "encoder_config": {
	"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 8, "intermediate_size": 4096, "conv_kernel_size": 9,
	"num_mel_bins": 80, "subsampling_conv_channels": 256, "attention_bias": true, "convolution_bias": true, "scale_input": true}}`

func TestFromJSON(t *testing.T) {
	t.Parallel()
	c, err := FromJSON([]byte(configJSON), nil)
	require.NoError(t, err)
	want, err := Preset("ctc-0.6b")
	require.NoError(t, err)
	require.Equal(t, want, c)
	c, err = FromJSON([]byte(strings.Replace(configJSON, "_ctc", "_tdt", 1)), []byte(`{"model": {"vocab": {"▁a": 0, "b": 1}}}`))
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2, 3, 4}, c.Durations)
	require.Equal(t, "ab", c.Vocabulary.Text([]int{0, 1}))
	_, err = FromJSON([]byte(configJSON), []byte(`{`))
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, "parakeet: vocabulary: tokenizer.json: ")
	for _, text := range []string{
		``, `{}`, `[]`, `{"vocab_size": "x"}`, strings.ReplaceAll(configJSON, "1024", "1e9"), strings.ReplaceAll(configJSON, "1024", "1000000000"),
		strings.Replace(configJSON, "parakeet_ctc", "whisper", 1),
	} {
		_, err := FromJSON([]byte(text), nil)
		require.ErrorIs(t, err, pass.ErrInvalid, text)
	}
}

func FuzzFromJSON(f *testing.F) {
	f.Add([]byte(configJSON))
	f.Add([]byte(`{"vocab_size": -1, "encoder_config": {"hidden_size": 9223372036854775807}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := FromJSON(text, nil)
		if err == nil {
			require.NoError(t, c.Check())
		}
	})
}

func TestFromGGUFRefuses(t *testing.T) {
	t.Parallel()
	_, config := openCase(t, "parakeet-tdt")
	for name, c := range map[string]struct {
		key  string
		to   any // nil: not there
		want error
		says string
	}{
		"architecture": {"general.architecture", "whisper", pass.ErrInvalid, `want the architecture "parakeet", given "whisper"`},
		"none":         {"general.architecture", nil, pass.ErrInvalid, `want the architecture "parakeet"`},
		"missing":      {"stt.parakeet.encoder.d_ff", nil, pass.ErrInvalid, "stt.parakeet.encoder.d_ff"},
		"type":         {"stt.parakeet.encoder.d_model", "wide", pass.ErrInvalid, "stt.parakeet.encoder.d_model"},
		"huge":         {"stt.parakeet.encoder.d_model", uint64(1) << 60, pass.ErrInvalid, "width: want 1 to 16384"},
		"kernel":       {"stt.parakeet.encoder.conv_kernel", uint32(8), pass.ErrInvalid, "kernel: want an odd number"},
		"subsampling":  {"stt.parakeet.encoder.subsampling_factor", uint32(4), pass.ErrUnsupported, "subsampling_factor: want 8, given 4"},
		"local":        {"stt.parakeet.encoder.att_context_left", int32(128), pass.ErrUnsupported, "att_context_left: want -1, given 128"},
		"norm":         {"stt.parakeet.encoder.conv_norm_type", "layer_norm", pass.ErrUnsupported, `conv_norm_type: want "batch_norm", given "layer_norm"`},
		"activation":   {"stt.parakeet.joint.activation", "tanh", pass.ErrUnsupported, `joint.activation: want "relu", given "tanh"`},
		"durations":    {"stt.parakeet.tdt.durations", "0 1 2", pass.ErrInvalid, "stt.parakeet.tdt.durations"},
		"blank":        {"tokenizer.ggml.blank_token_id", nil, pass.ErrInvalid, "tokenizer.ggml.blank_token_id"},
		"vocabulary":   {"tokenizer.ggml.tokens", []int32{3}, pass.ErrInvalid, "tokenizer.ggml.tokens"},
	} {
		m := metadata(config)
		m[c.key] = c.to
		if c.to == nil {
			delete(m, c.key)
		}
		_, err := FromGGUF(m)
		require.ErrorIs(t, err, c.want, name)
		require.ErrorContains(t, err, c.says, name)
	}
	m := metadata(config)
	m["tokenizer.ggml.tokens"] = []string{"▁a", "b"}
	c, err := FromGGUF(m)
	require.NoError(t, err)
	require.Equal(t, "ab", c.Vocabulary.Text([]int{0, 1}))
	require.Equal(t, 10, c.MaxSymbols)
	_, err = FromGGUF(gguf.Metadata{})
	require.ErrorIs(t, err, pass.ErrInvalid)
}
