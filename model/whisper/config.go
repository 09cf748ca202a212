package whisper

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tandem-gpu/tandem/model/frontend"
	"github.com/tandem-gpu/tandem/model/vocabulary"
	"github.com/tandem-gpu/tandem/pass"
)

// SampleRate is the number of samples in a second.
const SampleRate = 16000

// A Config is the geometry of a model, and the meaning of its special tokens.
type Config struct {
	Mels           int // 80, or 128 from large-v3 on
	Width          int // of a row of encoder and decoder
	Heads          int // of the encoder's attention
	DecoderHeads   int // of the decoder's
	Layers         int // of the encoder
	DecoderLayers  int
	FFN            int // width of the encoder's hidden layers
	DecoderFFN     int
	Classes        int // tokens of the vocabulary
	AudioPositions int // encoder frames of a window, of 20 ms: 1500
	TextPositions  int // tokens of a window: 448

	Tokens          Tokens
	Suppress        []int // tokens that are never chosen but by Raw
	SuppressAtBegin []int // further ones that are not chosen as the first
	// Vocabulary has the texts of tokens. Without one, results have no text.
	Vocabulary vocabulary.Vocabulary
}

// Tokens are the ids of special tokens. −1 stands for one that does not exist.
type Tokens struct {
	End                   int // ends the text
	Start                 int // begins every prompt
	Translate, Transcribe int // tasks; −1 in English models
	NoSpeech              int
	NoTimestamps          int
	FirstTimestamp        int            // 0 s; each further one is 20 ms more
	Languages             map[string]int // by their codes, such as "en"; empty in English models
}

// English returns the special tokens of the models with a vocabulary of 51864, whose
// names end in ".en".
func English() Tokens {
	return Tokens{End: 50256, Start: 50257, Translate: -1, Transcribe: -1, NoSpeech: 50361, NoTimestamps: 50362, FirstTimestamp: 50363}
}

// Multilingual returns the special tokens of the models for many languages: 99 with a
// vocabulary of 51865, and 100 with one of 51866, that of large-v3 and its turbo.
func Multilingual(languages int) Tokens {
	const first = 50259
	t := Tokens{End: 50257, Start: 50258, Languages: map[string]int{}}
	next := first + languages
	t.Translate, t.Transcribe, t.NoSpeech, t.NoTimestamps, t.FirstTimestamp = next, next+1, next+4, next+5, next+6
	for i, code := range languageCodes[:min(max(languages, 0), len(languageCodes))] {
		t.Languages[code] = first + i
	}
	return t
}

// languageCodes in the order of their tokens.
var languageCodes = [...]string{
	"en", "zh", "de", "es", "ru", "ko", "fr", "ja", "pt", "tr", "pl", "ca", "nl", "ar", "sv", "it", "id", "hi", "fi", "vi",
	"he", "uk", "el", "ms", "cs", "ro", "da", "hu", "ta", "no", "th", "ur", "hr", "bg", "lt", "la", "mi", "ml", "cy", "sk",
	"te", "fa", "lv", "bn", "sr", "az", "sl", "kn", "et", "mk", "br", "eu", "is", "hy", "ne", "mn", "bs", "kk", "sq", "sw",
	"gl", "mr", "pa", "si", "km", "sn", "yo", "so", "af", "oc", "ka", "be", "tg", "sd", "gu", "am", "yi", "lo", "uz", "fo",
	"ht", "ps", "tk", "nn", "mt", "sa", "lb", "my", "bo", "tl", "mg", "as", "tt", "haw", "ln", "ha", "ba", "jw", "su", "yue",
}

// sizes are the published geometries.
var sizes = map[string]struct{ width, heads, layers, decoder, mels, classes int }{
	"tiny": {384, 6, 4, 4, 80, 51865}, "tiny.en": {384, 6, 4, 4, 80, 51864},
	"base": {512, 8, 6, 6, 80, 51865}, "base.en": {512, 8, 6, 6, 80, 51864},
	"small": {768, 12, 12, 12, 80, 51865}, "small.en": {768, 12, 12, 12, 80, 51864},
	"medium": {1024, 16, 24, 24, 80, 51865}, "medium.en": {1024, 16, 24, 24, 80, 51864},
	"large": {1280, 20, 32, 32, 80, 51865}, "large-v2": {1280, 20, 32, 32, 80, 51865},
	"large-v3": {1280, 20, 32, 32, 128, 51866}, "large-v3-turbo": {1280, 20, 32, 4, 128, 51866},
}

