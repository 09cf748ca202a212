package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/model/resample"
	"github.com/tandem-gpu/tandem/model/testdata/audio"
	"github.com/tandem-gpu/tandem/model/wav"
)

var update = flag.Bool("update", false, "write what comes out to testdata")

// vad runs the program.
func vad(stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(context.Background(), append([]string{"--device", "cpu"}, args...), stdin, &out, &err)
	return code, out.String(), err.String()
}

// jfk returns the samples of the recording of the program.
func jfk(t *testing.T) []float32 {
	samples, _, err := wav.Decode(audio.JFK())
	require.NoError(t, err)
	return samples
}

// waveFile returns a WAVE file with the given fields and data; size is the length that
// the data chunk claims.
func waveFile(tag, channels uint16, rate uint32, bits uint16, data []byte, size uint32) []byte {
	var b bytes.Buffer
	align := channels * ((bits + 7) / 8)
	b.WriteString("RIFF")
	put := func(v ...any) {
		for _, x := range v {
			_ = binary.Write(&b, binary.LittleEndian, x) // a bytes.Buffer takes all
		}
	}
	put(36 + size)
	b.WriteString("WAVEfmt ")
	put(uint32(16), tag, channels, rate, rate*uint32(align), align, bits)
	b.WriteString("data")
	put(size)
	b.Write(data)
	return b.Bytes()
}

func pcm(samples int) []byte { return make([]byte, 2*samples) }

func floats(values ...float32) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		panic(err)
	}
	return b
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for _, format := range formats {
		code, stdout, stderr := vad(nil, "--format", format)
		require.Equal(t, exitGood, code)
		require.Empty(t, stderr, "a device that was named needs no word")
		golden := filepath.Join("testdata", "jfk."+format)
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(stdout), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), stdout)
	}
	stdout, err := os.ReadFile("testdata/jfk.json")
	require.NoError(t, err)
	var doc []struct {
		File     string
		Duration float64
		Segments []struct{ Start, End float64 }
	}
	require.NoError(t, json.Unmarshal(stdout, &doc))
	require.Len(t, doc, 1)
	require.Equal(t, 11.0, doc[0].Duration)
	require.Equal(t, 8.162, doc[0].Segments[3].Start)
}

