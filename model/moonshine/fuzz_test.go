package moonshine

import (
	"errors"
	"testing"

	"github.com/tandem-gpu/tandem/pass"
)

// What is read from a checkpoint's JSON is usable, or refused.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"hidden_size": 288, "partial_rotary_factor": 0.9, "vocab_size": 69}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := FromJSON(b, nil); err == nil {
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
		} else if !errors.Is(err, pass.ErrInvalid) && !errors.Is(err, pass.ErrUnsupported) {
			t.Fatal(err)
		}
	})
}
