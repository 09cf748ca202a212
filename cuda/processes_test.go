package cuda

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

// Memory that another process holds is an error that says so, and no end of this one. The
// other process is this test again.
func TestMemoryOfAnotherProcess(t *testing.T) {
	if !onDevice() {
		t.Skip("two processes need a GPU to share: TANDEM_DEVICES=cuda")
	}
	const variable = "TANDEM_CUDA_HOLD"
	dev, err := Open(t.Context(), Config{})
	require.NoError(t, err)
	defer dev.Close()
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	size := int(dev.Info().Memory / 4 * 6 / 10) // elements: of two such, one is too many
	if os.Getenv(variable) != "" {
		_, err := ses.Alloc(pass.F32, size)
		require.NoError(t, err)
		fmt.Println("held")
		_, err = io.Copy(io.Discard, os.Stdin)
		require.NoError(t, err)
		return
	}
	other := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	other.Env = append(os.Environ(), variable+"=1")
	in, err := other.StdinPipe()
	require.NoError(t, err)
	out, err := other.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, other.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "held" {
	}
	for range 3 {
		_, err = ses.Alloc(pass.F32, size)
		require.ErrorIs(t, err, pass.ErrOutOfMemory)
		require.ErrorContains(t, err, "free")
		small, err := ses.Alloc(pass.F32, 1<<20)
		require.NoError(t, err)
		require.NoError(t, ses.Free(small))
	}
	require.NoError(t, in.Close())
	_, err = io.Copy(io.Discard, out)
	require.NoError(t, err)
	require.NoError(t, other.Wait())
	large, err := ses.Alloc(pass.F32, size)
	require.NoError(t, err)
	require.NoError(t, ses.Free(large))
}
