package undertest

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/gguf"
	"github.com/tandem-gpu/tandem/pass"
)

// GGUF returns a file of metadata and tensors.
func GGUF(t testing.TB, m gguf.Metadata, src Source) []byte {
	t.Helper()
	var tensors []gguf.Tensor
	for _, name := range src.Names() {
		x := src[name]
		x.Name = name
		tensors = append(tensors, gguf.Of(x))
	}
	var b bytes.Buffer
	require.NoError(t, gguf.Write(&b, tensors, m))
	return b.Bytes()
}

// A BadFile is a file that is refused, with an error that says some texts.
type BadFile struct {
	File []byte
	Says []string
	Is   error // what the error is; nil: ErrInvalid
}

// Bad returns a file that is invalid, with what its error says.
func Bad(file []byte, says ...string) BadFile { return BadFile{File: file, Says: says} }

// RefusesFiles loads each file on a device of its own: there must be an error that is and
// says what it should, and nothing may stay on the device.
func RefusesFiles(t *testing.T, files map[string]BadFile, open func() pass.Device, load func(dev pass.Device, f *gguf.File) error) {
	t.Helper()
	for name, bad := range files {
		dev := &Counted{Device: open()}
		f, err := gguf.New(bytes.NewReader(bad.File), int64(len(bad.File)))
		if err == nil {
			err = load(dev, f)
		}
		if bad.Is == nil {
			bad.Is = pass.ErrInvalid
		}
		require.ErrorIs(t, err, bad.Is, name)
		for _, text := range bad.Says {
			require.ErrorContains(t, err, text, name)
		}
		require.Zero(t, dev.Held(), name)
	}
}
