package gigaam

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tandem-gpu/tandem/model/asr"
	"github.com/tandem-gpu/tandem/model/conformer"
	"github.com/tandem-gpu/tandem/model/frontend"
	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/model/vocabulary"
	"github.com/tandem-gpu/tandem/pass"
)

// SampleRate is the number of samples in a second.
const SampleRate = asr.SampleRate

// A Config is the geometry of a network, as far as its tensors don't have it.
type Config struct {
	Blocks  conformer.Config
	Kernel  int // of the subsampling; 0: 5
	Classes int // with the blank, which is the last
	// Base is that of the rotary positions; 0: 5000.
	Base float64
	// Positions is how many frames a window may have at most; 0: 5000, 200 s.
	Positions int
	// MaxSymbols is how many tokens a frame may have at most; 0: ten.
	MaxSymbols int
	// Vocabulary has the texts of the classes. Without one, results have no text.
	Vocabulary vocabulary.Vocabulary
}

// classes are those of the published networks.
var classes = map[string]int{"ctc": 34, "rnnt": 34, "e2e_ctc": 257, "e2e_rnnt": 1025}

// Preset returns the configuration of a published network: "ctc" and "rnnt", with
// characters, or "e2e_ctc" and "e2e_rnnt", with pieces and punctuation.
func Preset(name string) (Config, error) {
	n, ok := classes[name]
	if !ok {
		return Config{}, fmt.Errorf("gigaam: preset %.100q: want one of %v: %w", name, slices.Sorted(maps.Keys(classes)), pass.ErrInvalid)
	}
	return Config{Blocks: blocks(768, 16, 16, 3072, 5), Classes: n}.defaults(), nil
}

func blocks(width, layers, heads, hidden, kernel int) conformer.Config {
	return conformer.Config{
		Width: width, Layers: layers, Heads: heads, Hidden: hidden, Kernel: kernel,
		LinearBias: true, ConvBias: true, LayerNorm: true, Rotary: true,
	}
}

func (c Config) defaults() Config {
	if c.Kernel == 0 {
		c.Kernel = 5
	}
	if c.Base == 0 {
		c.Base = 5000
	}
	if c.Positions == 0 {
		c.Positions = 5000
	}
	return c
}

// FromGGUF returns the configuration that the metadata of a file of transcribe.cpp give.
func FromGGUF(m gguf.Metadata) (Config, error) {
	var errs []error
	integer := func(key string) int {
		n, err := m.Int(key)
		errs = append(errs, err)
		return n
	}
	const encoder = "stt.gigaam.encoder."
	for key, want := range map[string]string{
		"general.architecture": "gigaam", encoder + "self_attention_model": "rotary", encoder + "conv_norm_type": "layer_norm",
	} {
		if s, err := m.String(key); err != nil || s != want {
			errs = append(errs, fmt.Errorf("%s: want %q, given %.100q: %w", key, want, s, errors.Join(err, pass.ErrInvalid)))
		}
	}
	for key, want := range map[string]int{encoder + "subsampling_factor": 4, "stt.frontend.num_mels": frontend.GigaAM().Mels} {
		if n := integer(key); n != want {
			errs = append(errs, fmt.Errorf("%s: want %d, given %d: %w", key, want, n, pass.ErrInvalid))
		}
	}
	// The authors pass the longest length where the base belongs.
	positions := integer(encoder + "pos_emb_max_len")
	c := Config{
		Blocks: blocks(integer(encoder+"d_model"), integer(encoder+"n_layers"), integer(encoder+"n_heads"), integer(encoder+"d_ff"), integer(encoder+"conv_kernel")),
		Kernel: integer(encoder + "subs_kernel_size"), Classes: integer("tokenizer.ggml.blank_token_id") + 1,
		Base: float64(positions), Positions: positions,
	}
	v, err := vocabulary.FromGGUF(m, vocabulary.SentencePiece)
	c.Vocabulary = v
	if err := errors.Join(append(errs, err)...); err != nil {
		return Config{}, fmt.Errorf("gigaam: %w", err)
	}
	return c, c.Check()
}

// Check returns an error that wraps pass.ErrInvalid and says what is wrong, or nil.
func (c Config) Check() error {
	c = c.defaults()
	if !c.Blocks.Rotary || !c.Blocks.LayerNorm {
		return fmt.Errorf("gigaam: want blocks with rotary positions and layer norm: %w", pass.ErrInvalid)
	}
	if err := c.Blocks.Check(); err != nil {
		return fmt.Errorf("gigaam: %w", err)
	}
	for _, v := range []struct {
		name            string
		given, from, to int
	}{{"kernel", c.Kernel, 1, 63}, {"classes", c.Classes, 2, 1 << 20}, {"positions", c.Positions, 1, 1 << 20}} {
		if v.given < v.from || v.given > v.to {
			return fmt.Errorf("gigaam: %s: want %d to %d, given %d: %w", v.name, v.from, v.to, v.given, pass.ErrInvalid)
		}
	}
	if c.Kernel%2 == 0 || !(c.Base > 0) || c.Base > 1e9 {
		return fmt.Errorf("gigaam: want an odd kernel and a positive base, given %d and %v: %w", c.Kernel, c.Base, pass.ErrInvalid)
	}
	return nil
}
