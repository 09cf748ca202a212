package moonshine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/model/vocabulary"
	"github.com/tandem-gpu/tandem/pass"
)

// A Config is the geometry of a model, and the meaning of its special tokens.
type Config struct {
	Width         int // of a row of encoder and decoder
	FFN           int // width of the encoder's hidden layers
	DecoderFFN    int // of the decoder's, without gates
	Layers        int // of the encoder
	DecoderLayers int
	Heads         int // of the encoder's attention
	DecoderHeads  int
	Rotary        float64 // share of a head that is turned: its first int(Rotary·width) dimensions
	Base          float64 // of the turns: 10000
	Classes       int     // tokens of the vocabulary
	Positions     int     // tokens of a text, the first included
	Start         int     // token that begins a text
	End           int     // token that ends it; −1: none
	// Vocabulary has the texts of tokens. Without one, results have no text.
	Vocabulary vocabulary.Vocabulary
}

// sizes are the published geometries.
var sizes = map[string]struct {
	width, layers int
	rotary        float64
}{"tiny": {288, 6, 0.9}, "base": {416, 8, 0.62}}

// Preset returns the geometry of a published size: tiny, with 27 million parameters, or
// base, with 61 million. The vocabulary comes with checkpoints.
func Preset(size string) (Config, error) {
	s, ok := sizes[size]
	if !ok {
		return Config{}, fmt.Errorf("moonshine: preset %.100q: want one of %v: %w", size, slices.Sorted(maps.Keys(sizes)), pass.ErrInvalid)
	}
	return Config{
		Width: s.width, FFN: 4 * s.width, DecoderFFN: 4 * s.width, Layers: s.layers, DecoderLayers: s.layers, Heads: 8, DecoderHeads: 8,
		Rotary: s.rotary, Base: 10000, Classes: 32768, Positions: 194, Start: 1, End: 2,
	}, nil
}

// rot returns how many dimensions of a head are turned.
func (c Config) rot(heads int) int { return int(float64(c.Width/heads) * c.Rotary) }

// Check returns an error that wraps pass.ErrInvalid and names the field, unless the
// configuration makes sense.
func (c Config) Check() error {
	for _, f := range []struct {
		name     string
		n, limit int
	}{
		{"width", c.Width, 1 << 16}, {"ffn", c.FFN, 1 << 18}, {"decoder ffn", c.DecoderFFN, 1 << 18},
		{"layers", c.Layers, 1 << 10}, {"decoder layers", c.DecoderLayers, 1 << 10}, {"heads", c.Heads, 1 << 10}, {"decoder heads", c.DecoderHeads, 1 << 10},
		{"classes", c.Classes, most}, {"positions", c.Positions, 1 << 16},
	} {
		if f.n < 1 || f.n > f.limit {
			return fmt.Errorf("moonshine: config: %s: want 1 to %d, given %d: %w", f.name, f.limit, f.n, pass.ErrInvalid)
		}
	}
	if !(c.Rotary > 0 && c.Rotary <= 1) || !(c.Base > 0 && c.Base < 1e30) {
		return fmt.Errorf("moonshine: config: want a share of a head from 0 to 1 that is turned, and a positive base, given %v and %v: %w", c.Rotary, c.Base, pass.ErrInvalid)
	}
	for _, heads := range []int{c.Heads, c.DecoderHeads} {
		dim := c.Width / heads
		if c.Width%heads != 0 || dim%4 != 0 || dim > 256 {
			return fmt.Errorf("moonshine: config: want heads of a multiple of 4 up to 256 that divide the width %d, given %d heads: %w", c.Width, heads, pass.ErrInvalid)
		}
		if rot := c.rot(heads); rot < 2 || rot%2 != 0 {
			return fmt.Errorf("moonshine: config: want an even number of turned dimensions of a head, given %d of %d: %w", rot, dim, pass.ErrInvalid)
		}
	}
	if c.Start < 0 || c.Start >= c.Classes || c.End < -1 || c.End >= c.Classes {
		return fmt.Errorf("moonshine: config: want tokens of the %d in the vocabulary, given %d and %d: %w", c.Classes, c.Start, c.End, pass.ErrInvalid)
	}
	return nil
}

const most = 1 << 20 // tokens of a vocabulary

// FromJSON returns the configuration of a Hugging Face checkpoint, of the contents of
// config.json and tokenizer.json. The latter may be nil: then there is no Vocabulary.
func FromJSON(config, tokenizer []byte) (Config, error) {
	v := struct {
		ModelType    string  `json:"model_type"`
		Width        int     `json:"hidden_size"`
		FFN          int     `json:"intermediate_size"`
		Layers       int     `json:"encoder_num_hidden_layers"`
		Decoder      int     `json:"decoder_num_hidden_layers"`
		Heads        int     `json:"encoder_num_attention_heads"`
		DecoderHeads int     `json:"decoder_num_attention_heads"`
		Keys         *int    `json:"encoder_num_key_value_heads"`
		DecoderKeys  *int    `json:"decoder_num_key_value_heads"`
		Rotary       float64 `json:"partial_rotary_factor"`
		Base         float64 `json:"rope_theta"`
		Classes      int     `json:"vocab_size"`
		Positions    int     `json:"max_position_embeddings"`
		Bias         bool    `json:"attention_bias"`
		Start        int     `json:"decoder_start_token_id"`
		End          int     `json:"eos_token_id"`
	}{Rotary: 0.9, Base: 10000, Start: 1, End: 2}
	if err := json.Unmarshal(config, &v); err != nil {
		return Config{}, errors.Join(fmt.Errorf("moonshine: config.json: %w", err), pass.ErrInvalid)
	}
	if v.ModelType != "" && v.ModelType != "moonshine" {
		return Config{}, fmt.Errorf("moonshine: config.json: want the model type moonshine, given %.100q: %w", v.ModelType, pass.ErrInvalid)
	}
	if v.Bias || v.Keys != nil && *v.Keys != v.Heads || v.DecoderKeys != nil && *v.DecoderKeys != v.DecoderHeads {
		return Config{}, fmt.Errorf("moonshine: config.json: want attention without biases, with as many heads of keys as of queries: %w", pass.ErrUnsupported)
	}
	c := Config{
		Width: v.Width, FFN: v.FFN, DecoderFFN: v.FFN, Layers: v.Layers, DecoderLayers: v.Decoder, Heads: v.Heads, DecoderHeads: v.DecoderHeads,
		Rotary: v.Rotary, Base: v.Base, Classes: v.Classes, Positions: v.Positions, Start: v.Start, End: v.End,
	}
	if tokenizer != nil {
		var err error
		if c.Vocabulary, err = vocabulary.FromJSON(tokenizer, vocabulary.SentencePiece); err != nil {
			return Config{}, fmt.Errorf("moonshine: %w", err)
		}
	}
	return c, c.Check()
}

// FromGGUF returns the configuration that the metadata of a file of transcribe.cpp give,
// under the keys stt.moonshine.*. The architecture must be moonshine.
func FromGGUF(m gguf.Metadata) (Config, error) {
	arch, err := m.String("general.architecture")
	if err != nil {
		return Config{}, fmt.Errorf("moonshine: %w", err)
	}
	if arch != "moonshine" {
		return Config{}, fmt.Errorf("moonshine: want the architecture moonshine, given %.100q: %w", arch, pass.ErrInvalid)
	}
	c := Config{Rotary: 0.9, Base: 10000}
	const encoder, decoder = "stt.moonshine.encoder.", "stt.moonshine.decoder."
	for key, to := range map[string]*int{
		encoder + "d_model": &c.Width, encoder + "ffn_dim": &c.FFN, encoder + "n_layers": &c.Layers, encoder + "n_heads": &c.Heads,
		decoder + "ffn_dim": &c.DecoderFFN, decoder + "n_layers": &c.DecoderLayers, decoder + "n_heads": &c.DecoderHeads,
		decoder + "vocab_size": &c.Classes, decoder + "max_position_embeddings": &c.Positions,
		"stt.moonshine.decoder_start_token_id": &c.Start, "stt.moonshine.eos_token_id": &c.End,
	} {
		n, e := m.Int(key)
		err = errors.Join(err, e)
		*to = n
	}
	for key, to := range map[string]*float64{"stt.moonshine.partial_rotary_factor": &c.Rotary, "stt.moonshine.rope_theta": &c.Base} {
		if m.Has(key) {
			x, e := m.Float(key)
			err = errors.Join(err, e)
			// A factor such as 0.9 is stored with less precision than its product with a width needs.
			*to = float64(int64(x*1e6+0.5)) / 1e6
		}
	}
	for key, heads := range map[string]int{encoder + "n_kv_heads": c.Heads, decoder + "n_kv_heads": c.DecoderHeads} {
		if n, e := m.Int(key); e == nil && n != heads {
			err = errors.Join(err, fmt.Errorf("key %q: want as many heads of keys as the %d of queries, given %d: %w", key, heads, n, pass.ErrUnsupported))
		}
	}
	v, e := vocabulary.FromGGUF(m, vocabulary.SentencePiece)
	c.Vocabulary = v
	if err = errors.Join(err, e); err != nil {
		return Config{}, fmt.Errorf("moonshine: %w", err)
	}
	return c, c.Check()
}
