package whisper

import (
	"bytes"
	"context"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/model/vocabulary"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// plainMetadata are the metadata of a file of the small model.
func plainMetadata(c Config) gguf.Metadata {
	m := gguf.Metadata{"general.architecture": "whisper", "whisper.vocab_size": uint32(c.Classes)}
	for key, n := range map[string]int{
		"embedding_length": c.Width, "feed_forward_length": c.FFN, "encoder.mel_bins": c.Mels,
		"encoder.block_count": c.Layers, "encoder.attention.head_count": c.Heads, "encoder.context_length": c.AudioPositions,
		"decoder.block_count": c.DecoderLayers, "decoder.attention.head_count": c.DecoderHeads, "decoder.context_length": c.TextPositions,
		"token.eot": c.Tokens.End, "token.sot": c.Tokens.Start, "token.no_speech": c.Tokens.NoSpeech,
		"token.no_timestamps": c.Tokens.NoTimestamps, "token.timestamp_begin": c.Tokens.FirstTimestamp,
	} {
		m["whisper."+key] = uint32(n)
	}
	m["whisper.suppress_tokens"] = []int32{1, 3}
	m["tokenizer.ggml.tokens"] = []string{"Ġa", "b"}
	return m
}

// equalFFN is the small model with hidden layers of one width, as GGUF has it.
func equalFFN() Config {
	c := smallConfig()
	c.DecoderFFN = c.FFN
	return c
}

func TestFileGivesTheSame(t *testing.T) {
	t.Parallel()
	cfg := equalFFN()
	src := smallWeights(cfg)
	path := filepath.Join(t.TempDir(), "small.gguf")
	require.NoError(t, os.WriteFile(path, undertest.GGUF(t, plainMetadata(cfg), src), 0o600))
	f, err := gguf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	read, err := FromGGUF(f.Metadata())
	require.NoError(t, err)
	require.Equal(t, " ab", read.Vocabulary.Text([]int{0, 1}))
	want := cfg
	want.Suppress, want.SuppressAtBegin, want.Vocabulary = []int{1, 3}, nil, read.Vocabulary
	want.Tokens.Languages, want.Tokens.Translate, want.Tokens.Transcribe = nil, -1, -1
	require.Equal(t, want, read)

	// The same weights under three sets of names, and from a file.
	short, stt := undertest.Source{}, undertest.Source{}
	for name, x := range src {
		short[strings.TrimPrefix(name, "model.")] = x
		stt[sttName(strings.TrimPrefix(name, "model."))] = x
	}
	require.Len(t, stt, len(src))
	for _, name := range []string{
		"enc.conv.0.weight", "enc.conv.1.bias", "enc.pos_emb.weight", "enc.final_norm.bias", "enc.blocks.0.norm_attn.weight", "enc.blocks.0.attn.q.weight",
		"enc.blocks.0.attn.out.bias", "enc.blocks.0.norm_ffn.weight", "enc.blocks.0.ffn.fc1.weight", "dec.token_embd.weight", "dec.pos_emb.weight",
		"dec.blocks.1.norm_self.weight", "dec.blocks.1.self_attn.k.weight", "dec.blocks.1.norm_cross.bias", "dec.blocks.1.cross_attn.v.bias",
		"dec.blocks.1.cross_attn.out.weight", "dec.blocks.1.norm_ffn.bias", "dec.blocks.1.ffn.fc2.weight", "dec.final_norm.weight",
	} {
		require.Contains(t, stt, name)
	}
	var texts [][]int
	for _, from := range []weights.Source{src, short, stt, f} {
		m, err := Load(t.Context(), openCPU(t), from, read)
		require.NoError(t, err)
		r, err := m.Transcribe(t.Context(), noise(1, 2000), Options{})
		require.NoError(t, err)
		texts = append(texts, r.Windows[0].IDs)
		require.Equal(t, texts[0], r.Windows[0].IDs)
		require.NoError(t, m.Close())
	}
}

// Files that are wrong are refused with one clear error, and leave nothing behind.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	cfg := equalFFN()
	const tensor = "model.decoder.layers.1.encoder_attn.k_proj.weight"
	change := func(f func(m gguf.Metadata, src undertest.Source)) []byte {
		m, src := plainMetadata(cfg), smallWeights(cfg)
		f(m, src)
		return undertest.GGUF(t, m, src)
	}
	reshape := func(src undertest.Source, name string, shape ...int) {
		src[name] = pass.Float32s(name, make([]float32, pass.Tensor{Shape: shape}.Len()), shape...)
	}
	good := change(func(gguf.Metadata, undertest.Source) {})
	bad := map[string]undertest.BadFile{
		"architecture":    undertest.Bad(change(func(m gguf.Metadata, _ undertest.Source) { m["general.architecture"] = "moonshine" }), `want the architecture whisper, given "moonshine"`),
		"no architecture": undertest.Bad(change(func(m gguf.Metadata, _ undertest.Source) { delete(m, "general.architecture") }), `no key "general.architecture"`),
		"missing key":     undertest.Bad(change(func(m gguf.Metadata, _ undertest.Source) { delete(m, "whisper.vocab_size") }), `no key "whisper.vocab_size"`),
		"type of a key":   undertest.Bad(change(func(m gguf.Metadata, _ undertest.Source) { m["whisper.vocab_size"] = "many" }), "want an integer, given string"),
		"heads":           undertest.Bad(change(func(m gguf.Metadata, _ undertest.Source) { m["whisper.encoder.attention.head_count"] = uint32(3) }), "divide the width 16, given 3 heads"),
		"huge":            undertest.Bad(change(func(m gguf.Metadata, _ undertest.Source) { m["whisper.embedding_length"] = uint32(1 << 31) }), "width: want 1 to 65536, given 2147483648"),
		"many layers":     undertest.Bad(change(func(m gguf.Metadata, _ undertest.Source) { m["whisper.decoder.block_count"] = uint32(1000) }), `no tensor "model.decoder.layers.2.self_attn_layer_norm.weight"`),
		"token":           undertest.Bad(change(func(m gguf.Metadata, _ undertest.Source) { m["whisper.token.eot"] = uint32(69) }), "want tokens of the 69 in the vocabulary, given 69"),
		"wrong size":      undertest.Bad(change(func(m gguf.Metadata, _ undertest.Source) { m["whisper.decoder.context_length"] = uint32(23) }), `"decoder.embed_positions.weight": want shape [23 16], given [24 16]`),
		"missing tensor":  undertest.Bad(change(func(_ gguf.Metadata, src undertest.Source) { delete(src, tensor) }), `no tensor "`+tensor, "nearest is"),
		"shape":           undertest.Bad(change(func(_ gguf.Metadata, src undertest.Source) { reshape(src, tensor, 16, 8) }), "k_proj.weight", "want shape [16 16], given [16 8]"),
		"type": undertest.Bad(change(func(_ gguf.Metadata, src undertest.Source) {
			src[tensor] = pass.Tensor{Type: pass.F16, Shape: []int{16, 16}, Data: bytes.NewReader(make([]byte, 512))}
		}), "want F16 with k = 16 as part 0, given F32"),
		"NaN": undertest.Bad(change(func(_ gguf.Metadata, src undertest.Source) {
			values, err := src[tensor].Float32s()
			require.NoError(t, err)
			values[77] = float32(math.NaN())
			src[tensor] = pass.Float32s(tensor, values, 16, 16)
		}), "k_proj.weight", "want finite values, given NaN or infinity as element 77"),
		"cut in half": undertest.Bad(good[:len(good)/2], "gguf: "),
		"end cut off": undertest.Bad(good[:len(good)-100], "gguf: "),
		"empty":       undertest.Bad(nil, "gguf: "),
		"another":     undertest.Bad([]byte("RIFF\x00\x00\x00\x00WAVEfmt "), "gguf: "),
	}
	load := func(dev pass.Device, f *gguf.File) error {
		cfg, err := FromGGUF(f.Metadata())
		if err != nil {
			return err
		}
		_, err = Load(t.Context(), dev, f, cfg)
		return err
	}
	undertest.RefusesFiles(t, bad, func() pass.Device { return openCPU(t) }, load)
	dev := newCounting(t)
	_, err := Load(t.Context(), dev, nil, cfg)
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, err = Load(t.Context(), nil, smallWeights(cfg), cfg)
	require.ErrorIs(t, err, pass.ErrInvalid)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Load(ctx, dev, smallWeights(cfg), cfg)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, dev.Held())
}

