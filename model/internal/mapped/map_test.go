//go:build linux || darwin

package mapped

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// A file that is cut while it is mapped gives an error, where the system sends a signal.
func TestFileIsCut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weights")
	page := os.Getpagesize()
	require.NoError(t, os.WriteFile(path, make([]byte, 4*page), 0o600))
	f, err := Open(path)
	require.NoError(t, err)
	require.IsType(t, &mapping{}, f.source)
	require.NoError(t, os.Truncate(path, int64(page)))
	b := make([]byte, 2*page)
	n, err := f.ReadAt(b, int64(page))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Zero(t, n)
	n, err = f.ReadAt(b[:page], 0)
	require.NoError(t, err)
	require.Equal(t, page, n)
	_, err = f.ReadAt(b, -1)
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, err = f.ReadAt(b, int64(4*page))
	require.Equal(t, io.EOF, err)
	require.NoError(t, f.Close())
}
