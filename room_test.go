package tandem

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tests begin with a look at the disk, since on a full one they end in the middle, with
// a linker's message: 5 GiB are needed, and under CI Go's cache makes way for them.
func TestRoom(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a script for sh")
	}
	for name, c := range map[string]struct {
		needed string // MiB
		ci     bool
		fails  bool
		want   string
		calls  string // of go, but for its places
	}{
		"there":       {needed: "0"},
		"there in CI": {needed: "0", ci: true},
		"none":        {needed: "1000000000", fails: true, want: "MiB free, 1000000000 are needed"},
		"none in CI":  {needed: "1000000000", ci: true, fails: true, want: "emptying Go's cache", calls: "clean -cache -fuzzcache\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			fake, calls := filepath.Join(dir, "go"), filepath.Join(dir, "calls")
			// Its places are not made yet, as on a machine that never ran it.
			script := "#!/bin/sh\nif [ $1 = env ]; then echo " + dir + "/not/yet; else echo \"$@\" >>" + calls + "; fi\n"
			require.NoError(t, os.WriteFile(fake, []byte(script), 0o700))
			cmd := exec.CommandContext(t.Context(), "sh", ".ci/room")
			cmd.Env = append(os.Environ(), "GO="+fake, "TMPDIR="+dir, "NEEDED_MIB="+c.needed, "CI=")
			if c.ci {
				cmd.Env = append(cmd.Env, "CI=true")
			}
			out, err := cmd.CombinedOutput()
			require.Equal(t, c.fails, err != nil, "%v: %s", err, out)
			require.Contains(t, string(out), c.want)
			if c.fails {
				require.Contains(t, string(out), dir+" has ")
				require.Contains(t, string(out), "go clean -cache")
			} else {
				require.Empty(t, string(out))
			}
			called, _ := os.ReadFile(calls) // none: it was not called
			require.Equal(t, c.calls, string(called))
		})
	}
}
