package parakeet

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tandem-gpu/tandem/model/asr"
	"github.com/tandem-gpu/tandem/model/conformer"
	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/model/vocabulary"
	"github.com/tandem-gpu/tandem/pass"
)

// SampleRate is the number of samples in a second.
const SampleRate = asr.SampleRate

// A Config is the geometry of a network, as far as its tensors don't have it.
type Config struct {
	Blocks   conformer.Config
	Mels     int  // bins of the features: 80 or 128
	Channels int  // of the subsampling; 0: as many as its tensors have
	Scale    bool // multiply by √width after the subsampling
	Classes  int  // with the blank, which is the last
	// Durations are the frames that a token of a TDT may last; nil: none.
	Durations []int
	// MaxSymbols is how many tokens a frame may have at most; 0: ten.
	MaxSymbols int
	// Vocabulary has the texts of the classes. Without one, results have no text.
	Vocabulary vocabulary.Vocabulary
}

// variant is a row of the table of published networks.
type variant struct {
	layers, width, mels int
	biases, scale       bool
	classes             int
	durations           bool
}

var variants = map[string]variant{
	"ctc-0.6b":        {24, 1024, 80, true, true, 1025, false},
	"ctc-1.1b":        {42, 1024, 80, true, true, 1025, false},
	"rnnt-0.6b":       {24, 1024, 80, true, true, 1025, false},
	"rnnt-1.1b":       {42, 1024, 80, true, true, 1025, false},
	"unified-en-0.6b": {24, 1024, 128, true, true, 1025, false},
	"tdt-0.6b-v2":     {24, 1024, 128, false, false, 1025, true},
	"tdt-0.6b-v3":     {24, 1024, 128, false, false, 8193, true},
	"tdt-1.1b":        {42, 1024, 80, true, false, 1025, true},
	"tdt_ctc-110m":    {17, 512, 80, true, false, 1025, true},
}

// Preset returns the configuration of a published network: "ctc-0.6b", "ctc-1.1b",
// "rnnt-0.6b", "rnnt-1.1b", "unified-en-0.6b", "tdt-0.6b-v2", "tdt-0.6b-v3", "tdt-1.1b"
// or "tdt_ctc-110m".
func Preset(name string) (Config, error) {
	v, ok := variants[name]
	if !ok {
		return Config{}, fmt.Errorf("parakeet: preset %.100q: want one of %v: %w", name, slices.Sorted(maps.Keys(variants)), pass.ErrInvalid)
	}
	c := Config{
		Blocks: conformer.Config{
			Width: v.width, Layers: v.layers, Heads: 8, Hidden: 4 * v.width, Kernel: 9,
			LinearBias: v.biases, ConvBias: v.biases,
		},
		Mels: v.mels, Channels: 256, Scale: v.scale, Classes: v.classes,
	}
	if v.durations {
		c.Durations = []int{0, 1, 2, 3, 4}
	}
	return c, nil
}

// FromJSON returns the configuration of a Hugging Face checkpoint, of the contents of
// config.json and tokenizer.json. The latter may be nil: then there is no Vocabulary.
func FromJSON(config, tokenizer []byte) (Config, error) {
	var f struct {
		Model      string      `json:"model_type"`
		Encoder    encoderJSON `json:"encoder_config"`
		Classes    int         `json:"vocab_size"`
		Durations  []int       `json:"durations"`
		MaxSymbols int         `json:"max_symbols_per_step"`
	}
	if err := json.Unmarshal(config, &f); err != nil {
		return Config{}, errors.Join(fmt.Errorf("parakeet: config.json: %w", err), pass.ErrInvalid)
	}
	switch f.Model {
	case "parakeet_ctc", "parakeet_rnnt":
		f.Durations = nil
	case "parakeet_tdt":
		if f.Durations == nil {
			f.Durations = []int{0, 1, 2, 3, 4}
		}
	default:
		return Config{}, fmt.Errorf("parakeet: config.json: want the model type parakeet_ctc, parakeet_rnnt or parakeet_tdt, given %.100q: %w", f.Model, pass.ErrInvalid)
	}
	c := f.Encoder.config()
	c.Classes, c.Durations, c.MaxSymbols = f.Classes, f.Durations, f.MaxSymbols
	if tokenizer != nil {
		var err error
		if c.Vocabulary, err = vocabulary.FromJSON(tokenizer, vocabulary.SentencePiece); err != nil {
			return Config{}, fmt.Errorf("parakeet: %w", err)
		}
	}
	return c, c.Check()
}

