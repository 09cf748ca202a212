package silero

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/model/internal/undertest"
	"github.com/tandem-gpu/tandem/pass"
)

// Each tensor must be there, of its shape, and finite; else nothing stays on the device.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	src := undertest.Source{}
	for _, name := range Embedded().Names() {
		if used := strings.HasPrefix(name, "model."); !used {
			continue // constants of the graph
		}
		tensor, err := Embedded().Tensor(name)
		require.NoError(t, err)
		src[name] = tensor
	}
	head := src["model.decoder.decoder.2.weight"]
	head.Shape = head.Shape[:2] // a layer that the file has as a convolution
	src["model.decoder.decoder.2.weight"] = head
	require.Len(t, src, 1+2*len(encoder)+4+2)
	undertest.Refuses(t, src, func(ctx context.Context, dev pass.Device, src undertest.Source) (io.Closer, error) {
		return Load(ctx, dev, src)
	})
	_, err := Load(t.Context(), undertest.Open(t, "cpu"), nil)
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, err = Load(t.Context(), undertest.Open(t, "cpu"), undertest.Source{"encoder.weight": {}})
	require.ErrorContains(t, err, `silero: weights: tensor "model.stft.forward_basis_buffer": want shape [258 1 256]`)
}

// Values that were not made by this package's functions are refused, not followed.
func TestZeroValues(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var model Model
	var stream Stream
	var streams Streams
	_, probabilities := model.Probabilities(ctx, make([]float32, ChunkSamples))
	_, ofNil := (*Model)(nil).Probabilities(ctx, nil)
	_, newStream := model.NewStream(ctx)
	_, newStreams := model.NewStreams(ctx, 1)
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
	require.NoError(t, errors.Join(model.Close(), stream.Close(), streams.Close()))
	require.Zero(t, Chunks(-1-ChunkSamples))
}
