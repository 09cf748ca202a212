// Package tokenizer reads the tokens of a vocabulary from the tokenizer.json of a Hugging
// Face checkpoint, and nothing else of it.
package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// Tokens returns the tokens by their ids; those that nobody has are empty. A token that was
// added takes the place of what the vocabulary has under its id. Errors begin with
// "tokenizer.json" and wrap pass.ErrInvalid.
func Tokens(file []byte) ([]string, error) {
	var v struct {
		Model struct {
			Vocab map[string]int
		}
		Added []struct {
			ID      int
			Content string
		} `json:"added_tokens"`
	}
	if err := json.Unmarshal(file, &v); err != nil {
		return nil, errors.Join(fmt.Errorf("tokenizer.json: %w", err), pass.ErrInvalid)
	}
	limit := 2 * (len(v.Model.Vocab) + len(v.Added)) // there may be gaps, but few
	check := func(token string, id int) error {
		if id < 0 || id >= limit {
			return fmt.Errorf("tokenizer.json: token %.100q: want an id below twice the number of tokens, %d, given %d: %w", token, limit, id, pass.ErrInvalid)
		}
		return nil
	}
	ids := map[int]string{}
	n := 0
	for token, id := range v.Model.Vocab {
		if err := check(token, id); err != nil {
			return nil, err
		}
		if other, taken := ids[id]; taken {
			return nil, fmt.Errorf("tokenizer.json: id %d: want one token, given %.100q and %.100q: %w", id, min(token, other), max(token, other), pass.ErrInvalid)
		}
		ids[id], n = token, max(n, id+1)
	}
	for _, a := range v.Added {
		if err := check(a.Content, a.ID); err != nil {
			return nil, err
		}
		ids[a.ID], n = a.Content, max(n, a.ID+1)
	}
	tokens := make([]string, n)
	for id, token := range ids {
		tokens[id] = token
	}
	return tokens, nil
}
