package moonshine

import (
	"bytes"
	"context"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/model/vocabulary"
	"github.com/tandem-gpu/tandem/model/weights"
	"github.com/tandem-gpu/tandem/pass"
)

// metadata are the metadata of a file of the small model.
func metadata(c Config) gguf.Metadata {
	m := gguf.Metadata{
		"general.architecture": "moonshine", "stt.moonshine.partial_rotary_factor": float32(c.Rotary), "stt.moonshine.rope_theta": float32(c.Base),
		"tokenizer.ggml.tokens": []string{"<unk>", "▁a", "<0x62>"},
	}
	for key, n := range map[string]int{
		"encoder.d_model": c.Width, "encoder.ffn_dim": c.FFN, "encoder.n_layers": c.Layers, "encoder.n_heads": c.Heads, "encoder.n_kv_heads": c.Heads,
		"decoder.ffn_dim": c.DecoderFFN, "decoder.n_layers": c.DecoderLayers, "decoder.n_heads": c.DecoderHeads,
		"decoder.vocab_size": c.Classes, "decoder.max_position_embeddings": c.Positions,
		"decoder_start_token_id": c.Start, "eos_token_id": 2,
	} {
		m["stt.moonshine."+key] = uint32(n)
	}
	return m
}

// sttNamed shows weights under the names of transcribe.cpp.
func sttNamed(src undertest.Source) undertest.Source {
	stt := undertest.Source{}
	for name, x := range src {
		stt[sttName(strings.TrimPrefix(name, "model."))] = x
	}
	return stt
}

