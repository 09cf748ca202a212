package vocabulary

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/pass"
)

func TestSentencePiece(t *testing.T) {
	t.Parallel()
	v, err := FromGGUF(gguf.Metadata{
		"tokenizer.ggml.tokens":     []string{"<unk>", "▁Hel", "lo", ",", "▁wor", "ld", "<0xC3>", "<0xA9>", "<blank>", "▁", "<0xzz>"},
		"tokenizer.ggml.token_type": []int32{2, 1, 1, 1, 1, 1, 6, 6, 3, 1, 6},
	}, SentencePiece)
	require.NoError(t, err)
	require.Equal(t, 11, v.Len())
	for want, ids := range map[string][]int{
		"":             nil,
		"Hello, world": {1, 2, 3, 4, 5},
		"lo world":     {2, 0, 8, 4, 5},
		"é":            {6, 7},
		"\uFFFDlo":     {6, 2},
		" Hel":         {9, 1}, // a space is written, that of the front is not
		"Hello":        {1, -1, 99, 2},
		"<0xzz>":       {10},
	} {
		require.Equal(t, want, v.Text(ids), "%v", ids)
	}
	require.Equal(t, "▁Hel", v.Token(1))
	require.Empty(t, v.Token(11))
	require.Equal(t, "д а", New(SentencePiece, "д", " ", "а").Text([]int{0, 1, 2}), "characters")
}

func TestFromGGUF(t *testing.T) {
	t.Parallel()
	v, err := FromGGUF(gguf.Metadata{}, SentencePiece)
	require.NoError(t, err)
	require.Zero(t, v.Len())
	require.Empty(t, v.Text([]int{0, 1}))
	for name, m := range map[string]gguf.Metadata{
		"tokens":         {"tokenizer.ggml.tokens": []int32{1}},
		"types":          {"tokenizer.ggml.tokens": []string{"a"}, "tokenizer.ggml.token_type": []string{"a"}},
		"too few types":  {"tokenizer.ggml.tokens": []string{"a", "b"}, "tokenizer.ggml.token_type": []int32{1}},
		"too many types": {"tokenizer.ggml.tokens": []string{"a"}, "tokenizer.ggml.token_type": []int32{1, 1}},
	} {
		_, err := FromGGUF(m, SentencePiece)
		require.ErrorIs(t, err, pass.ErrInvalid, name)
	}
}

func TestByteLevel(t *testing.T) {
	t.Parallel()
	v := New(ByteLevel, "Ċ", "Ġcaf", "Ã", "©", "", "<|en|>")
	require.Equal(t, " café\n<|en|>", v.Text([]int{1, 2, 3, 0, 4, 5, 6, -1}))
	require.Equal(t, "\uFFFD", v.Text([]int{2}))
	bytes := map[string]bool{}
	for c := range rune(0x144) {
		if text := New(ByteLevel, string(c)).texts[0]; len(text) == 1 {
			bytes[text] = true
		}
	}
	require.Len(t, bytes, 256)
	require.Empty(t, Vocabulary{}.Text([]int{0, 1}))
	require.Empty(t, Vocabulary{}.Token(0))
}
