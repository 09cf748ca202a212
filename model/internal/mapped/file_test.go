package mapped

import (
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// A file gives the same whether it is mapped or read.
func TestFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "weights")
	require.NoError(t, os.WriteFile(path, []byte("0123456789"), 0o600))
	opened, err := Open(path)
	require.NoError(t, err)
	require.EqualValues(t, 10, opened.Size())
	plain, err := os.Open(path)
	require.NoError(t, err)
	for _, f := range []*File{opened, {plain, 10}} {
		b := make([]byte, 4)
		n, err := f.ReadAt(b, 3)
		require.NoError(t, err)
		require.Equal(t, "3456", string(b[:n]))
		n, err = f.ReadAt(b, 8)
		require.Equal(t, io.EOF, err)
		require.Equal(t, "89", string(b[:n]))
		_, err = f.ReadAt(b, 10)
		require.Equal(t, io.EOF, err)
		require.NoError(t, f.Close())
		require.NoError(t, f.Close())
		_, err = f.ReadAt(b, 0)
		require.ErrorIs(t, err, pass.ErrClosed)
	}
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	empty, err := Open(path)
	require.NoError(t, err)
	require.Zero(t, empty.Size())
	require.NoError(t, empty.Close())
	_, err = Open(dir)
	require.ErrorContains(t, err, "is a directory")
	_, err = Open(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Close waits for reads on other goroutines.
func TestCloseWaits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "weights")
	require.NoError(t, os.WriteFile(path, make([]byte, 1<<20), 0o600))
	f, err := Open(path)
	require.NoError(t, err)
	var wait, started sync.WaitGroup
	ends := make([]error, 4)
	for i := range ends {
		started.Add(1)
		wait.Go(func() {
			b := make([]byte, 1<<20)
			_, ends[i] = f.ReadAt(b, 0)
			started.Done()
			for ends[i] == nil {
				_, ends[i] = f.ReadAt(b, 0)
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
