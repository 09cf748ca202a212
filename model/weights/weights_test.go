package weights

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/safetensors"
	"github.com/tandem-gpu/tandem/pass"
)

var nan, inf = float32(math.NaN()), float32(math.Inf(-1))

// memory is a source of tensors that are in memory.
type memory map[string]pass.Tensor

func (m memory) Names() []string { return slices.Sorted(maps.Keys(m)) }

func (m memory) Tensor(name string) (pass.Tensor, error) {
	if t, ok := m[name]; ok {
		return t, nil
	}
	return pass.Tensor{}, errors.Join(errors.New("memory: no "+name), pass.ErrInvalid)
}

func (m memory) add(name string, values []float32, shape ...int) memory {
	m[name] = pass.Float32s(name, values, shape...)
	return m
}

// count makes values from, from+1, ….
func count(from, n int) []float32 {
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(from + i)
	}
	return values
}

func TestTensor(t *testing.T) {
	t.Parallel()
	src := memory{}.add("m", count(0, 6), 2, 3, 1).add("v", []float32{1, nan}, 2).add("s", []float32{7})
	src["u"] = pass.Tensor{Name: "u", Type: pass.U32, Shape: []int{1}, Data: bytes.NewReader(make([]byte, 4))}
	src["q"] = pass.Tensor{Name: "q", Type: pass.Q8_0, Shape: []int{1, 32, 1}, Data: bytes.NewReader(make([]byte, 34))}
	for _, shape := range [][]int{{2, 3}, {2, 3, 1}, {2, 1, 1, 3}} {
		m, err := Tensor(src, "m", shape...)
		require.NoError(t, err)
		require.Equal(t, shape, m.Shape)
		values, err := m.Float32s()
		require.NoError(t, err)
		require.Equal(t, count(0, 6), values)
	}
	s, err := Values(src, "s")
	require.NoError(t, err)
	require.Equal(t, []float32{7}, s)
	_, err = Tensor(src, "u", 1)
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, `tensor "u": type U32`)
	q, err := Tensor(src, "q", 1, 32)
	require.NoError(t, err, "blocks lie along the axis that counts")
	require.EqualValues(t, 34, q.Bytes())

	for _, c := range []struct {
		name  string
		shape []int
		says  string
	}{
		{"m", []int{3, 2}, `weights: tensor "m": want shape [3 2], given [2 3 1]`},
		{"m", []int{6}, `want shape [6], given [2 3 1]`},
		{"x", []int{2}, `weights: tensor "x": want shape [2]: memory: no x`},
		{"v", []int{2}, `tensor "v": want finite values, given NaN or infinity as element 1`},
	} {
		_, err := Values(src, c.name, c.shape...)
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, c.says)
	}
}

// Whatever piece of a tensor is read, a number within it that is not finite is found, and
// no other.
func TestFinite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		t    pass.DType
		unit int
		bad  []byte
	}{
		{pass.F32, 4, []byte{0, 0, 0x80, 0x7f}}, {pass.F32, 4, []byte{1, 0, 0x80, 0xff}},
		{pass.F16, 2, []byte{0, 0x7c}}, {pass.F16, 2, []byte{3, 0xfe}},
		{pass.BF16, 2, []byte{0x80, 0x7f}}, {pass.BF16, 2, []byte{0x81, 0xff}},
		{pass.Q8_0, 34, []byte{0, 0x7c}},
	} {
		units := max(3, 24/c.unit)
		raw := bytes.Repeat([]byte{0xff, 0x7b}, units*c.unit/2) // the largest of F16
		if c.t != pass.F16 {
			raw = bytes.Repeat([]byte{0x7f}, units*c.unit)
			for i := range units {
				copy(raw[i*c.unit:], []byte{0x7f, 0x7b, 0x7f, 0x7e}[:min(c.unit, 4)])
				if c.t == pass.F32 {
					copy(raw[i*c.unit:], []byte{0x80, 0x7f}) // infinity only to who looks at the wrong half
				}
			}
		}
		for at := range len(raw) {
			for n := range len(raw) - at + 2 {
				f := &finite{bytes.NewReader(raw), c.t, "t"}
				b := make([]byte, n)
				k, err := f.ReadAt(b, int64(at))
				require.Equal(t, min(n, len(raw)-at), k)
				require.True(t, err == nil || err == io.EOF && k < n)
				require.Equal(t, raw[at:at+k], b[:k])

				with := slices.Clone(raw)
				bad := units / 2
				copy(with[bad*c.unit:], c.bad)
				f.data = bytes.NewReader(with)
				_, err = f.ReadAt(b, int64(at))
				if touches := n > 0 && at < (bad+1)*c.unit && at+n > bad*c.unit; touches {
					require.ErrorIs(t, err, pass.ErrInvalid, "%v: %d bytes at %d", c.t, n, at)
					require.ErrorContains(t, err, `tensor "t"`)
					require.ErrorContains(t, err, fmt.Sprintf(" %d: ", bad))
				} else {
					require.NotErrorIs(t, err, pass.ErrInvalid, "%v: %d bytes at %d", c.t, n, at)
				}
			}
		}
	}
}

