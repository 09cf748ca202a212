//go:build (linux && (amd64 || arm64) && !android) || (windows && amd64)

package driver

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

func TestOpenAbsent(t *testing.T) {
	t.Parallel()
	_, err := Open(filepath.Join(t.TempDir(), "libcuda.so.1"))
	require.ErrorIs(t, err, pass.ErrNoDevice)
	require.ErrorContains(t, err, "driver: no NVIDIA driver: load ")
	require.Equal(t, 1, strings.Count(err.Error(), "libcuda.so.1"), err.Error())
	require.NotContains(t, err.Error(), "\n")
}

func TestOpenAnotherLibrary(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("names a library of Linux")
	}
	_, err := Open("libm.so.6")
	if _, absent := openLibrary("libm.so.6"); absent != nil {
		t.Skip("SKIPPED: there is no libm.so.6 to be taken for a driver")
	}
	require.ErrorIs(t, err, pass.ErrNoDevice)
	require.ErrorContains(t, err, "is no CUDA driver: no cuInit")
	require.Regexp(t, `^driver: /.*libm\.so\.6 `, err.Error())
}

// Every entry point has a name, and no two the same.
func TestEntries(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for e, x := range entries {
		require.NotEmpty(t, x.name, e)
		require.False(t, seen[x.name], x.name)
		require.Positive(t, x.from, x.name)
		seen[x.name] = true
	}
}
