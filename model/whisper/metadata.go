package whisper

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/model/vocabulary"
	"github.com/tandem-gpu/tandem/pass"
)

// FromGGUF returns the configuration that the metadata of a file give, under the keys
// whisper.* or those of transcribe.cpp, stt.whisper.*. The architecture must be whisper.
// Special tokens that have no key are those of the published vocabulary of the same
// size.
func FromGGUF(m gguf.Metadata) (Config, error) {
	arch, err := m.String("general.architecture")
	if err != nil {
		return Config{}, fmt.Errorf("whisper: %w", err)
	}
	if arch != "whisper" {
		return Config{}, fmt.Errorf("whisper: want the architecture whisper, given %.100q: %w", arch, pass.ErrInvalid)
	}
	k := keys{m: m}
	names := plainKeys
	if m.Has("stt.variant") || m.Has("stt.whisper.encoder.d_model") {
		names = sttKeys
	}
	c := Config{
		Mels: k.int(names["mels"]), Width: k.int(names["width"]), Classes: k.int(names["classes"]),
		Heads: k.int(names["heads"]), DecoderHeads: k.int(names["decoder heads"]),
		Layers: k.int(names["layers"]), DecoderLayers: k.int(names["decoder layers"]),
		FFN: k.int(names["ffn"]), DecoderFFN: k.int(names["decoder ffn"]),
		AudioPositions: k.int(names["audio"]), TextPositions: k.int(names["text"]),
	}
	c.Tokens = tokensOf(c.Classes)
	for name, to := range map[string]*int{
		"end": &c.Tokens.End, "start": &c.Tokens.Start, "no speech": &c.Tokens.NoSpeech, "no timestamps": &c.Tokens.NoTimestamps,
		"first timestamp": &c.Tokens.FirstTimestamp,
	} {
		k.optional(names[name], to)
	}
	if names["first timestamp"] == "" && c.Tokens.NoTimestamps >= 0 {
		c.Tokens.FirstTimestamp = c.Tokens.NoTimestamps + 1
	}
	c.Suppress, c.SuppressAtBegin = k.ints(names["suppress"]), k.ints(names["suppress at begin"])
	c.Vocabulary, err = vocabulary.FromGGUF(m, vocabulary.ByteLevel)
	k.fail(err)
	if k.err != nil {
		return Config{}, fmt.Errorf("whisper: %w", k.err)
	}
	return c, c.Check()
}

var plainKeys = map[string]string{
	"mels": "whisper.encoder.mel_bins", "width": "whisper.embedding_length", "classes": "whisper.vocab_size",
	"heads": "whisper.encoder.attention.head_count", "decoder heads": "whisper.decoder.attention.head_count",
	"layers": "whisper.encoder.block_count", "decoder layers": "whisper.decoder.block_count",
	"ffn": "whisper.feed_forward_length", "decoder ffn": "whisper.feed_forward_length",
	"audio": "whisper.encoder.context_length", "text": "whisper.decoder.context_length",
	"end": "whisper.token.eot", "start": "whisper.token.sot", "no speech": "whisper.token.no_speech",
	"no timestamps": "whisper.token.no_timestamps", "first timestamp": "whisper.token.timestamp_begin",
	"suppress": "whisper.suppress_tokens", "suppress at begin": "whisper.begin_suppress_tokens",
}

var sttKeys = map[string]string{
	"mels": "stt.whisper.encoder.num_mel_bins", "width": "stt.whisper.encoder.d_model", "classes": "stt.whisper.decoder.vocab_size",
	"heads": "stt.whisper.encoder.n_heads", "decoder heads": "stt.whisper.decoder.n_heads",
	"layers": "stt.whisper.encoder.n_layers", "decoder layers": "stt.whisper.decoder.n_layers",
	"ffn": "stt.whisper.encoder.ffn_dim", "decoder ffn": "stt.whisper.decoder.ffn_dim",
	"audio": "stt.whisper.encoder.max_source_positions", "text": "stt.whisper.decoder.max_target_positions",
	"end": "tokenizer.ggml.eos_token_id", "start": "stt.whisper.sot_token_id",
	"no timestamps": "stt.whisper.no_timestamps_token_id",
	"suppress":      "stt.whisper.suppress_tokens", "suppress at begin": "stt.whisper.begin_suppress_tokens",
}

