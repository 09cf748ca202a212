package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const allCases = `overhead/open-cold
overhead/open-warm
overhead/session
overhead/record-1000-cold
overhead/record-1000-again
overhead/replay-1-start
overhead/replay-1-total
overhead/replay-1000-start
overhead/replay-1000-total
overhead/dispatch-floor
overhead/round-trip
overhead/read-back
overhead/download
overhead/upload
overhead/load-f32
overhead/load-f16
overhead/load-q8
copy/256MiB
gemm/512x512x512/f32
gemm/512x512x512/f16
gemm/512x512x512/q8
gemm/1500x384x1536/f32
gemm/1500x384x1536/f16
gemm/1500x384x1536/q8
gemm/1500x1280x5120/f32
gemm/1500x1280x5120/f16
gemm/1500x1280x5120/q8
gemm/4096x4096x4096/f32
gemm/4096x4096x4096/f16
gemm/4096x4096x4096/q8
matvec/1280x1280/f32
matvec/1280x1280/f16
matvec/1280x1280/q8
matvec/51865x1280/f16
matvec/51865x1280/q8
attention/1500x20x64
attention/relative-1500x8x128
attention/4x4096x16x64
attention/16384x16x128
rowwise/layernorm/1500x1280
rowwise/softmax/12000x1500
rowwise/argmax/51865
conv1d/spectrum
conv1d/encoder
conv1d/whisper-tiny-1
conv1d/whisper-tiny-2
conv1d/whisper-large-1
conv1d/whisper-large-2
conv2d/resnet34-64
convglu/1500x1024-k9
logmel/whisper80
lstm/segmentation/b1
lstm/segmentation/b32
lstm/ge2e/b1
lstm/ge2e/b32
silero/file-10min
silero/streams-256
silero/stream-1
networks/whisper-tiny.en/encoder
networks/whisper-base.en/encoder
networks/whisper-small/encoder
networks/whisper-tiny.en/decoder
networks/whisper-base.en/decoder
networks/whisper-small/decoder
networks/moonshine-tiny/encoder
networks/moonshine-tiny/decoder
networks/parakeet-110m/encoder
networks/parakeet-0.6b/encoder
networks/gigaam-v3/encoder
networks/segmentation/b1
networks/segmentation/b32
networks/wespeaker/b1
networks/wespeaker/b8
networks/ge2e/clip
`

func bench(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestList(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--list"}, allCases},
		{[]string{"--list", "--run", "^matvec/51865|stream-1$"}, "matvec/51865x1280/f16\nmatvec/51865x1280/q8\nsilero/stream-1\n"},
	} {
		code, stdout, stderr := bench(tc.args...)
		require.Equal(t, exitGood, code)
		require.Equal(t, tc.want, stdout)
		require.Empty(t, stderr)
	}
	code, stdout, _ := bench("--help")
	require.Equal(t, exitGood, code)
	require.Equal(t, usage, stdout)
}

func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ args, says string }{
		{"", "--device: want the name of a device, given none"},
		{"--device cpu extra", `unexpected argument "extra"`},
		{"--device cpu --run (", "--run: error parsing regexp"},
		{"--device cpu --math sloppy", `--math: want exact or fast, given "sloppy"`},
		{"--device cpu --time 0s", "--time: want a time above 0, given 0s"},
		{"--device 0", `--device: want cuda, gpu, software or cpu, or cuda:N, gpu:N or cpu:N, given "0"`},
		{"--device cpu --run nothing", `--run: no case matches "nothing"`},
		{"--list --run nothing", `--run: no case matches "nothing"`},
		{"--device cpu:0", `--device: want cpu:N with a number of threads of at least 1, given "cpu:0"`},
		{"--device cpu --compare cpu:x", `--compare: want cpu:N with a number of threads of at least 1, given "cpu:x"`},
		{"--nosuch", "flag provided but not defined: -nosuch"},
	} {
		code, stdout, stderr := bench(strings.Fields(tc.args)...)
		require.Equal(t, exitUsage, code, tc.args)
		require.Empty(t, stdout, tc.args)
		require.Contains(t, stderr, "bench: "+tc.says, tc.args)
		require.True(t, strings.HasSuffix(stderr, "; see bench --help\n"), tc.args)
	}
}

func TestMissingDevices(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ args, says string }{
		{"--device cuda", "^bench: device cuda: .*no device; .+\n$"},
		{"--device gpu:nosuch", "^bench: device gpu:nosuch: .+\n$"},
		{"--device cpu --compare cuda", "^bench: device cuda: .*no device; .+\n$"},
		{"--device cpu --run session --time 1ms --json nosuch/file", "^bench: --json: .+\n$"},
	} {
		code, stdout, stderr := bench(strings.Fields(tc.args)...)
		require.Equal(t, exitFailed, code, tc.args)
		require.Empty(t, stdout, "%s: it was measured first", tc.args)
		require.Regexp(t, tc.says, stderr, tc.args)
	}
}

// The columns of a row, by regular expressions.
const (
	aTime  = ` +-?[0-9.e+]+ (s|ms|µs|ns)`
	aShare = ` +-?[0-9.]+ %`
	aCount = ` +\d+(×\d+)?`
	aRate  = ` +[0-9.e-]+`
)

