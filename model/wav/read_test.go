package wav_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/wav"
	"github.com/tandem-gpu/tandem/pass"
)

func TestFormatBeforeReading(t *testing.T) {
	t.Parallel()
	long := file(format(1, 1, 16), chunk{id: "data", body: make([]byte, 100), size: 1 << 30})
	r, err := wav.NewReader(bytes.NewReader(long))
	require.NoError(t, err)
	require.Equal(t, int64(50), r.Format().Frames, "a claim is cut to the input")
	require.True(t, r.Format().Truncated)
	r, err = wav.NewReader(struct{ io.Reader }{bytes.NewReader(long)})
	require.NoError(t, err)
	require.Equal(t, int64(1<<29), r.Format().Frames)
	streamed := file(format(1, 1, 16), chunk{id: "data", body: make([]byte, 100), size: math.MaxUint32})
	r, err = wav.NewReader(struct{ io.Reader }{bytes.NewReader(streamed)})
	require.NoError(t, err)
	require.Equal(t, int64(-1), r.Format().Frames)
	require.Equal(t, "PCM 16 bit, 16000 Hz, 1 channel", r.Format().String())
}

func TestReadInPieces(t *testing.T) {
	t.Parallel()
	values := make([]int16, 30001)
	for i := range values {
		values[i] = int16(i * 7)
	}
	b := file(format(1, 1, 16), pcm16(values...))
	want, _, err := wav.Decode(bytes.NewReader(b))
	require.NoError(t, err)
	for _, size := range []int{1, 7, 4096, 100000} {
		r, err := wav.NewReader(iotest.HalfReader(bytes.NewReader(b)))
		require.NoError(t, err)
		got, dst := []float32{}, make([]float32, size)
		for {
			n, err := r.Read(dst)
			got = append(got, dst[:n]...)
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			require.Positive(t, n)
		}
		require.Equal(t, want, got)
		n, err := r.Read(dst)
		require.Zero(t, n)
		require.Equal(t, io.EOF, err)
	}
}

// A sample is handed out as soon as it is there, although more are wanted.
func TestReadDoesNotWait(t *testing.T) {
	t.Parallel()
	in, out := io.Pipe()
	defer in.Close()
	go func() {
		out.Write(file(format(1, 1, 16), chunk{id: "data", body: []byte{0, 0x40}, size: math.MaxUint32}))
	}()
	r, err := wav.NewReader(in)
	require.NoError(t, err)
	n, err := r.Read(make([]float32, 512))
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestSamplesBeforeNaN(t *testing.T) {
	t.Parallel()
	r, err := wav.NewReader(bytes.NewReader(file(format(3, 1, 32), float32s(1, 2, float32(math.NaN()), 3))))
	require.NoError(t, err)
	dst := make([]float32, 10)
	n, err := r.Read(dst)
	require.Equal(t, []float32{1, 2}, dst[:n])
	require.ErrorContains(t, err, "sample 2")
	n, again := r.Read(dst)
	require.Zero(t, n)
	require.Equal(t, err, again)
}

func TestInputErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	b := file(format(1, 1, 16), pcm16(1, 2, 3))
	for _, n := range []int{0, 3, 14, 30, 46} {
		_, _, err := wav.Decode(io.MultiReader(bytes.NewReader(b[:n]), iotest.ErrReader(broken)))
		require.ErrorIs(t, err, broken, n)
	}
	_, _, err := wav.Decode(io.MultiReader(bytes.NewReader(b[:46]), stuck{}))
	require.ErrorIs(t, err, io.ErrNoProgress)
}

// stuck returns nothing and no error, for ever.
type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// A length that lies costs nothing: memory grows with what arrives.
func TestAllocationsAreBounded(t *testing.T) {
	claim := func(chunks ...chunk) []byte { return file(chunks...) }
	for name, b := range map[string][]byte{
		"data":       claim(format(1, 1, 16), chunk{id: "data", body: make([]byte, 1000), size: 1 << 31}),
		"data first": claim(chunk{id: "data", body: make([]byte, 1000), size: 1 << 31}),
		"skip":       claim(chunk{id: "LIST", body: make([]byte, 1000), size: 1 << 31}),
		"fmt":        claim(chunk{id: "fmt ", body: make([]byte, 1000), size: 1 << 31}),
	} {
		for _, in := range inputs {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, _ = wav.Decode(in.open(b))
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), "%s, %s", name, in.name)
		}
	}
}

func TestStreamingIsFlat(t *testing.T) {
	const frames = 4 << 20
	head := file(format(1, 2, 16), chunk{id: "data", size: 4 * frames})
	r, err := wav.NewReader(io.MultiReader(bytes.NewReader(head), io.LimitReader(zeros{}, 4*frames)))
	require.NoError(t, err)
	dst := make([]float32, 4096)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	total := 0
	for {
		n, err := r.Read(dst)
		total += n
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
	}
	runtime.ReadMemStats(&after)
	require.Equal(t, frames, total)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.wav")
	require.NoError(t, os.WriteFile(path, file(format(1, 1, 16), pcm16(16384)), 0o600))
	got, f, err := wav.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, []float32{0.5}, got)
	require.Equal(t, 16000, f.Rate)

	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, _, err = wav.ReadFile(path)
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, "a.wav: empty input")
	_, _, err = wav.ReadFile(dir)
	require.ErrorContains(t, err, dir)
	require.ErrorContains(t, err, "directory")
	_, _, err = wav.ReadFile(filepath.Join(dir, "none.wav"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "none.wav")
}
