//go:build linux || darwin

package gguf

import (
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// A file that is cut while it is mapped gives an error, where the system sends a signal.
func TestMappedFileIsCut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "model.gguf")
	page := os.Getpagesize()
	require.NoError(t, os.WriteFile(path, make([]byte, 4*page), 0o600))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	m, ok := mapFile(file, int64(4*page))
	require.True(t, ok)
	require.NoError(t, os.Truncate(path, int64(page)))
	b := make([]byte, 2*page)
	n, err := m.ReadAt(b, int64(page))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Zero(t, n)
	n, err = m.ReadAt(b[:page], 0)
	require.NoError(t, err)
	require.Equal(t, page, n)
	_, err = m.ReadAt(b, -1)
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, err = m.ReadAt(b, int64(4*page))
	require.Equal(t, io.EOF, err)
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	_, err = m.ReadAt(b, 0)
	require.ErrorIs(t, err, pass.ErrClosed)
}

// Close waits for reads on other goroutines.
func TestMappedFileIsClosed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "model.gguf")
	require.NoError(t, os.WriteFile(path, byHand(3), 0o600))
	f, err := Open(path)
	require.NoError(t, err)
	require.IsType(t, &mapped{}, f.closer)
	w, err := f.Tensor("w")
	require.NoError(t, err)
	var wait, started sync.WaitGroup
	ends := make([]error, 4)
	for i := range ends {
		started.Add(1)
		wait.Go(func() {
			_, ends[i] = w.Float32s()
			started.Done()
			for ends[i] == nil {
				_, ends[i] = w.Float32s()
			}
		})
	}
	started.Wait()
	require.NoError(t, f.Close())
	wait.Wait()
	for _, err := range ends {
		require.ErrorIs(t, err, pass.ErrClosed)
	}
}
