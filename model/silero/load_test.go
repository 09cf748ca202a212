package silero

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/model/onnx"
	"github.com/tandem-gpu/tandem/pass"
)

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	change := func(old, new string) string {
		require.Len(t, new, len(old))
		require.Contains(t, embedded, old)
		return strings.ReplaceAll(embedded, old, new)
	}
	f, err := onnx.Parse([]byte(embedded))
	require.NoError(t, err)
	cell, err := f.Tensor("model.decoder.rnn.weight_hh")
	require.NoError(t, err)
	values := make([]byte, 16)
	_, err = cell.Data.ReadAt(values, 0)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		file string
		want []string
	}{
		"empty":          {"", []string{"empty"}},
		"another format": {"RIFF\x00\x00\x00\x00WAVEfmt ", []string{"no ONNX model"}},
		"cut in half":    {embedded[:len(embedded)/2], []string{"damaged"}},
		"missing tensor": {change("model.encoder.2.reparam_conv.bias", "model.encoder.2.reparam_conv.biaz"),
			[]string{`"model.encoder.2.reparam_conv.bias": want shape [64]`, "nearest is"}},
		"shape": {change("\x08\x82\x02\x08\x01\x08\x80\x02", "\x08\x82\x02\x08\x80\x02\x08\x01"),
			[]string{`"model.stft.forward_basis_buffer": want shape [258 1 256], given [258 256 1]`}},
		"NaN": {change(string(values), string(values[:4])+"\x00\x00\xc0\x7f"+string(values[8:])),
			[]string{`"model.decoder.rnn.weight_hh": want finite values, given NaN at 1`}},
	} {
		for _, d := range devices {
			net, err := Load(context.Background(), undertest.Open(t, d), strings.NewReader(tc.file))
			require.ErrorIs(t, err, pass.ErrInvalid, name)
			require.Nil(t, net)
			for _, text := range append(tc.want, "silero: ") {
				require.ErrorContains(t, err, text, name)
			}
		}
	}
	for _, d := range devices {
		dev := undertest.Open(t, d)
		broken := errors.New("broken pipe")
		_, err := Load(context.Background(), dev, iotest.ErrReader(broken))
		require.ErrorIs(t, err, broken)
		_, err = Load(context.Background(), dev, nil)
		require.ErrorIs(t, err, pass.ErrInvalid)
		_, err = Load(context.Background(), nil, Embedded())
		require.ErrorIs(t, err, pass.ErrInvalid)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = Load(ctx, dev, bytes.NewReader([]byte(embedded)))
		require.ErrorIs(t, err, context.Canceled)
	}
}

// Values that were not made by this package's functions are refused, not followed.
func TestZeroValues(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var net Net
	var stream Stream
	var streams Streams
	_, probabilities := net.Probabilities(ctx, make([]float32, ChunkSamples))
	_, ofNil := (*Net)(nil).Probabilities(ctx, nil)
	_, newStream := net.NewStream(ctx)
	_, newStreams := net.NewStreams(ctx, 1)
	_, feed := stream.Feed(ctx, make([]float32, ChunkSamples))
	_, flush := stream.Flush(ctx)
	_, add := streams.Add()
	for _, err := range []error{
		probabilities, ofNil, newStream, newStreams, feed, flush, stream.Reset(ctx), add,
		streams.Step(ctx, []Chunk{{Samples: make([]float32, 1)}}),
	} {
		require.ErrorIs(t, err, pass.ErrInvalid)
	}
	require.ErrorIs(t, streams.Remove(1), pass.ErrClosed)
	require.ErrorIs(t, streams.Reset(1), pass.ErrClosed)
	require.NoError(t, errors.Join(net.Close(), stream.Close(), streams.Close()))
	require.Zero(t, Chunks(-1-ChunkSamples))
}