// encoderJSON is the encoder's part of config.json.
type encoderJSON struct {
	Width    int  `json:"hidden_size"`
	Layers   int  `json:"num_hidden_layers"`
	Heads    int  `json:"num_attention_heads"`
	Hidden   int  `json:"intermediate_size"`
	Kernel   int  `json:"conv_kernel_size"`
	Mels     int  `json:"num_mel_bins"`
	Channels int  `json:"subsampling_conv_channels"`
	Bias     bool `json:"attention_bias"`
	ConvBias bool `json:"convolution_bias"`
	Scale    bool `json:"scale_input"`
}

func (e encoderJSON) config() Config {
	return Config{
		Blocks: conformer.Config{
			Width: e.Width, Layers: e.Layers, Heads: e.Heads, Hidden: e.Hidden, Kernel: e.Kernel,
			LinearBias: e.Bias, ConvBias: e.ConvBias,
		},
		Mels: e.Mels, Channels: e.Channels, Scale: e.Scale,
	}
}

// FromGGUF returns the configuration that the metadata of a file of transcribe.cpp give.
func FromGGUF(m gguf.Metadata) (Config, error) {
	if arch, err := m.String("general.architecture"); err != nil || arch != "parakeet" {
		return Config{}, fmt.Errorf("parakeet: want the architecture %q, given %.100q: %w", "parakeet", arch, errors.Join(err, pass.ErrInvalid))
	}
	var errs []error
	integer := func(key string) int {
		n, err := m.Int(key)
		errs = append(errs, err)
		return n
	}
	flag := func(key string) bool {
		if !m.Has(key) { // older files, of networks without
			return false
		}
		b, err := m.Bool(key)
		errs = append(errs, err)
		return b
	}
	const encoder = "stt.parakeet.encoder."
	biases := flag(encoder + "use_bias")
	c := Config{
		Blocks: conformer.Config{
			Width: integer(encoder + "d_model"), Layers: integer(encoder + "n_layers"), Heads: integer(encoder + "n_heads"),
			Hidden: integer(encoder + "d_ff"), Kernel: integer(encoder + "conv_kernel"),
			LinearBias: biases, ConvBias: biases,
		},
		Mels: integer("stt.frontend.num_mels"), Channels: integer(encoder + "subsampling_channels"),
		Scale: flag(encoder + "xscaling"), Classes: integer("tokenizer.ggml.blank_token_id") + 1,
	}
	for _, want := range []struct {
		key  string
		full int
	}{{encoder + "subsampling_factor", 8}, {encoder + "att_context_left", -1}, {encoder + "att_context_right", -1}} {
		if !m.Has(want.key) {
			continue
		}
		if n, err := m.Int(want.key); err != nil || n != want.full {
			errs = append(errs, err, fmt.Errorf("%s: want %d, given %d: %w", want.key, want.full, n, pass.ErrUnsupported))
		}
	}
	for key, only := range map[string]string{encoder + "conv_norm_type": "batch_norm", "stt.parakeet.joint.activation": "relu"} {
		if !m.Has(key) {
			continue
		}
		if s, err := m.String(key); err != nil || s != only {
			errs = append(errs, err, fmt.Errorf("%s: want %q, given %.100q: %w", key, only, s, pass.ErrUnsupported))
		}
	}
	if m.Has("stt.parakeet.tdt.durations") {
		var err error
		c.Durations, err = m.Ints("stt.parakeet.tdt.durations")
		c.MaxSymbols = integer("stt.parakeet.tdt.max_symbols")
		errs = append(errs, err)
	}
	v, err := vocabulary.FromGGUF(m, vocabulary.SentencePiece)
	c.Vocabulary = v
	if err := errors.Join(append(errs, err)...); err != nil {
		return Config{}, fmt.Errorf("parakeet: %w", err)
	}
	return c, c.Check()
}

// maxChannels is more than any network has.
const maxChannels = 1 << 12

// Check returns an error that wraps pass.ErrInvalid and says what is wrong, or nil.
func (c Config) Check() error {
	if c.Blocks.Rotary || c.Blocks.LayerNorm {
		return fmt.Errorf("parakeet: want blocks with relative positions and batch norm: %w", pass.ErrInvalid)
	}
	if err := c.Blocks.Check(); err != nil {
		return fmt.Errorf("parakeet: %w", err)
	}
	for _, v := range []struct {
		name            string
		given, from, to int
	}{{"mels", c.Mels, 1, 1024}, {"channels", c.Channels, 0, maxChannels}, {"classes", c.Classes, 2, 1 << 20}} {
		if v.given < v.from || v.given > v.to {
			return fmt.Errorf("parakeet: %s: want %d to %d, given %d: %w", v.name, v.from, v.to, v.given, pass.ErrInvalid)
		}
	}
	return nil
}
