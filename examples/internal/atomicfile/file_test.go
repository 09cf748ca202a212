package atomicfile

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "result")
	write := func(text string) *File {
		f, err := Create(path)
		require.NoError(t, err)
		_, err = f.Write([]byte(text))
		require.NoError(t, err)
		return f
	}
	holds := func(want string) {
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 1, "something is left")
	}
	f := write("first")
	require.NoFileExists(t, path)
	require.NoError(t, f.Commit())
	holds("first")
	f.Discard()
	holds("first")
	write("second").Discard()
	holds("first")
	require.NoError(t, write("third").Commit())
	holds("third")
}

func TestWhereNoFileCanBe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := Create(filepath.Join(dir, "no", "such"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Create(dir)
	require.ErrorContains(t, err, "is a directory")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
	var none *File
	none.Discard()
}

func TestLinksAndDevices(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no links, and no such device")
	}
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(real, []byte("before"), 0o600))
	require.NoError(t, os.Symlink(real, link))
	for _, path := range []string{link, os.DevNull} {
		f, err := Create(path)
		require.NoError(t, err)
		_, err = f.Write([]byte("after"))
		require.NoError(t, err)
		require.NoError(t, f.Commit())
		f.Discard()
	}
	got, err := os.ReadFile(real)
	require.NoError(t, err)
	require.Equal(t, "after", string(got))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink, "the link was replaced")
	info, err = os.Stat(os.DevNull)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeCharDevice)
}
