package device

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem"
	"github.com/tandem-gpu/tandem/cuda"
	"github.com/tandem-gpu/tandem/gpu"
	"github.com/tandem-gpu/tandem/pass"
)

func TestOpen(t *testing.T) {
	t.Setenv("TANDEM_CUDA_LIBRARY", "/no/such/library")
	dev, err := Open(t.Context(), "cpu")
	require.NoError(t, err)
	require.Equal(t, "cpu", dev.Info().Backend)
	require.NoError(t, dev.Close())
	for name, says := range map[string]string{
		"cuda":        "tandem: no device: cuda: open: ",
		"cuda:0":      "cuda: open: ",
		"gpu:no such": "gpu: ",
	} {
		_, err := Open(t.Context(), name)
		require.ErrorIs(t, err, pass.ErrNoDevice, name)
		require.ErrorContains(t, err, says, name)
	}
	dev, err = Open(t.Context(), "cpu:3")
	require.NoError(t, err)
	require.Equal(t, 3, dev.Info().Threads)
	require.NoError(t, dev.Close())
	for _, name := range []string{"", "0", "no such card", "metal:0", "cuda:", "gpu:", "software:0", "cpu:0", "cpu:x", "cpu:"} {
		_, err := Open(t.Context(), name)
		require.ErrorIs(t, err, pass.ErrInvalid, name)
		require.ErrorContains(t, err, "want c", name)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Open(ended, "cpu")
	require.ErrorIs(t, err, context.Canceled)
}

// What is listed and can be opened is opened by its name.
func TestName(t *testing.T) {
	t.Parallel()
	require.Equal(t, "cuda:2", Name(tandem.Candidate{Backend: "cuda", Name: "A", GPU: &cuda.GPU{Ordinal: 2}}))
	require.Equal(t, "gpu:1", Name(tandem.Candidate{Backend: "software", Name: "B", Adapter: &gpu.Adapter{Index: 1}}))
	require.Empty(t, Name(tandem.Candidate{Backend: "gpu", Reason: "none"}))
	for _, c := range tandem.Devices(t.Context()) {
		if !c.Usable {
			continue
		}
		dev, err := Open(t.Context(), Name(c))
		require.NoError(t, err, Name(c))
		require.Equal(t, c.Name, dev.Info().Name)
		require.NoError(t, dev.Close())
	}
}

func TestReason(t *testing.T) {
	t.Parallel()
	joined := errors.Join(errors.New("one"), errors.New("two"))
	require.Equal(t, "one; two", Line(joined))
	require.Equal(t, "no device: one; two", Line(fmt.Errorf("no device:\n\t%w", joined)))
	require.Equal(t, "one; two", Reason(fmt.Errorf("tandem: no device: gpu: %w", joined), "gpu"))
	require.Equal(t, "cuda: one; two", Reason(fmt.Errorf("cuda: %w", joined), "cuda:0"))
}