func TestFileGivesTheSame(t *testing.T) {
	t.Parallel()
	cfg := smallConfig()
	src := smallWeights(cfg)
	stt, short := sttNamed(src), undertest.Source{}
	require.Len(t, stt, len(src))
	for name, x := range src {
		short[strings.TrimPrefix(name, "model.")] = x
	}
	for _, name := range []string{
		"enc.conv.0.weight", "enc.conv.2.bias", "enc.conv.norm.bias", "enc.blocks.0.norm_attn.weight", "enc.blocks.0.attn.q.weight",
		"enc.blocks.0.attn.out.weight", "enc.blocks.0.norm_ffn.weight", "enc.blocks.0.ffn.fc1.bias", "enc.final_norm.weight",
		"dec.token_embd.weight", "dec.blocks.1.norm_self.weight", "dec.blocks.1.self_attn.out.weight", "dec.blocks.1.norm_cross.weight",
		"dec.blocks.1.cross_attn.k.weight", "dec.blocks.1.norm_ffn.weight", "dec.blocks.1.ffn.fc2.weight", "dec.final_norm.weight",
	} {
		require.Contains(t, stt, name)
	}
	b := undertest.GGUF(t, metadata(cfg), stt)
	f, err := gguf.New(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	read, err := FromGGUF(f.Metadata())
	require.NoError(t, err)
	want := cfg
	want.End, want.Vocabulary = 2, read.Vocabulary
	require.Equal(t, want, read)
	require.Equal(t, "ab", read.Vocabulary.Text([]int{0, 1, 2}))
	var first []int
	for _, from := range []weights.Source{src, short, stt, f} {
		m, err := Load(t.Context(), openCPU(t), from, cfg)
		require.NoError(t, err)
		d, err := m.Generate(t.Context(), [][]float32{noise(1, 20000)}, Options{})
		require.NoError(t, err)
		if first == nil {
			first = d[0].IDs
		}
		require.Equal(t, first, d[0].IDs)
		require.NoError(t, m.Close())
	}
}

// Files that are wrong are refused with one clear error, and leave nothing behind.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	cfg := smallConfig()
	const tensor = "dec.blocks.1.cross_attn.k.weight"
	change := func(f func(m gguf.Metadata, src undertest.Source)) []byte {
		m, src := metadata(cfg), sttNamed(smallWeights(cfg))
		f(m, src)
		return undertest.GGUF(t, m, src)
	}
	set := func(key string, v any) []byte {
		return change(func(m gguf.Metadata, _ undertest.Source) { m[key] = v })
	}
	good := change(func(gguf.Metadata, undertest.Source) {})
	bad := map[string]undertest.BadFile{
		"architecture":    undertest.Bad(set("general.architecture", "whisper"), `want the architecture moonshine, given "whisper"`),
		"no architecture": undertest.Bad(change(func(m gguf.Metadata, _ undertest.Source) { delete(m, "general.architecture") }), `no key "general.architecture"`),
		"missing key":     undertest.Bad(change(func(m gguf.Metadata, _ undertest.Source) { delete(m, "stt.moonshine.decoder.vocab_size") }), `no key "stt.moonshine.decoder.vocab_size"`),
		"type of a key":   undertest.Bad(set("stt.moonshine.rope_theta", "x"), "want a float, given string"),
		"heads":           {File: set("stt.moonshine.encoder.n_heads", uint32(3)), Says: []string{"moonshine: "}, Is: pass.ErrUnsupported},
		"odd rotary":      undertest.Bad(set("stt.moonshine.partial_rotary_factor", float32(0.4)), "want an even number of turned dimensions"),
		"huge":            undertest.Bad(set("stt.moonshine.encoder.d_model", uint32(1<<31)), "width: want 1 to 65536, given 2147483648"),
		"token":           undertest.Bad(set("stt.moonshine.eos_token_id", uint32(50)), "want tokens of the 50 in the vocabulary"),
		"wrong size":      undertest.Bad(set("stt.moonshine.encoder.ffn_dim", uint32(25)), `"encoder.layers.0.mlp.fc1.weight": want shape [25 16], given [24 16]`),
		"missing tensor":  undertest.Bad(change(func(_ gguf.Metadata, src undertest.Source) { delete(src, tensor) }), `no tensor "`+tensor, "nearest is"),
		"shape": undertest.Bad(change(func(_ gguf.Metadata, src undertest.Source) {
			src[tensor] = pass.Float32s(tensor, make([]float32, 128), 16, 8)
		}), "k_proj.weight", "want shape [16 16], given [16 8]"),
		"type": undertest.Bad(change(func(_ gguf.Metadata, src undertest.Source) {
			src[tensor] = pass.Tensor{Type: pass.F16, Shape: []int{16, 16}, Data: bytes.NewReader(make([]byte, 512))}
		}), "want F16 with k = 16 as part 0, given F32"),
		"NaN": undertest.Bad(change(func(_ gguf.Metadata, src undertest.Source) {
			values, err := src[tensor].Float32s()
			require.NoError(t, err)
			values[77] = float32(math.Inf(1))
			src[tensor] = pass.Float32s(tensor, values, 16, 16)
		}), "k_proj.weight", "want finite values, given NaN or infinity as element 77"),
		"cut in half": undertest.Bad(good[:len(good)/2], "gguf: "),
		"end cut off": undertest.Bad(good[:len(good)-100], "gguf: "),
		"empty":       undertest.Bad(nil, "gguf: "),
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
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Load(ctx, dev, smallWeights(cfg), cfg)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, dev.Held())
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for size := range sizes {
		c, err := Preset(size)
		require.NoError(t, err)
		require.NoError(t, c.Check())
		require.Equal(t, 32, c.rot(c.Heads))
	}
	_, err := Preset("large")
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, "[base tiny]")
	c, err := FromJSON([]byte(`{"model_type": "moonshine", "vocab_size": 32768, "hidden_size": 288, "intermediate_size": 1152,
		"encoder_num_hidden_layers": 6, "decoder_num_hidden_layers": 6, "encoder_num_attention_heads": 8, "decoder_num_attention_heads": 8,
		"encoder_num_key_value_heads": 8, "partial_rotary_factor": 0.9, "max_position_embeddings": 194}`), []byte(`{"model": {"vocab": {"▁a": 0}}}`))
	require.NoError(t, err)
	require.Equal(t, "a", c.Vocabulary.Text([]int{0}))
	c.Vocabulary = vocabulary.Vocabulary{}
	tiny, err := Preset("tiny")
	require.NoError(t, err)
	require.Equal(t, tiny, c)
	for _, text := range []string{`{`, `{"model_type": "whisper"}`, `{}`} {
		_, err := FromJSON([]byte(text), nil)
		require.ErrorIs(t, err, pass.ErrInvalid)
	}
	for _, text := range []string{`{"attention_bias": true}`, `{"encoder_num_attention_heads": 8, "encoder_num_key_value_heads": 4}`} {
		_, err := FromJSON([]byte(text), nil)
		require.ErrorIs(t, err, pass.ErrUnsupported)
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
