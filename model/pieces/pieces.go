// Package pieces turns the ids of speech networks into text: each class has a piece of
// text, as SentencePiece makes them (Kudo and Richardson, SentencePiece, 2018) or a
// single character.
package pieces

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/pass"
)

// A List has the piece of each class. The zero List has none.
type List struct {
	texts []string
	kinds []int // of GGUF's tokenizer.ggml.token_type; nil: all normal
}

// Kinds of pieces in GGUF.
const (
	unknown = 2
	control = 3
	unused  = 5
	single  = 6 // a byte, <0x0A>
)

// Of returns the list of the given pieces, all of text.
func Of(texts ...string) List { return List{texts: texts} }

// FromGGUF returns the list that is in a file, or the zero List if there is none.
func FromGGUF(m gguf.Metadata) (List, error) {
	var l List
	var err error
	if !m.Has("tokenizer.ggml.tokens") {
		return l, nil
	}
	if l.texts, err = m.Strings("tokenizer.ggml.tokens"); err != nil {
		return List{}, fmt.Errorf("pieces: %w", err)
	}
	if m.Has("tokenizer.ggml.token_type") {
		if l.kinds, err = m.Ints("tokenizer.ggml.token_type"); err != nil {
			return List{}, fmt.Errorf("pieces: %w", err)
		}
		if len(l.kinds) != len(l.texts) {
			return List{}, fmt.Errorf("pieces: want a type for each of %d pieces, given %d: %w", len(l.texts), len(l.kinds), pass.ErrInvalid)
		}
	}
	return l, nil
}

// Len returns the number of pieces.
func (l List) Len() int { return len(l.texts) }

// Piece returns the piece of a class as it is in the list, or "" beyond it.
func (l List) Piece(id int) string {
	if id < 0 || id >= len(l.texts) {
		return ""
	}
	return l.texts[id]
}

// Text returns the text of ids: their pieces one after the other, ▁ as a space, bytes as
// what they spell, without control pieces, unused and unknown ones, and without a space at
// the front. What is not UTF-8 becomes U+FFFD.
func (l List) Text(ids []int) string {
	var b strings.Builder
	for _, id := range ids {
		piece := l.Piece(id)
		if l.kinds != nil && piece != "" {
			switch l.kinds[id] {
			case unknown, control, unused:
				continue
			case single:
				if v, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(piece, "<0x"), ">"), 16, 8); err == nil {
					b.WriteByte(byte(v))
					continue
				}
			}
		}
		b.WriteString(strings.ReplaceAll(piece, "▁", " "))
	}
	return strings.TrimPrefix(strings.ToValidUTF8(b.String(), "\uFFFD"), " ")
}