func TestViews(t *testing.T) {
	t.Parallel()
	src := memory{}.add("enc.blocks.0.ffn.fc1.weight", count(0, 2), 2).add("enc.blocks.1.ffn.fc1.weight", count(5, 2), 2)
	names := strings.NewReplacer("model.encoder.layers.", "enc.blocks.", ".fc1", ".ffn.fc1")
	r := Renamed(src, names.Replace)
	layer := Under(r, "model.encoder.layers.1.")
	v, err := Values(layer, "fc1.weight", 2)
	require.NoError(t, err)
	require.Equal(t, count(5, 2), v)
	require.Equal(t, src.Names(), r.Names())
	require.Equal(t, []string{"0.ffn.fc1.weight", "1.ffn.fc1.weight"}, Under(src, "enc.blocks.").Names())

	require.True(t, Has(src, "enc.blocks.0.ffn.fc1.weight"))
	require.True(t, Has(r, "model.encoder.layers.0.fc1.weight"))
	require.True(t, Has(layer, "fc1.weight"))
	require.False(t, Has(layer, "fc1.bias"))
	require.False(t, Has(src, "model.encoder.layers.0.fc1.weight"))
	_, err = Values(layer, "fc1.bias", 2)
	require.ErrorContains(t, err, `weights: tensor "fc1.bias": want shape [2]: memory: no enc.blocks.1.ffn.fc1.bias`)
}

// The layout of a file is known by a prefix of its names; the first case that holds counts.
func TestRenamedIf(t *testing.T) {
	t.Parallel()
	src := memory{}.add("enc.a", count(0, 1), 1).add("model.a", count(5, 1), 1)
	under := func(prefix string) Layout {
		return Layout{prefix, func(name string) string { return prefix + name }}
	}
	for _, c := range []struct {
		cases []Layout
		name  string
		want  []float32
	}{
		{[]Layout{under("dec."), under("enc."), under("model.")}, "a", count(0, 1)},
		{[]Layout{under("model."), under("enc.")}, "a", count(5, 1)},
		{[]Layout{under("dec.")}, "enc.a", count(0, 1)},
		{nil, "model.a", count(5, 1)},
	} {
		v, err := Values(RenamedIf(src, c.cases...), c.name, 1)
		require.NoError(t, err)
		require.Equal(t, c.want, v)
	}
}

// The tensors of a sharded model, of their nearest names, and through other names.
func TestShardedSafetensors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shard := func(file string, tensors ...pass.Tensor) {
		var all []safetensors.Tensor
		for _, p := range tensors {
			all = append(all, safetensors.Of(p))
		}
		var b bytes.Buffer
		require.NoError(t, safetensors.Write(&b, all, nil))
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), b.Bytes(), 0o600))
	}
	shard("1.safetensors", pass.Float32s("a.weight", count(0, 6), 3, 2))
	shard("2.safetensors", pass.Float32s("a.bias", count(9, 3), 3), pass.Float32s("unlisted", count(0, 1), 1))
	index, err := json.Marshal(map[string]any{"weight_map": map[string]string{"a.weight": "1.safetensors", "a.bias": "2.safetensors"}})
	require.NoError(t, err)
	path := filepath.Join(dir, "model.safetensors.index.json")
	require.NoError(t, os.WriteFile(path, index, fs.FileMode(0o600)))
	f, err := safetensors.Open(path)
	require.NoError(t, err)
	defer f.Close()

	require.Equal(t, []string{"a.bias", "a.weight"}, f.Names())
	require.False(t, Has(f, "unlisted"))
	w, err := Linear(Renamed(f, strings.NewReplacer("fc", "a").Replace), 2, Rows("fc", 3, true))
	require.NoError(t, err)
	require.Equal(t, count(9, 3), w.Bias)
	shape, err := w.Shape()
	require.NoError(t, err)
	require.Equal(t, pass.LinearShape{N: 3, K: 2, Type: pass.F32, Bias: true}, shape)
	_, err = Tensor(f, "a.weigth", 3, 2)
	require.ErrorContains(t, err, `nearest is "a.weight"`)
	require.NoError(t, f.Close())
	_, err = Tensor(f, "a.weight", 3, 2)
	require.ErrorIs(t, err, pass.ErrClosed)
}
