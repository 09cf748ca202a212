package whisper

import (
	"errors"
	"testing"

	"github.com/tandem-gpu/tandem/pass"
)

// What is read from a checkpoint's JSON is usable, or refused.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"d_model": 16, "vocab_size": 69, "num_mel_bins": 8, "encoder_layers": 1, "lang_to_id": {"<|en|>": 1}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := FromJSON(b, b, nil); err == nil {
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
		} else if !errors.Is(err, pass.ErrInvalid) && !errors.Is(err, pass.ErrUnsupported) {
			t.Fatal(err)
		}
	})
}
