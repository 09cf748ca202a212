package wav_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/wav"
	"github.com/tandem-gpu/tandem/pass"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	samples := []float32{0, 0.5, -1, 1, 2, -2, float32(math.Inf(1)), 1.4 / 32768, -1.6 / 32768}
	var b bytes.Buffer
	require.NoError(t, wav.Write(&b, 8000, samples))
	require.Equal(t, 44+2*len(samples), b.Len())
	require.Equal(t, uint32(b.Len()-8), binary.LittleEndian.Uint32(b.Bytes()[4:]))
	got, f, err := wav.Decode(&b)
	require.NoError(t, err)
	const most = 32767. / 32768
	require.Equal(t, []float32{0, 0.5, -1, most, most, -1, most, 1. / 32768, -2. / 32768}, got)
	require.Equal(t, wav.Format{Encoding: wav.PCM, Rate: 8000, Channels: 1, Bits: 16, ValidBits: 16, Frames: int64(len(samples))}, f)

	long := make([]float32, 100000)
	for i := range long {
		long[i] = float32(i%65536-32768) / 32768
	}
	b.Reset()
	require.NoError(t, wav.Write(&b, 44100, long))
	got, _, err = wav.Decode(&b)
	require.NoError(t, err)
	require.Equal(t, long, got)

	for _, rate := range []int{0, -1} {
		require.ErrorIs(t, wav.Write(io.Discard, rate, nil), pass.ErrInvalid)
	}
	require.ErrorIs(t, wav.Write(io.Discard, 1, []float32{float32(math.NaN())}), pass.ErrInvalid)
	in, out := io.Pipe()
	in.Close()
	require.ErrorIs(t, wav.Write(out, 1, long), io.ErrClosedPipe)
}
