package moonshine

import (
	"errors"
	"testing"

	"github.com/tandem-gpu/tandem/pass"
)

// What is read from a checkpoint's JSON is usable, or refused.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"hidden_size": 288, "partial_rotary_factor": 0.9, "vocab_size": 69}`))
	f.Add([]byte(`{"model": {"vocab": {"a": 0, "b": 1}}, "added_tokens": [{"id": 2, "content": "c"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := FromJSON(b); err == nil {
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
		} else if !errors.Is(err, pass.ErrInvalid) && !errors.Is(err, pass.ErrUnsupported) {
			t.Fatal(err)
		}
		v, err := ParseVocabulary(b)
		if err == nil && len(v.pieces) > len(b) {
			t.Fatalf("%d tokens in %d bytes", len(v.pieces), len(b))
		}
		v.Text([]int{0, 1, 2})
	})
}