func TestRun(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "results.json")
	args := []string{"--device", "cpu:1", "--time", "1ms", "--json", file,
		"--run", `^(overhead/(open-|session|record|replay|dispatch|round|read)|matvec/1280x1280/(f32|q8)|silero/stream-1)`}
	code, stdout, stderr := bench(args...)
	require.Empty(t, stderr)
	require.Equal(t, exitGood, code)
	measured := aTime + aTime + aShare + aCount
	wanted := []string{
		`device   cpu:1: cpu, .+ \(go, go1\.\S+, cpu, 1 thread, [0-9.]+ GiB\)`,
		`go       go1\.\S+ \w+/\w+, \d+ CPUs`,
		`date     \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S+`,
		`command  bench --device cpu:1 --time 1ms --json \S+ --run '\^\(overhead/.+'`,
		`math     exact`,
		``,
		`name +shape +median +min +spread +runs +TFLOP/s +GB/s +× real`,
		`overhead/open-cold +the first in this process` + aTime + aTime + ` +0.0 % +1`,
		`overhead/open-warm +beside an open one` + measured,
		`overhead/session +open one` + measured,
		`overhead/record-1000-cold +1000 ops, sizes not seen before` + measured,
		`overhead/record-1000-again +1000 ops, as before` + measured,
		`overhead/replay-1-start +1 op, call of Start` + measured + ` +\d+ allocations`,
		`overhead/replay-1-total +1 op, to its end` + measured + ` +\d+ allocations`,
		`overhead/replay-1000-start +1000 dependent ops, call of Start` + measured + ` +\d+ allocations`,
		`overhead/replay-1000-total +1000 dependent ops, to the end` + measured + ` +\d+ allocations`,
		`overhead/dispatch-floor +one more of 1000 dependent ops` + aTime + aTime + aShare + ` +\d+×999`,
		`overhead/round-trip +2 KiB in, one op, 2 KiB out` + measured,
		`overhead/read-back +4 bytes, the queue empty` + measured,
		`matvec/1280x1280/f32 +1 row, 1280→1280, W F32` + measured + aRate + aRate,
		`matvec/1280x1280/q8 +1 row, 1280→1280, W Q8_0` + measured + aRate + aRate,
		`silero/stream-1 +a chunk of 32 ms` + measured + aRate,
		`matvec/1280x1280/f32 again +1 row, 1280→1280, W F32` + measured + aRate + aRate + ` +drift [+-][0-9.]+ %`,
	}
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	require.Len(t, lines, len(wanted), stdout)
	for i, w := range wanted {
		require.Regexp(t, "^"+w+"$", lines[i])
	}

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var got struct {
		Command string
		Math    string
		Devices []struct {
			Name string
			Info struct{ Backend string }
		}
		Results []result
	}
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, commandLine(args), got.Command)
	require.Equal(t, "cpu", got.Devices[0].Info.Backend)
	require.Len(t, got.Results, len(wanted)-7)
	for _, r := range got.Results {
		require.Empty(t, r.Error)
		if r.Name != "overhead/dispatch-floor" { // a difference
			require.Positive(t, r.Median, r.Name)
		}
		require.LessOrEqual(t, r.Min, r.Median, r.Name)
		if r.Name == "matvec/1280x1280/f32" {
			require.InEpsilon(t, 2*1280*1280/r.Median, r.FLOPs, 1e-9)
			require.InEpsilon(t, 4*(1280*1280+2*1280)/r.Median, r.Bytes, 1e-9)
		}
		if r.Name == "silero/stream-1" {
			require.InEpsilon(t, 0.032/r.Median, r.RealTime, 1e-9)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := bench("--device", "cpu:1", "--compare", "cpu:2", "--time", "1ms", "--math", "fast", "--run", "matvec/1280x1280/f32")
	require.Empty(t, stderr)
	require.Equal(t, exitGood, code)
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	require.Len(t, lines, 11, stdout)
	require.Regexp(t, `^device   cpu:1: .+, 1 thread, `, lines[0])
	require.Regexp(t, `^device   cpu:2: .+, 2 threads, `, lines[1])
	require.Equal(t, "math     fast", lines[5])
	for i, line := range lines[8:10] {
		require.Regexp(t, `^matvec/1280x1280/f32 +1 row, 1280→1280, W F32 +cpu:[12]`+aTime+aTime+aShare+aCount+aRate+aRate+`$`, line, i)
	}
	require.Regexp(t, `^ +ratio`+aRate+`  +median of cpu:2 / cpu:1$`, lines[10])
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitInterrupted, run(ctx, []string{"--device", "cpu", "--run", "matvec/1280x1280/f32"}, &stdout, &stderr))
	require.Equal(t, "bench: interrupted\n", stderr.String())
	require.NotContains(t, stdout.String(), "failed")
}

// An output that cannot be written to is an error, not silence.
func TestBrokenOutput(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	require.NoError(t, r.Close())
	var stderr bytes.Buffer
	require.Equal(t, exitFailed, run(context.Background(), []string{"--device", "cpu", "--time", "1ms", "--run", "session"}, w, &stderr))
	require.Contains(t, stderr.String(), "standard output")
}
