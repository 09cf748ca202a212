package whisper

import (
	"fmt"
	"strings"

	"github.com/tandem-gpu/tandem/model/internal/tokenizer"
)

// A Vocabulary turns tokens into text. It may be used from any goroutine.
type Vocabulary struct{ pieces []string }

// NewVocabulary returns the vocabulary of byte-level tokens, as GPT-2 and GGUF files
// write them: each byte is a character, a space is Ġ (Radford et al., Language models are
// unsupervised multitask learners, 2019; bytes_to_unicode in encoder.py).
func NewVocabulary(tokens []string) *Vocabulary {
	table := byteTable()
	v := &Vocabulary{pieces: make([]string, len(tokens))}
	var b strings.Builder
	for i, token := range tokens {
		b.Reset()
		for _, r := range token {
			if c, ok := table[r]; ok {
				b.WriteByte(c)
			} else {
				b.WriteRune(r)
			}
		}
		v.pieces[i] = b.String()
	}
	return v
}

// byteTable maps characters to the bytes that they stand for: printable ones of Latin-1
// stand for themselves, the others are counted from U+0100 on.
func byteTable() map[rune]byte {
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
	return table
}

// ParseVocabulary reads the tokenizer.json of a Hugging Face checkpoint.
func ParseVocabulary(file []byte) (*Vocabulary, error) {
	tokens, err := tokenizer.Tokens(file)
	if err != nil {
		return nil, fmt.Errorf("whisper: %w", err)
	}
	return NewVocabulary(tokens), nil
}

// Text returns the text of tokens, without any that the vocabulary does not have. Bytes
// that are no UTF-8 become U+FFFD.
func (v *Vocabulary) Text(ids []int) string {
	if v == nil {
		return ""
	}
	var b strings.Builder
	for _, id := range ids {
		if id >= 0 && id < len(v.pieces) {
			b.WriteString(v.pieces[id])
		}
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}
