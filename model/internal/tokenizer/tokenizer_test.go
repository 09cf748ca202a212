package tokenizer

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	for file, want := range map[string][]string{
		`{}`:                                     {},
		`{"model": {"vocab": {"a": 0, "b": 2}}}`: {"a", "", "b"},
		`{"added_tokens": [{"id": 1, "content": "<s>"}]}`:                                                                  {"", "<s>"},
		`{"model": {"vocab": {"a": 0, "b": 1}}, "added_tokens": [{"id": 1, "content": "<s>"}, {"id": 3, "content": "c"}]}`: {"a", "<s>", "", "c"},
	} {
		for range 10 { // maps have no order
			got, err := Tokens([]byte(file))
			require.NoError(t, err, file)
			require.Equal(t, want, got, file)
		}
	}
}

func TestTokensRefused(t *testing.T) {
	t.Parallel()
	for file, says := range map[string]string{
		``:                                "tokenizer.json: unexpected end of JSON input",
		`{"model": {"vocab": {"a": -1}}}`: `token "a": want an id below twice the number of tokens, 2, given -1`,
		`{"model": {"vocab": {"a": 2}}}`:  `token "a": want an id below twice the number of tokens, 2, given 2`,
		`{"added_tokens": [{"id": 1000000000, "content": "a"}]}`: `token "a": want an id below twice the number of tokens, 2, given 1000000000`,
		`{"model": {"vocab": {"b": 1, "a": 1}}}`:                 `id 1: want one token, given "a" and "b"`,
	} {
		_, err := Tokens([]byte(file))
		require.ErrorIs(t, err, pass.ErrInvalid, file)
		require.ErrorContains(t, err, says, file)
	}
}