// keys reads metadata and remembers the first error.
type keys struct {
	m   gguf.Metadata
	err error
}

func (k *keys) int(key string) int {
	n, err := k.m.Int(key)
	k.fail(err)
	return n
}

func (k *keys) optional(key string, to *int) {
	if key != "" && k.m.Has(key) {
		*to = k.int(key)
	}
}

func (k *keys) ints(key string) []int {
	if !k.m.Has(key) {
		return nil
	}
	v, err := k.m.Ints(key)
	k.fail(err)
	return v
}

func (k *keys) fail(err error) {
	if k.err == nil {
		k.err = err
	}
}

// FromJSON returns the configuration of a Hugging Face checkpoint, of the contents of
// config.json, generation_config.json and tokenizer.json. The latter two may be nil:
// special tokens that are not given are those of the published vocabulary of the same
// size, and without a tokenizer there is no Vocabulary.
func FromJSON(config, generation, tokenizer []byte) (Config, error) {
	v := struct {
		ModelType       string         `json:"model_type"`
		Mels            int            `json:"num_mel_bins"`
		Width           int            `json:"d_model"`
		Heads           int            `json:"encoder_attention_heads"`
		DecoderHeads    int            `json:"decoder_attention_heads"`
		Layers          int            `json:"encoder_layers"`
		DecoderLayers   int            `json:"decoder_layers"`
		FFN             int            `json:"encoder_ffn_dim"`
		DecoderFFN      int            `json:"decoder_ffn_dim"`
		Classes         int            `json:"vocab_size"`
		AudioPositions  int            `json:"max_source_positions"`
		TextPositions   int            `json:"max_target_positions"`
		End             *int           `json:"eos_token_id"`
		Start           *int           `json:"decoder_start_token_id"`
		NoTimestamps    *int           `json:"no_timestamps_token_id"`
		Suppress        []int          `json:"suppress_tokens"`
		SuppressAtBegin []int          `json:"begin_suppress_tokens"`
		Languages       map[string]int `json:"lang_to_id"`
		Tasks           map[string]int `json:"task_to_id"`
	}{}
	if err := json.Unmarshal(config, &v); err != nil {
		return Config{}, errors.Join(fmt.Errorf("whisper: config.json: %w", err), pass.ErrInvalid)
	}
	if v.ModelType != "" && v.ModelType != "whisper" {
		return Config{}, fmt.Errorf("whisper: config.json: want the model type whisper, given %.100q: %w", v.ModelType, pass.ErrInvalid)
	}
	if generation != nil {
		if err := json.Unmarshal(generation, &v); err != nil {
			return Config{}, errors.Join(fmt.Errorf("whisper: generation_config.json: %w", err), pass.ErrInvalid)
		}
	}
	c := Config{
		Mels: v.Mels, Width: v.Width, Heads: v.Heads, DecoderHeads: v.DecoderHeads, Layers: v.Layers, DecoderLayers: v.DecoderLayers,
		FFN: v.FFN, DecoderFFN: v.DecoderFFN, Classes: v.Classes, AudioPositions: v.AudioPositions, TextPositions: v.TextPositions,
		Tokens: tokensOf(v.Classes), Suppress: v.Suppress, SuppressAtBegin: v.SuppressAtBegin,
	}
	t := &c.Tokens
	if v.End != nil {
		t.End = *v.End
	}
	if v.Start != nil {
		t.Start = *v.Start
	}
	if v.NoTimestamps != nil {
		t.NoTimestamps, t.FirstTimestamp = *v.NoTimestamps, *v.NoTimestamps+1
	}
	if len(v.Languages) > 0 {
		t.Languages = map[string]int{}
		for code, id := range v.Languages {
			t.Languages[strings.Trim(code, "<|>")] = id
		}
	}
	if id, ok := v.Tasks["transcribe"]; ok {
		t.Transcribe = id
	}
	if id, ok := v.Tasks["translate"]; ok {
		t.Translate = id
	}
	if tokenizer != nil {
		var err error
		if c.Vocabulary, err = vocabulary.FromJSON(tokenizer, vocabulary.ByteLevel); err != nil {
			return Config{}, fmt.Errorf("whisper: %w", err)
		}
	}
	return c, c.Check()
}
