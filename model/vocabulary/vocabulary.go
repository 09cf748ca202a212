// Package vocabulary turns the ids of tokens, which networks of speech recognition give,
// into text.
//
// The functions FromGGUF and FromJSON of a network's package read its vocabulary with its
// configuration, so that results have their text; [New] is for one that comes from
// elsewhere.
package vocabulary

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/pass"
)

// An Encoding says how the tokens of a vocabulary stand for text.
type Encoding uint8

const (
	// SentencePiece has pieces of text, or single characters, in which ▁ is a space and
	// <0x41> a byte (Kudo and Richardson, SentencePiece, 2018). Text begins without the
	// space of its first word. The tokens <s>, </s>, <unk> and any of the form <<ST_1>>
	// stand for nothing.
	SentencePiece Encoding = iota
	// ByteLevel has a character for each byte, such as Ġ for a space (Radford et al.,
	// Language models are unsupervised multitask learners, 2019; bytes_to_unicode in
	// encoder.py).
	ByteLevel
)

// A Vocabulary has the text of each token. The zero Vocabulary has none. It does not
// change, so any goroutine may use it.
type Vocabulary struct {
	tokens   []string
	texts    []string // bytes, which need not be UTF-8 on their own
	encoding Encoding
}

// New returns the vocabulary whose tokens, by their ids, are written in an encoding.
func New(e Encoding, tokens ...string) Vocabulary {
	v := Vocabulary{tokens: tokens, texts: make([]string, len(tokens)), encoding: e}
	decode := decodePiece
	if e == ByteLevel {
		decode = byteDecoder()
	}
	for i, token := range tokens {
		v.texts[i] = decode(token)
	}
	return v
}

// Kinds of tokens in GGUF's tokenizer.ggml.token_type that have no text.
const (
	unknown = 2
	control = 3
	unused  = 5
)

// FromGGUF returns the vocabulary that is in a file, or the zero Vocabulary if there is
// none. Tokens that the file calls unknown, control or unused have no text.
func FromGGUF(m gguf.Metadata, e Encoding) (Vocabulary, error) {
	if !m.Has("tokenizer.ggml.tokens") {
		return Vocabulary{}, nil
	}
	tokens, err := m.Strings("tokenizer.ggml.tokens")
	if err != nil {
		return Vocabulary{}, fmt.Errorf("vocabulary: %w", err)
	}
	v := New(e, tokens...)
	if !m.Has("tokenizer.ggml.token_type") {
		return v, nil
	}
	kinds, err := m.Ints("tokenizer.ggml.token_type")
	if err != nil {
		return Vocabulary{}, fmt.Errorf("vocabulary: %w", err)
	}
	if len(kinds) != len(tokens) {
		return Vocabulary{}, fmt.Errorf("vocabulary: want a type for each of %d tokens, given %d: %w", len(tokens), len(kinds), pass.ErrInvalid)
	}
	for i, kind := range kinds {
		if kind == unknown || kind == control || kind == unused {
			v.texts[i] = ""
		}
	}
	return v, nil
}

// Len returns the number of tokens.
func (v Vocabulary) Len() int { return len(v.tokens) }

// Token returns the token of an id as files write it, or "" beyond the vocabulary.
func (v Vocabulary) Token(id int) string {
	if id < 0 || id >= len(v.tokens) {
		return ""
	}
	return v.tokens[id]
}

// Text returns the text of tokens, one after the other, without any that the vocabulary
// does not have or that stand for no text. What is not UTF-8 becomes U+FFFD.
func (v Vocabulary) Text(ids []int) string {
	var b strings.Builder
	for _, id := range ids {
		if id >= 0 && id < len(v.texts) {
			b.WriteString(v.texts[id])
		}
	}
	text := strings.ToValidUTF8(b.String(), "\uFFFD")
	if v.encoding == SentencePiece {
		text = strings.TrimPrefix(text, " ")
	}
	return text
}

// decodePiece returns the text of a token of SentencePiece.
func decodePiece(token string) string {
	if hex, ok := strings.CutPrefix(token, "<0x"); ok && len(hex) == 3 && hex[2] == '>' {
		if b, err := strconv.ParseUint(hex[:2], 16, 8); err == nil {
			return string([]byte{byte(b)})
		}
	}
	switch {
	case token == "<s>" || token == "</s>" || token == "<unk>":
		return ""
	case strings.HasPrefix(token, "<<") && strings.HasSuffix(token, ">>"):
		return ""
	}
	return strings.ReplaceAll(token, "▁", " ")
}

// byteDecoder returns a function from tokens of characters that stand for bytes to the
// bytes: printable characters of Latin-1 stand for themselves, the others are counted from
// U+0100 on. Characters that stand for no byte are left as they are.
func byteDecoder() func(string) string {
	table := map[rune]byte{}
	next := rune(0x100)
	for c := range 0x100 {
		switch {
		case c >= '!' && c <= '~', c >= 0xa1 && c <= 0xac, c >= 0xae:
			table[rune(c)] = byte(c)
		default:
			table[next] = byte(c)
			next++
		}
	}
	return func(token string) string {
		var b strings.Builder
		for _, r := range token {
			if c, ok := table[r]; ok {
				b.WriteByte(c)
			} else {
				b.WriteRune(r)
			}
		}
		return b.String()
	}
}