func TestPresets(t *testing.T) {
	t.Parallel()
	for _, size := range slices.Collect(maps.Keys(sizes)) {
		c, err := Preset(size)
		require.NoError(t, err)
		require.NoError(t, c.Check(), size)
		require.Equal(t, 480000, c.Samples())
		require.Equal(t, 64, c.Width/c.Heads)
		// The last timestamp, 30 s, is the last token.
		require.Equal(t, c.Classes, c.Tokens.FirstTimestamp+1501, size)
		require.Equal(t, strings.HasSuffix(size, ".en"), len(c.Tokens.Languages) == 0)
	}
	_, err := Preset("giant")
	require.ErrorIs(t, err, pass.ErrInvalid)
	// Ids of published vocabularies.
	m := Multilingual(99)
	require.Equal(t, []int{50259, 50358, 50359, 50362, 50363, 50364}, []int{m.Languages["en"], m.Translate, m.Transcribe, m.NoSpeech, m.NoTimestamps, m.FirstTimestamp})
	require.Equal(t, 50357, m.Languages["su"])
	require.NotContains(t, m.Languages, "yue")
	require.Equal(t, 50358, Multilingual(100).Languages["yue"])
}

func TestFromJSON(t *testing.T) {
	t.Parallel()
	const config = `{"model_type": "whisper", "num_mel_bins": 8, "d_model": 16, "encoder_attention_heads": 2, "decoder_attention_heads": 4,
		"encoder_layers": 1, "decoder_layers": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 40, "vocab_size": 69,
		"max_source_positions": 20, "max_target_positions": 24, "eos_token_id": 27, "decoder_start_token_id": 41}`
	const generation = `{"no_timestamps_token_id": 47, "suppress_tokens": [1, 3], "begin_suppress_tokens": [5, 27],
		"lang_to_id": {"<|en|>": 42, "<|de|>": 43}, "task_to_id": {"translate": 44, "transcribe": 45}}`
	c, err := FromJSON([]byte(config), []byte(generation), []byte(`{"model": {"vocab": {"Ġa": 0}}}`))
	require.NoError(t, err)
	require.Equal(t, " a", c.Vocabulary.Text([]int{0}))
	c.Vocabulary = vocabulary.Vocabulary{}
	want := smallConfig()
	want.Suppress, want.Tokens.NoSpeech = []int{1, 3}, -1
	require.Equal(t, want, c)
	for name, text := range map[string][3]string{
		"config.json: ":                {`{`, `{}`, `{}`},
		"generation_config.json: ":     {config, `[`, `{}`},
		"vocabulary: tokenizer.json: ": {config, `{}`, `[`},
		"model type whisper":           {`{"model_type": "bert"}`, `{}`, `{}`},
		"mels: want 1 to 1024":         {`{}`, `{}`, `{}`},
	} {
		_, err := FromJSON([]byte(text[0]), []byte(text[1]), []byte(text[2]))
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, name)
	}
}

// Every tensor is looked at.
func TestEveryTensorIsChecked(t *testing.T) {
	t.Parallel()
	cfg := smallConfig()
	src := undertest.Source{}
	for name, x := range smallWeights(cfg) {
		src[strings.TrimPrefix(name, "model.")] = x
	}
	undertest.Refuses(t, src, func(ctx context.Context, dev pass.Device, src undertest.Source) (io.Closer, error) {
		return Load(ctx, dev, src, cfg)
	})
}
