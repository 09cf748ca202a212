package gguf

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// TestWhisper reads Whisper tiny.en, whisper-tiny.en-q8_0.gguf in the folder that the
// environment variable TANDEM_MODELS names.
func TestWhisper(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("TANDEM_MODELS")
	if dir == "" {
		t.Skip("TANDEM_MODELS is not set: no real GGUF file is read")
	}
	f, err := Open(filepath.Join(dir, "whisper-tiny.en-q8_0.gguf"))
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, 3, f.Version())
	require.Len(t, f.Names(), 167)

	m := f.Metadata()
	require.Len(t, m, 38)
	for key, want := range map[string]int{
		"general.alignment": 32, "whisper.embedding_length": 384, "whisper.feed_forward_length": 1536, "whisper.vocab_size": 51864,
		"whisper.encoder.block_count": 4, "whisper.encoder.attention.head_count": 6, "whisper.encoder.mel_bins": 80,
		"whisper.decoder.context_length": 448, "whisper.token.no_timestamps": 50362, "tokenizer.ggml.eos_token_id": 50256,
	} {
		n, err := m.Int(key)
		require.NoError(t, err)
		require.Equal(t, want, n, key)
	}
	architecture, err := m.String("general.architecture")
	require.NoError(t, err)
	require.Equal(t, "whisper", architecture)
	eps, err := m.Float("whisper.attention.layer_norm_epsilon")
	require.NoError(t, err)
	require.Equal(t, float64(float32(1e-5)), eps)
	multilingual, err := m.Bool("whisper.multilingual")
	require.NoError(t, err)
	require.False(t, multilingual)
	begin, err := m.Ints("whisper.begin_suppress_tokens")
	require.NoError(t, err)
	require.Equal(t, []int{220, 50256}, begin)
	tokens, err := m.Strings("tokenizer.ggml.tokens")
	require.NoError(t, err)
	require.Len(t, tokens, 51864)
	require.Equal(t, []string{"!", `"`, "#"}, tokens[:3])
	merges, err := m.Strings("tokenizer.ggml.merges")
	require.NoError(t, err)
	require.Len(t, merges, 50000)
	require.Equal(t, "Ġt he", merges[6])

	types := map[pass.DType]int{}
	for _, name := range f.Names() {
		p, err := f.Tensor(name)
		require.NoError(t, err)
		types[p.Type]++
		values := make([]float32, min(p.Len(), 1024))
		require.NoError(t, p.Decode(values, 0))
		if p.Type != pass.F32 {
			continue
		}
		low := uint32(0)
		for _, v := range values {
			low |= math.Float32bits(v) & 0x1fff
		}
		require.Zero(t, low, "%s: rounded to the 10 bits of float16 at the source", name)
	}
	require.Equal(t, map[pass.DType]int{pass.F32: 98, pass.F16: 4, pass.Q8_0: 65}, types)

	// The positions of the encoder are sines, then cosines, of 192 frequencies.
	p, err := f.Tensor("model.encoder.embed_positions.weight")
	require.NoError(t, err)
	require.Equal(t, []int{1500, 384}, p.Shape)
	positions, err := p.Float32s()
	require.NoError(t, err)
	worst := 0.0
	for i, v := range positions {
		row, column := i/384, i%384
		sin, cos := math.Sincos(float64(row) * math.Pow(10000, -float64(column%192)/191))
		want := sin
		if column >= 192 {
			want = cos
		}
		worst = max(worst, math.Abs(want-float64(v)))
	}
	require.Less(t, worst, 4e-4)

	// The first and last block of a matrix, by their bytes.
	p, err = f.Tensor("model.decoder.embed_tokens.weight")
	require.NoError(t, err)
	require.Equal(t, []int{51864, 384}, p.Shape)
	block := make([]float32, pass.Q8Block)
	for from, want := range map[int]struct {
		scale  float32
		values []int8
	}{
		0:            {0x1.204p-12, []int8{126, -19, -60, -2, 4}},
		p.Len() - 32: {0x1.a6p-13, []int8{47, 81, -67, 4, -8}},
	} {
		require.NoError(t, p.Decode(block, from))
		for i, v := range want.values {
			require.Equal(t, want.scale*float32(v), block[i])
		}
	}
	p, err = f.Tensor("model.encoder.conv1.weight")
	require.NoError(t, err)
	require.Equal(t, []int{384, 80, 3}, p.Shape)
	_, err = f.Tensor("proj_out.weight")
	require.ErrorIs(t, err, pass.ErrInvalid)
	_, err = f.Tensor("encoder.conv1.weight")
	require.ErrorContains(t, err, `nearest is "model.encoder.conv1.weight"`)
}
