//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A named pipe waits for who writes: both opening it and reading from it end with
// Ctrl-C.
func TestInterruptNamedPipe(t *testing.T) {
	t.Parallel()
	fifo := func() string { // one for each: what waits for a pipe may be left behind
		path := filepath.Join(t.TempDir(), "pipe.wav")
		require.NoError(t, syscall.Mkfifo(path, 0o600))
		return path
	}
	file := waveFile(1, 1, 16000, 16, pcm(1000), 2000)
	for _, begin := range [][]byte{nil, file[:500]} {
		path := fifo()
		ctx, interrupt := context.WithCancel(context.Background())
		over := make(chan struct{})
		go func() {
			if begin != nil {
				pipe, err := os.OpenFile(path, os.O_WRONLY, 0)
				if err != nil {
					return
				}
				defer pipe.Close()
				_, _ = pipe.Write(begin) // no more than a pipe holds
				time.AfterFunc(50*time.Millisecond, interrupt)
				<-over
				return
			}
			time.Sleep(50 * time.Millisecond)
			interrupt()
		}()
		var stdout, stderr bytes.Buffer
		require.Equal(t, exitInterrupted, run(ctx, []string{"--device", "cpu", path}, nil, &stdout, &stderr))
		require.Equal(t, "vad: interrupted\n", stderr.String())
		require.Empty(t, stdout.String())
		close(over)
	}
	path := fifo()
	// And it is read like any other file.
	go func() { _ = os.WriteFile(path, file, 0) }()
	code, stdout, stderr := vad(nil, "--format", "json", path)
	require.Equal(t, exitGood, code, stderr)
	require.Contains(t, stdout, "pipe.wav")
}
