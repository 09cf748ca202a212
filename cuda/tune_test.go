package cuda

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

// recordGemm records a product of some rows by 64 × 64, and returns the boundary that it
// led to.
func recordGemm(t *testing.T, dev pass.Device, rows int) Boundary {
	t.Helper()
	return recordGemmOf(t, dev, rows, 64, 64)
}

func recordGemmOf(t *testing.T, dev pass.Device, rows, n, k int) Boundary {
	t.Helper()
	ctx := context.Background()
	w, err := dev.Load(ctx, pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("w", make([]float32, n*k), n, k)}})
	require.NoError(t, err)
	s, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer s.Close()
	x, err := s.Alloc(pass.F32, rows*k)
	require.NoError(t, err)
	y, err := s.Alloc(pass.F32, rows*n)
	require.NoError(t, err)
	_, err = s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
		p.Do(pass.Gemm{A: x.View(), W: w, C: y.View(), Rows: rows})
	})
	require.NoError(t, err)
	all := dev.(Tunable).Boundaries()
	require.Len(t, all, 1)
	return all[0]
}

// A way that is forced on an open device is taken, until it no longer is.
func TestForce(t *testing.T) {
	t.Parallel()
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	before := recordGemm(t, dev, 32)
	require.Equal(t, before.Ways[0], before.Choice)
	require.Contains(t, before.Because, "by rule")
	other := before.Ways[1]

	dev.(Tunable).Force(before.Name, other)
	b := recordGemm(t, dev, 32)
	require.Equal(t, other, b.Choice)
	require.Equal(t, "forced", b.Because)

	dev.(Tunable).Force(before.Name, "no such way")
	require.Equal(t, before, recordGemm(t, dev, 32))
	dev.(Tunable).Force(before.Name, "")
	require.Equal(t, before, recordGemm(t, dev, 32))
}

// What a tune file pins for this device is taken, with the times as evidence; a file for
// another is refused.
func TestTuneFile(t *testing.T) {
	t.Parallel()
	dev := emulated(t, drivertest.Hopper(), Config{})
	b, key := recordGemm(t, dev, 32), dev.(Tunable).TuneKey()
	require.NoError(t, dev.Close())
	path := filepath.Join(t.TempDir(), "tune.json")
	put := func(k TuneKey) {
		var file bytes.Buffer
		f := TuneFile{Key: k, Pins: []TunePin{{Boundary: b.Name, Choice: b.Ways[1], Seconds: 2e-6, Rule: 3e-6, Error: 1e-7, Bound: 5e-6}}}
		require.NoError(t, WriteTuneFile(&file, f))
		require.NoError(t, os.WriteFile(path, file.Bytes(), 0o644))
		got, err := ReadTuneFile(&file)
		require.NoError(t, err)
		require.Equal(t, f.Pins, got.Pins)
	}
	put(key)
	dev = emulated(t, drivertest.Hopper(), Config{TuneFile: path})
	defer dev.Close()
	got := recordGemm(t, dev, 32)
	require.Equal(t, b.Ways[1], got.Choice)
	require.Equal(t, "measured here: 2 us, the rule's 3 us", got.Because)
	require.Contains(t, dev.Info().Variants, pass.Variant{Name: b.Name + ": " + b.Ways[1], Used: true, Reason: got.Because})

	key.SMs++
	put(key)
	_, err := tryEmulated(t, drivertest.Hopper(), Config{TuneFile: path})
	require.ErrorContains(t, err, "made for")
	require.ErrorIs(t, err, pass.ErrInvalid)
}

// recordShortAttention records attention of 32 queries, for which the table has a choice.
func recordShortAttention(t *testing.T, dev pass.Device) Boundary {
	t.Helper()
	ctx := context.Background()
	s, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	defer s.Close()
	const queries, keys, heads, dim = 32, 1500, 6, 64
	x, err := s.Alloc(pass.F32, keys*heads*dim)
	require.NoError(t, err)
	y, err := s.Alloc(pass.F32, queries*heads*dim)
	require.NoError(t, err)
	_, err = s.Record(ctx, pass.RecordOptions{Math: pass.Fast}, func(p pass.Pass) {
		p.Do(pass.Attention{Q: x.View(), K: x.View(), V: x.View(), O: y.View(), Queries: queries, Keys: keys, Heads: heads, HeadDim: dim})
	})
	require.NoError(t, err)
	all := dev.(Tunable).Boundaries()
	require.Len(t, all, 1)
	require.Equal(t, "attention fast 1×32×1500 6×64", all[0].Name)
	return all[0]
}

// What was measured on a card counts on those of its name and size, and on no others, such as
// slices of it. A GPU that there is has its own name, whatever its size is said to be.
func TestTableOfCards(t *testing.T) {
	t.Parallel()
	card := drivertest.Hopper()
	card.Name = "NVIDIA H200"
	slice, other := card, drivertest.Hopper()
	slice.SMs = 66
	for _, c := range []struct {
		gpu     drivertest.Profile
		choice  int
		because string
	}{
		{card, 1, "measured on a card of this kind: "},
		{slice, 0, "by rule, not measured here: "},
		{other, 0, "by rule, not measured here: "},
	} {
		dev := emulated(t, c.gpu, Config{})
		if name := dev.Info().Name; name != c.gpu.Name && c.gpu.SMs == card.SMs {
			require.True(t, onDevice(), name)
			require.NoError(t, dev.Close())
			continue
		}
		b := recordShortAttention(t, dev)
		require.NoError(t, dev.Close())
		require.Contains(t, b.Because, c.because)
		if c.choice == 0 {
			require.Equal(t, b.Ways[0], b.Choice)
		} else {
			require.NotEqual(t, b.Ways[0], b.Choice)
		}
	}
}
