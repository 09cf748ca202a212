package pieces

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/pass"
)

func TestText(t *testing.T) {
	t.Parallel()
	l, err := FromGGUF(gguf.Metadata{
		"tokenizer.ggml.tokens":     []string{"<unk>", "▁Hel", "lo", ",", "▁wor", "ld", "<0xC3>", "<0xA9>", "<blank>", "▁", "<0xzz>"},
		"tokenizer.ggml.token_type": []int32{2, 1, 1, 1, 1, 1, 6, 6, 3, 1, 6},
	})
	require.NoError(t, err)
	require.Equal(t, 11, l.Len())
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
		require.Equal(t, want, l.Text(ids), "%v", ids)
	}
	require.Equal(t, "▁Hel", l.Piece(1))
	require.Empty(t, l.Piece(11))
	require.Equal(t, "д а", Of("д", " ", "а").Text([]int{0, 1, 2}), "characters")
}

func TestFromGGUF(t *testing.T) {
	t.Parallel()
	l, err := FromGGUF(gguf.Metadata{})
	require.NoError(t, err)
	require.Zero(t, l.Len())
	require.Empty(t, l.Text([]int{0, 1}))
	for name, m := range map[string]gguf.Metadata{
		"tokens":         {"tokenizer.ggml.tokens": []int32{1}},
		"types":          {"tokenizer.ggml.tokens": []string{"a"}, "tokenizer.ggml.token_type": []string{"a"}},
		"too few types":  {"tokenizer.ggml.tokens": []string{"a", "b"}, "tokenizer.ggml.token_type": []int32{1}},
		"too many types": {"tokenizer.ggml.tokens": []string{"a"}, "tokenizer.ggml.token_type": []int32{1, 1}},
	} {
		_, err := FromGGUF(m)
		require.ErrorIs(t, err, pass.ErrInvalid, name)
	}
}
