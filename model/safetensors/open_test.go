package safetensors_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/model/safetensors"
	"github.com/tandem-gpu/tandem/pass"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.safetensors")
	var b bytes.Buffer
	require.NoError(t, safetensors.Write(&b, []safetensors.Tensor{safetensors.Int64s("a", []int64{1}, 1)}, nil))
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	f, err := safetensors.Open(path)
	require.NoError(t, err)
	ids, err := f.Int64s("a")
	require.NoError(t, err)
	require.Equal(t, []int64{1}, ids)
	_, err = f.Raw("b")
	require.ErrorContains(t, err, "a.safetensors: no tensor")
	held, err := f.Raw("a")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	require.NoError(t, (*safetensors.File)(nil).Close())
	_, err = f.Tensor("a")
	require.ErrorIs(t, err, pass.ErrClosed)
	_, err = f.Int64s("a")
	require.ErrorIs(t, err, pass.ErrClosed)
	_, err = held.Int64s()
	require.ErrorIs(t, err, pass.ErrClosed)

	require.NoError(t, os.WriteFile(path, []byte("no"), 0o600))
	_, err = safetensors.Open(path)
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.ErrorContains(t, err, path)
	_, err = safetensors.Open(dir)
	require.ErrorContains(t, err, "directory")
	_, err = safetensors.Open(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestOpenIndex(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	for i, name := range []string{"a", "b", "c"} {
		var b bytes.Buffer
		require.NoError(t, safetensors.Write(&b, []safetensors.Tensor{
			safetensors.Int64s(name, []int64{int64(i)}, 1), safetensors.Int64s("extra", []int64{9}, 1),
		}, nil))
		put(fmt.Sprintf("model-%d.safetensors", i), b.String())
	}
	index := func(s string) string { return put("model.safetensors.index.json", s) }
	f, err := safetensors.Open(index(`{"metadata":{"total_size":24,"k":"v"},"weight_map":` +
		`{"a":"model-0.safetensors","b":"model-1.safetensors","c":"model-2.safetensors","extra":"model-1.safetensors"}}`))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c", "extra"}, f.Names())
	require.Equal(t, map[string]string{"total_size": "24", "k": "v"}, f.Metadata())
	for i, name := range []string{"a", "b", "c"} {
		got, err := f.Int64s(name)
		require.NoError(t, err)
		require.Equal(t, []int64{int64(i)}, got)
	}
	held, err := f.Raw("b")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	_, err = f.Raw("a")
	require.ErrorIs(t, err, pass.ErrClosed)
	_, err = held.Int64s()
	require.ErrorIs(t, err, pass.ErrClosed)

	outside := strings.ReplaceAll(filepath.Join(dir, "model-0.safetensors"), `\`, `\\`)
	for _, c := range []struct{ index, want string }{
		{`{"weight_map":{"a":"../model-0.safetensors"}}`, "not in the folder"},
		{`{"weight_map":{"a":"` + outside + `"}}`, "not in the folder"},
		{`{"weight_map":{"b":"model-0.safetensors"}}`, `no tensor "b" in model-0.safetensors`},
		{`{"weight_map":{"extras":"model-0.safetensors"}}`, `nearest is "extra"`},
		{`{"metadata":{}}`, "without weight_map"},
		{`{`, "index: "},
		{``, "index: "},
	} {
		_, err := safetensors.Open(index(c.index))
		require.ErrorIs(t, err, pass.ErrInvalid)
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, err, "model.safetensors.index.json")
	}
	_, err = safetensors.Open(index(`{"weight_map":{"a":"model-7.safetensors"}}`))
	require.ErrorIs(t, err, os.ErrNotExist)
	put("bad.safetensors", "bad")
	_, err = safetensors.Open(index(`{"weight_map":{"a":"model-0.safetensors","b":"bad.safetensors"}}`))
	require.ErrorIs(t, err, pass.ErrInvalid)
}
