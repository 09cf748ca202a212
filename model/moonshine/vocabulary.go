package moonshine

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tandem-gpu/tandem/model/internal/tokenizer"
)

// A Vocabulary turns tokens into text. It may be used from any goroutine.
type Vocabulary struct{ pieces []string }

// NewVocabulary returns the vocabulary of SentencePiece tokens with byte fallback: ▁ is a
// space, <0x41> a byte. Tokens such as <s>, </s>, <unk> and <<ST_1>> have no text.
func NewVocabulary(tokens []string) *Vocabulary {
	v := &Vocabulary{pieces: make([]string, len(tokens))}
	for i, token := range tokens {
		if hex, ok := strings.CutPrefix(token, "<0x"); ok && len(hex) == 3 && hex[2] == '>' {
			if b, err := strconv.ParseUint(hex[:2], 16, 8); err == nil {
				v.pieces[i] = string([]byte{byte(b)})
				continue
			}
		}
		switch {
		case token == "<s>" || token == "</s>" || token == "<unk>":
		case strings.HasPrefix(token, "<<") && strings.HasSuffix(token, ">>"):
		default:
			v.pieces[i] = strings.ReplaceAll(token, "▁", " ")
		}
	}
	return v
}

// ParseVocabulary reads the tokenizer.json of a Hugging Face checkpoint.
func ParseVocabulary(file []byte) (*Vocabulary, error) {
	tokens, err := tokenizer.Tokens(file)
	if err != nil {
		return nil, fmt.Errorf("moonshine: %w", err)
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
	return strings.TrimSpace(strings.ToValidUTF8(b.String(), "\uFFFD"))
}