// Preset returns the geometry and special tokens of a published size: tiny, base, small
// or medium, each with ".en" too, large, large-v2, large-v3 or large-v3-turbo. Lists of
// suppressed tokens and the vocabulary come with checkpoints.
func Preset(size string) (Config, error) {
	s, ok := sizes[size]
	if !ok {
		return Config{}, fmt.Errorf("whisper: preset %.100q: want one of %v: %w", size, slices.Sorted(maps.Keys(sizes)), pass.ErrInvalid)
	}
	return Config{
		Mels: s.mels, Width: s.width, Heads: s.heads, DecoderHeads: s.heads, Layers: s.layers, DecoderLayers: s.decoder,
		FFN: 4 * s.width, DecoderFFN: 4 * s.width, Classes: s.classes, AudioPositions: 1500, TextPositions: 448,
		Tokens: tokensOf(s.classes),
	}, nil
}

// tokensOf returns the special tokens of a published vocabulary, or none.
func tokensOf(classes int) Tokens {
	switch classes {
	case 51864:
		return English()
	case 51865:
		return Multilingual(99)
	case 51866:
		return Multilingual(100)
	}
	return Tokens{End: -1, Start: -1, Translate: -1, Transcribe: -1, NoSpeech: -1, NoTimestamps: -1, FirstTimestamp: -1}
}

// most bounds the numbers of a configuration, far above any model.
const most = 1 << 20

// Check returns an error that wraps pass.ErrInvalid and names the field, unless the
// configuration makes sense.
func (c Config) Check() error {
	for _, f := range []struct {
		name     string
		n, limit int
	}{
		{"mels", c.Mels, frontend.MaxMels}, {"width", c.Width, 1 << 16}, {"heads", c.Heads, 1 << 10}, {"decoder heads", c.DecoderHeads, 1 << 10},
		{"layers", c.Layers, 1 << 10}, {"decoder layers", c.DecoderLayers, 1 << 10}, {"ffn", c.FFN, 1 << 18}, {"decoder ffn", c.DecoderFFN, 1 << 18},
		{"classes", c.Classes, most}, {"audio positions", c.AudioPositions, 1 << 16}, {"text positions", c.TextPositions, 1 << 16},
	} {
		if f.n < 1 || f.n > f.limit {
			return fmt.Errorf("whisper: config: %s: want 1 to %d, given %d: %w", f.name, f.limit, f.n, pass.ErrInvalid)
		}
	}
	for _, heads := range []int{c.Heads, c.DecoderHeads} {
		if dim := c.Width / heads; c.Width%heads != 0 || dim%4 != 0 || dim > 256 {
			return fmt.Errorf("whisper: config: want heads of a multiple of 4 up to 256 that divide the width %d, given %d heads: %w", c.Width, heads, pass.ErrInvalid)
		}
	}
	ids := append(slices.Clone(c.Suppress), c.SuppressAtBegin...)
	t := c.Tokens
	for _, id := range []int{t.End, t.Start, t.Translate, t.Transcribe, t.NoSpeech, t.NoTimestamps, t.FirstTimestamp} {
		ids = append(ids, max(id, 0))
	}
	ids = slices.AppendSeq(ids, maps.Values(t.Languages))
	for _, id := range ids {
		if id < 0 || id >= c.Classes {
			return fmt.Errorf("whisper: config: want tokens of the %d in the vocabulary, given %d: %w", c.Classes, id, pass.ErrInvalid)
		}
	}
	return nil
}

// Samples returns how many samples a window has: 480000.
func (c Config) Samples() int { return 2 * c.AudioPositions * hop }

// hop is the number of samples from one frame of the features to the next. The encoder
// has one frame for two of them.
const hop = 160
