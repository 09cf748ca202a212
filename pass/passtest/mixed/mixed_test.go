package mixed_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
	"github.com/tandem-gpu/tandem/pass/passtest/mixed"
)

// There are as many ops as promised, and weights are unloaded once.
func TestRecord(t *testing.T) {
	t.Parallel()
	dev, err := cpu.Open(cpu.Config{})
	require.NoError(t, err)
	defer dev.Close()
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	w, err := mixed.Load(t.Context(), dev)
	require.NoError(t, err)
	rec, err := w.Record(t.Context(), ses, pass.RecordOptions{Label: "mixed"}, 5)
	require.NoError(t, err)
	var dump strings.Builder
	require.NoError(t, rec.Dump(&dump))
	require.Contains(t, dump.String(), "exact, 1000 ops, 1 inputs, 1 outputs")
	require.NoError(t, rec.Close())
	require.NoError(t, w.Unload(dev))
	require.ErrorIs(t, w.Unload(dev), pass.ErrClosed)
}

// BenchmarkRecord is what recording costs where compiling is little.
func BenchmarkRecord(b *testing.B) {
	dev, err := cpu.Open(cpu.Config{})
	require.NoError(b, err)
	defer dev.Close()
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(b, err)
	w, err := mixed.Load(b.Context(), dev)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		rec, err := w.Record(b.Context(), ses, pass.RecordOptions{}, 32)
		require.NoError(b, err)
		require.NoError(b, rec.Close())
	}
}