// jfkProbabilities are what ONNX Runtime gives for the recording of the program.
func jfkProbabilities(t *testing.T) []float64 {
	var ref struct{ Probabilities []float64 }
	data, err := os.ReadFile("../../model/silero/testdata/jfk.probs.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &ref))
	return ref.Probabilities
}

func TestProbabilities(t *testing.T) {
	t.Parallel()
	code, stdout, _ := vad(nil, "--probabilities")
	require.Equal(t, exitGood, code)
	requireProbabilities(t, jfkProbabilities(t), stdout)
	code, streamed, _ := vad(bytes.NewReader(raw16(jfk(t)[:40*512])), "--probabilities", "--stream")
	require.Equal(t, exitGood, code)
	requireProbabilities(t, jfkProbabilities(t)[:40], streamed)
}

func requireProbabilities(t *testing.T, want []float64, stdout string) {
	t.Helper()
	lines := strings.Fields(stdout)
	require.Len(t, lines, len(want))
	for i, line := range lines {
		require.Regexp(t, `^[01]\.\d{9}$`, line)
		p, err := strconv.ParseFloat(line, 64)
		require.NoError(t, err)
		require.InDelta(t, want[i], p, 1e-5)
	}
}

// Any rate and number of channels gives about the probabilities of the original.
func TestOtherEncodings(t *testing.T) {
	t.Parallel()
	want := jfkProbabilities(t)
	for _, rate := range []int{44100, 48000} {
		samples, err := resample.Resample(jfk(t), 16000, rate)
		require.NoError(t, err)
		data := make([]byte, 0, 8*len(samples))
		for _, v := range samples { // the mean of the two channels is the signal
			data = append(data, floats(v*0.5, v*1.5)...)
		}
		path := filepath.Join(t.TempDir(), "stereo.wav")
		require.NoError(t, os.WriteFile(path, waveFile(3, 2, uint32(rate), 32, data, uint32(len(data))), 0o644))
		code, stdout, stderr := vad(nil, path, "--probabilities")
		require.Equal(t, exitGood, code, stderr)
		got := strings.Fields(stdout)
		require.Len(t, got, len(want))
		difference := 0.0
		for i := range got {
			p, _ := strconv.ParseFloat(got[i], 64) // the format is tested elsewhere
			difference += math.Abs(want[i]-p) / float64(len(got))
		}
		require.Less(t, difference, 0.01, "%d Hz", rate)
	}
}

// What is printed live is what is printed for a file.
func TestStream(t *testing.T) {
	t.Parallel()
	raw := raw16(jfk(t))
	for _, tc := range []struct {
		name, format string
		stdin        io.Reader
	}{
		{"WAVE", "rttm", audio.JFK()},
		{"raw, with half a sample at the end", "labels", io.MultiReader(bytes.NewReader(raw), strings.NewReader("x"))},
		{"a few bytes at a time", "labels", &slowReader{raw, 0}},
	} {
		file, err := os.ReadFile("testdata/jfk." + tc.format)
		require.NoError(t, err)
		code, live, stderr := vad(tc.stdin, "--stream", "--format", tc.format)
		require.Equal(t, exitGood, code, stderr)
		require.Equal(t, string(file), strings.ReplaceAll(live, " stdin ", " jfk "), tc.name)
	}
	code, _, stderr := vad(bytes.NewReader(waveFile(1, 1, 16000, 16, raw[:2*cut], 1<<20)), "--stream")
	require.Equal(t, exitTruncated, code)
	require.Equal(t, "vad: stdin: ends before the length that its header claims; results are for the 2.600 s that are there\n", stderr)
	raw = raw[:2*cut]
	code, stdout, stderr := vad(bytes.NewReader(raw), "--stream", "-")
	require.Equal(t, exitGood, code, stderr)
	require.Equal(t, "start     0.322\nend       2.270\n", stdout)
	_, stdout, _ = vad(bytes.NewReader(raw), "--stream", "--format", "json")
	require.Equal(t, `{"event":"start","time":0.322}`+"\n"+`{"event":"end","time":2.27}`+"\n", stdout)
}

// cut is how much of the recording of the program has one segment.
const cut = 2600 * 16

// A slowReader gives a few bytes at a time.
type slowReader struct {
	b []byte
	n int
}

func (r *slowReader) Read(b []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	r.n = r.n*7%11 + 1
	n := copy(b, r.b[:min(len(r.b), r.n)])
	r.b = r.b[n:]
	return n, nil
}

// Live events come as soon as they are certain, each in one write, and Ctrl-C ends live
// audio with the end of the speech that was told.
func TestStreamLive(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	stdin, feed := io.Pipe()
	out := make(chan string, 100)
	var stderr bytes.Buffer
	code := make(chan int)
	go func() {
		code <- run(ctx, []string{"--device", "cpu", "--stream"}, stdin, writerFunc(func(b []byte) { out <- string(b) }), &stderr)
	}()
	samples := jfk(t)
	_, err := feed.Write(raw16(samples[:12800])) // 0.8 s
	require.NoError(t, err)
	require.Equal(t, "start     0.322\n", <-out)
	interrupt()
	require.Equal(t, exitInterrupted, <-code)
	require.Equal(t, "vad: interrupted\n", stderr.String())
	close(out)
	var rest []string
	for line := range out {
		rest = append(rest, line)
	}
	require.Len(t, rest, 1)
	require.Regexp(t, `^end  +0\.\d+\n$`, rest[0])
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

func raw16(samples []float32) []byte {
	var b []byte
	for _, v := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(int16(v*(1<<15))))
	}
	return b
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(context.Background())
	interrupt()
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"--device", "cpu"}, nil, &stdout, &stderr)
	require.Equal(t, exitInterrupted, code)
	require.Empty(t, stdout.String())
	require.Equal(t, "vad: interrupted\n", stderr.String())

	// While a file comes in on standard input.
	ctx, interrupt = context.WithCancel(context.Background())
	stdin, feed := io.Pipe()
	stderr.Reset()
	go func() {
		_, _ = feed.Write(waveFile(1, 1, 16000, 16, pcm(1000), 1<<20)[:500]) // may be cut short
		interrupt()
	}()
	require.Equal(t, exitInterrupted, run(ctx, []string{"--device", "cpu", "-"}, stdin, &stdout, &stderr))
	require.Empty(t, stdout.String())
	require.Equal(t, "vad: interrupted\n", stderr.String())
	stdin.Close()
}

func TestSeveralFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	quiet, clip, none := filepath.Join(dir, "quiet.wav"), filepath.Join(dir, "my clip.wav"), filepath.Join(dir, "none.wav")
	require.NoError(t, os.WriteFile(quiet, waveFile(1, 1, 16000, 16, pcm(8000), 16000), 0o644))
	speech := waveFile(1, 1, 16000, 16, raw16(jfk(t)[:cut]), 2*cut)
	require.NoError(t, os.WriteFile(clip, speech, 0o644))

	code, stdout, stderr := vad(nil, quiet, none, "--", clip)
	require.Equal(t, exitFailed, code)
	require.Equal(t, "vad: "+none+": no such file or directory\n", stderr)
	require.True(t, strings.HasPrefix(stdout, quiet+": 0.500 s, 0 segments, 0.000 s of speech\n\n"+clip+": 2.600 s, 1 segment, 1.948 s of speech\n"), stdout)

	code, stdout, _ = vad(nil, quiet, clip, "--format", "rttm")
	require.Equal(t, exitGood, code)
	require.True(t, strings.HasPrefix(stdout, "SPEAKER my_clip 1 0.322 1.948 <NA> <NA> speech <NA> <NA>\n"), stdout)

	_, stdout, _ = vad(nil, quiet, clip, "--format", "labels")
	require.True(t, strings.HasPrefix(stdout, "0.322\t2.270\tspeech "+clip+"\n"), stdout)

	_, stdout, _ = vad(nil, quiet, clip, "--probabilities")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 1+16+1+82)
	require.Equal(t, "# "+quiet, lines[0])
	require.Equal(t, "# "+clip, lines[17])

	_, stdout, _ = vad(bytes.NewReader(speech), quiet, "-", "--format", "json")
	var doc []struct {
		File     string
		Segments []any
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &doc))
	require.Len(t, doc, 2)
	require.NotNil(t, doc[0].Segments)
	require.Empty(t, doc[0].Segments)
	require.Equal(t, "stdin", doc[1].File)
	require.Len(t, doc[1].Segments, 1)
}

func TestPlot(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "speech.png")
	code, _, stderr := vad(nil, "--plot", path)
	require.Equal(t, exitGood, code, stderr)
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	picture, err := png.Decode(file)
	require.NoError(t, err)
	require.Equal(t, plotWidth, picture.Bounds().Dx())
	require.Equal(t, plotHeight, picture.Bounds().Dy())
	colours := map[[3]uint8]int{}
	for y := range plotHeight {
		for x := range plotWidth {
			r, g, b, _ := picture.At(x, y).RGBA()
			colours[[3]uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)}]++
		}
	}
	require.Greater(t, colours[[3]uint8{waveColour.R, waveColour.G, waveColour.B}], 50_000)
	require.Greater(t, colours[[3]uint8{curveColour.R, curveColour.G, curveColour.B}], 1_000)

	one := filepath.Join(t.TempDir(), "one.wav") // a plot of one sample is one, too
	require.NoError(t, os.WriteFile(one, waveFile(1, 1, 16000, 16, pcm(1), 2), 0o644))
	code, _, stderr = vad(nil, "--plot", path, one)
	require.Equal(t, exitGood, code, stderr)
}

func TestHelp(t *testing.T) {
	t.Parallel()
	code, help, stderr := vad(nil, "--help")
	require.Equal(t, exitGood, code)
	require.Empty(t, stderr)
	require.Contains(t, help, "--min-silence D    shorter silence does not end speech (100ms)")
	require.Contains(t, help, "130  interrupted")
}

func TestDurationFlag(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{"250": "250ms", "1.5": "1.5ms", "1.5s": "1.5s", "0": "0s"} {
		opt, err := parse([]string{"--min-silence", arg})
		require.NoError(t, err, arg)
		require.Equal(t, want, opt.params.MinSilence.String())
	}
}
