package vocabulary

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

func TestFromJSON(t *testing.T) {
	t.Parallel()
	for file, want := range map[string][]string{
		`{}`:                                     {},
		`{"model": {"vocab": {"a": 0, "b": 2}}}`: {"a", "", "b"},
		`{"added_tokens": [{"id": 1, "content": "<s>"}]}`:                                                                  {"", "<s>"},
		`{"model": {"vocab": {"a": 0, "b": 1}}, "added_tokens": [{"id": 1, "content": "<s>"}, {"id": 3, "content": "c"}]}`: {"a", "<s>", "", "c"},
	} {
		for range 10 { // maps have no order
			v, err := FromJSON([]byte(file), ByteLevel)
			require.NoError(t, err, file)
			require.Equal(t, want, v.tokens, file)
		}
	}
}

// Bytes and what stands for nothing, by its name or because it is special.
func TestFromJSONText(t *testing.T) {
	t.Parallel()
	v, err := FromJSON([]byte(`{"model": {"vocab": {"<unk>": 0, "<s>": 1, "</s>": 2, "<0xC3>": 3, "<0xA9>": 4, "▁caf": 5}},
		"added_tokens": [{"id": 7, "content": "<<ST_1>>"}, {"id": 8, "content": "<pad>", "special": true}]}`), SentencePiece)
	require.NoError(t, err)
	require.Equal(t, "café", v.Text([]int{1, 5, 3, 4, 7, 2, 6, 8, 9, -1}))
	require.Equal(t, "\uFFFD", v.Text([]int{3}))
	require.Equal(t, "<pad>", v.Token(8))
}

func TestFromJSONRefuses(t *testing.T) {
	t.Parallel()
	for file, says := range map[string]string{
		``:                                "tokenizer.json: unexpected end of JSON input",
		`{"model": {"vocab": {"a": -1}}}`: `token "a": want an id below twice the number of tokens, 2, given -1`,
		`{"model": {"vocab": {"a": 2}}}`:  `token "a": want an id below twice the number of tokens, 2, given 2`,
		`{"added_tokens": [{"id": 1000000000, "content": "a"}]}`: `token "a": want an id below twice the number of tokens, 2, given 1000000000`,
		`{"model": {"vocab": {"b": 1, "a": 1}}}`:                 `id 1: want one token, given "a" and "b"`,
	} {
		_, err := FromJSON([]byte(file), ByteLevel)
		require.ErrorIs(t, err, pass.ErrInvalid, file)
		require.ErrorContains(t, err, says, file)
	}
}

// Memory is bounded by the file.
func FuzzFromJSON(f *testing.F) {
	f.Add([]byte(`{"model": {"vocab": {"a": 0, "▁b": 1}}, "added_tokens": [{"id": 2, "content": "c", "special": true}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, e := range []Encoding{SentencePiece, ByteLevel} {
			v, err := FromJSON(b, e)
			if err != nil {
				require.ErrorIs(t, err, pass.ErrInvalid)
				require.Zero(t, v.Len())
				continue
			}
			require.LessOrEqual(t, v.Len(), len(b))
			v.Text([]int{0, 1, 2})
		}
	})
}
