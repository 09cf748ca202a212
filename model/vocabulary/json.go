package vocabulary

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// FromJSON returns the vocabulary in the tokenizer.json of a Hugging Face checkpoint, of
// which nothing else is looked at. A token that was added takes the place of what the
// vocabulary has under its id; added tokens that are called special have no text. Errors
// wrap pass.ErrInvalid.
func FromJSON(tokenizer []byte, e Encoding) (Vocabulary, error) {
	tokens, special, err := parse(tokenizer)
	if err != nil {
		return Vocabulary{}, fmt.Errorf("vocabulary: tokenizer.json: %w", err)
	}
	v := New(e, tokens...)
	for _, id := range special {
		v.texts[id] = ""
	}
	return v, nil
}

// parse returns the tokens by their ids, those that nobody has empty, and the ids of
// special ones.
func parse(file []byte) (tokens []string, special []int, err error) {
	var f struct {
		Model struct {
			Vocab map[string]int
		}
		Added []struct {
			ID      int
			Content string
			Special bool
		} `json:"added_tokens"`
	}
	if err := json.Unmarshal(file, &f); err != nil {
		return nil, nil, errors.Join(err, pass.ErrInvalid)
	}
	limit := 2 * (len(f.Model.Vocab) + len(f.Added)) // there may be gaps, but few
	check := func(token string, id int) error {
		if id < 0 || id >= limit {
			return fmt.Errorf("token %.100q: want an id below twice the number of tokens, %d, given %d: %w", token, limit, id, pass.ErrInvalid)
		}
		return nil
	}
	ids := map[int]string{}
	n := 0
	for token, id := range f.Model.Vocab {
		if err := check(token, id); err != nil {
			return nil, nil, err
		}
		if other, taken := ids[id]; taken {
			return nil, nil, fmt.Errorf("id %d: want one token, given %.100q and %.100q: %w", id, min(token, other), max(token, other), pass.ErrInvalid)
		}
		ids[id], n = token, max(n, id+1)
	}
	for _, a := range f.Added {
		if err := check(a.Content, a.ID); err != nil {
			return nil, nil, err
		}
		ids[a.ID], n = a.Content, max(n, a.ID+1)
		if a.Special {
			special = append(special, a.ID)
		}
	}
	tokens = make([]string, n)
	for id, token := range ids {
		tokens[id] = token
	}
	return tokens, special, nil
}
