package device

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

func TestOpen(t *testing.T) {
	t.Setenv("TANDEM_CUDA_LIBRARY", "/no/such/library")
	dev, err := Open(t.Context(), "cpu")
	require.NoError(t, err)
	require.Equal(t, "cpu", dev.Info().Backend)
	require.NoError(t, dev.Close())
	for name, says := range map[string]string{
		"cuda":         "tandem: no device: cuda: open: ",
		"cuda:0":       "cuda: open: ",
		"no such card": "gpu: ",
	} {
		_, err := Open(t.Context(), name)
		require.ErrorIs(t, err, pass.ErrNoDevice, name)
		require.ErrorContains(t, err, says, name)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Open(ended, "cpu")
	require.ErrorIs(t, err, context.Canceled)
}

func TestReason(t *testing.T) {
	t.Parallel()
	joined := errors.Join(errors.New("one"), errors.New("two"))
	require.Equal(t, "one; two", Line(joined))
	require.Equal(t, "no device: one; two", Line(fmt.Errorf("no device:\n\t%w", joined)))
	require.Equal(t, "one; two", Reason(fmt.Errorf("tandem: no device: gpu: %w", joined), "gpu"))
	require.Equal(t, "cuda: one; two", Reason(fmt.Errorf("cuda: %w", joined), "cuda:0"))
}
