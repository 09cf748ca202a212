package moonshine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tandem-gpu/tandem/pass"
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
func ParseVocabulary(tokenizer []byte) (*Vocabulary, error) {
	var v struct {
		Model struct {
			Vocab map[string]int
		}
		Added []struct {
			ID      int
			Content string
		} `json:"added_tokens"`
	}
	if err := json.Unmarshal(tokenizer, &v); err != nil {
		return nil, errors.Join(fmt.Errorf("moonshine: tokenizer.json: %w", err), pass.ErrInvalid)
	}
	ids := map[int]string{}
	n, limit := 0, 2*(len(v.Model.Vocab)+len(v.Added)) // there may be gaps, but few
	add := func(token string, id int) error {
		if id < 0 || id >= limit {
			return fmt.Errorf("moonshine: tokenizer.json: token %.100q: want an id below twice the number of tokens, %d, given %d: %w", token, limit, id, pass.ErrInvalid)
		}
		ids[id], n = token, max(n, id+1)
		return nil
	}
	for token, id := range v.Model.Vocab {
		if err := add(token, id); err != nil {
			return nil, err
		}
	}
	for _, a := range v.Added {
		if err := add(a.Content, a.ID); err != nil {
			return nil, err
		}
	}
	tokens := make([]string, n)
	for id, token := range ids {
		tokens[id] = token
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
