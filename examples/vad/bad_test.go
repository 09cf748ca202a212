package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every bad input is one line on standard error and nothing on standard output.
func TestBadInput(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	long := pcm(2000)
	for name, tc := range map[string]struct {
		file []byte
		code int
		want string
	}{
		"empty":           {[]byte{}, exitFailed, "empty"},
		"header only":     {waveFile(1, 1, 16000, 16, nil, 0), exitFailed, "no samples"},
		"half a header":   {waveFile(1, 1, 16000, 16, nil, 0)[:20], exitFailed, "wav: "},
		"wrong magic":     {append([]byte("RIFX"), long...), exitFailed, "wav: "},
		"noise":           {[]byte("hello, this is text"), exitFailed, `begins with "hell"`},
		"another format":  {append([]byte("fLaC"), long...), exitFailed, "FLAC"},
		"0 channels":      {waveFile(1, 0, 16000, 16, long, 4000), exitFailed, "channel"},
		"0 Hz":            {waveFile(1, 1, 0, 16, long, 4000), exitFailed, "wav: "},
		"1 Hz":            {waveFile(1, 1, 1, 16, long, 4000), exitFailed, "resample: "},
		"7 bits":          {waveFile(1, 1, 16000, 7, long, 4000), exitFailed, "7"},
		"unknown tag":     {waveFile(0x55, 1, 16000, 16, long, 4000), exitFailed, "wav: "},
		"NaN":             {waveFile(3, 1, 16000, 32, floats(0, 0, nan, 0), 16), exitFailed, "sample 2 of channel 0 is NaN"},
		"infinity":        {waveFile(3, 1, 16000, 32, floats(0, inf), 8), exitFailed, "sample 1 of channel 0 is -Inf"},
		"infinity late":   {waveFile(3, 1, 16000, 32, append(make([]byte, 400_000), floats(inf)...), 400_004), exitFailed, "sample 100000 of"},
		"2 GB claimed":    {waveFile(1, 1, 16000, 16, long, 1<<31), exitTruncated, "ends before the length that its header claims"},
		"RIFF length lie": {append([]byte("RIFF\xff\x00\x00\x00"), waveFile(1, 1, 16000, 16, long, 4000)[8:]...), exitGood, ""},
		"1 sample":        {waveFile(1, 1, 16000, 16, pcm(1), 2), exitGood, ""},
	} {
		path := filepath.Join(t.TempDir(), "x.wav")
		require.NoError(t, os.WriteFile(path, tc.file, 0o644))
		for _, input := range []string{"file", "stdin"} {
			var code int
			var stdout, stderr string
			if input == "file" {
				code, stdout, stderr = vad(nil, "--format", "json", path)
			} else {
				code, stdout, stderr = vad(bytes.NewReader(tc.file), "--format", "json", "-")
			}
			require.Equal(t, tc.code, code, "%s, %s: %s", name, input, stderr)
			if tc.code == exitGood {
				require.Empty(t, stderr, name)
			} else {
				require.Contains(t, stderr, tc.want, name)
				require.Regexp(t, `^vad: [^\n]+\n$`, stderr, name)
			}
			if tc.code == exitFailed {
				require.Empty(t, stdout, name)
			} else {
				require.True(t, json.Valid([]byte(stdout)), name)
			}
		}
	}
}

func TestBadUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := filepath.Join(dir, "one.wav")
	require.NoError(t, os.WriteFile(one, waveFile(1, 1, 16000, 16, pcm(1), 2), 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dir.png"), 0o755))
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"nosuch.wav", exitFailed, "nosuch.wav: no such file or directory"},
		{dir, exitFailed, dir + ": is a directory"},
		{"--device gpu:nosuch", exitFailed, "device gpu:nosuch: gpu: "},
		{"--device tpu", exitUsage, "--device: want cuda, gpu, software or cpu"},
		{"--plot " + dir + "/no/x.png " + one, exitFailed, "/no/x.png: no such file or directory"},
		{"--plot " + dir + "/dir.png " + one, exitFailed, "is a directory"},
		{"--plot " + one + " " + one, exitUsage, "want a file name that ends in .png"},
		{"--format xml", exitUsage, `--format: want one of table, json, rttm, labels, given "xml"`},
		{"--threshold 0", exitUsage, "threshold"},
		{"--threshold x", exitUsage, "threshold"},
		{"--min-speech -5", exitUsage, "min-speech"},
		{"--min-speech NaN", exitUsage, "min-speech"},
		{"--max-speech 50ms", exitUsage, "maximum speech"},
		{"--nosuch", exitUsage, "nosuch"},
		{"--plot", exitUsage, "plot"},
		{"--plot=", exitUsage, "plot"},
		{"--plot x.png a.wav b.wav", exitUsage, "want one recording"},
		{"--plot x.png --stream", exitUsage, "--plot and --stream"},
		{"--probabilities --format json", exitUsage, "--probabilities and --format"},
		{"--stream a.wav", exitUsage, `want standard input only, given "a.wav"`},
		{"- -", exitUsage, "standard input: want it once"},
	} {
		code, stdout, stderr := vad(strings.NewReader(""), strings.Fields(tc.args)...)
		require.Equal(t, tc.code, code, "%s: %s", tc.args, stderr)
		require.Contains(t, stderr, tc.want, tc.args)
		require.Regexp(t, `^vad: [^\n]+\n$`, stderr, tc.args)
		require.Empty(t, stdout, tc.args)
	}
	for _, stdin := range []string{"", "x", "fLaC\x00\x00\x00\x00\x00\x00\x00\x00\x00", "RIFF"} {
		code, stdout, stderr := vad(strings.NewReader(stdin), "--stream")
		require.Equal(t, exitFailed, code, "%q", stdin)
		require.Regexp(t, `^vad: stdin: [^\n]+\n$`, stderr)
		require.Empty(t, stdout)
	}
	code, stdout, message := vad(nil, "")
	require.Equal(t, exitUsage, code, "not the recording of the program")
	require.Equal(t, "vad: want the name of a file, given an empty one; see vad --help\n", message)
	require.Empty(t, stdout)
	var stderr bytes.Buffer
	code = run(context.Background(), []string{"--device=cpu", one}, nil, brokenWriter{}, &stderr)
	require.Equal(t, exitFailed, code)
	require.Equal(t, "vad: standard output: broken\n", stderr.String())
	stderr.Reset()
	code = run(context.Background(), []string{"--device=cpu", "--stream", "--probabilities"}, bytes.NewReader(pcm(1000)), brokenWriter{}, &stderr)
	require.Equal(t, exitFailed, code)
	require.Equal(t, "vad: standard output: broken\n", stderr.String())
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }
