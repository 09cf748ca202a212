package tune

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var key = Key{Device: "NVIDIA H200", Capability: 90, SMs: 132, Driver: "CUDA 13.0", Kernels: "abc"}

func file() File {
	return File{Format: 1, Key: key, Pins: []Pin{
		{Boundary: "gemm exact 64×64×64", Choice: "mma", Seconds: 2e-6, Rule: 3e-6, Error: 2e-7, Bound: 5e-6},
		{Boundary: "attention fast", Choice: "wgmma", Seconds: 2e-6, Rule: 3e-6, Error: 2e-4, Bound: 1e-3},
	}}
}

func TestFile(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	given := file()
	require.NoError(t, Write(&b, given))
	require.Equal(t, file(), given, "what was written is the caller's")
	given.Pins[0].Rule = math.Inf(1)
	require.ErrorContains(t, Write(io.Discard, given), "tune: ")
	path := filepath.Join(t.TempDir(), "tune.json")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	got, err := ReadFile(path, key)
	require.NoError(t, err)
	require.ElementsMatch(t, file().Pins, got.Pins)

	for _, other := range []func(*Key){
		func(k *Key) { k.Device = "NVIDIA H100" }, func(k *Key) { k.Capability = 89 }, func(k *Key) { k.SMs = 66 },
		func(k *Key) { k.Driver = "CUDA 12.9" }, func(k *Key) { k.Kernels = "abd" },
	} {
		k := key
		other(&k)
		_, err := ReadFile(path, k)
		require.ErrorContains(t, err, "made for", k)
	}
	_, err = ReadFile(path+"x", key)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestOneWrongRowRefusesAll(t *testing.T) {
	t.Parallel()
	for want, wrong := range map[string]func(*File){
		"format":              func(f *File) { f.Format = 2 },
		"key":                 func(f *File) { f.Key.Kernels = "" },
		"boundary":            func(f *File) { f.Pins[1].Boundary = "" },
		"a choice":            func(f *File) { f.Pins[1].Choice = "" },
		"twice":               func(f *File) { f.Pins[1].Boundary = f.Pins[0].Boundary },
		"times":               func(f *File) { f.Pins[0].Seconds = 0 },
		"times above":         func(f *File) { f.Pins[0].Rule = -1 },
		"within":              func(f *File) { f.Pins[0].Error = 1 },
		"error within its":    func(f *File) { f.Pins[0].Bound = 0 },
		"an error within its": func(f *File) { f.Pins[1].Error = -1 },
	} {
		f := file()
		wrong(&f)
		require.ErrorContains(t, f.check(), want)
	}
	for _, text := range []string{"", "{", "[]", `{"format":1,"more":2}`, strings.Repeat(" ", mostBytes+1)} {
		_, err := Read(strings.NewReader(text))
		require.Error(t, err)
	}
	var b bytes.Buffer
	require.NoError(t, Write(&b, file()))
	_, err := Read(strings.NewReader(b.String() + "1"))
	require.ErrorContains(t, err, "behind the end")
}

func TestTable(t *testing.T) {
	t.Parallel()
	_, err := Table(key)
	require.NoError(t, err)
	pins, err := Table(Key{Device: "none"})
	require.NoError(t, err)
	require.Empty(t, pins)

	var files []File
	require.NoError(t, json.Unmarshal(table, &files))
	require.NotEmpty(t, files)
	for _, f := range files {
		pins, err := Table(f.Key)
		require.NoError(t, err)
		require.Equal(t, f.Pins, pins, "one file for each kind of card")
		seen := map[string]bool{}
		for _, p := range pins {
			require.False(t, seen[p.Boundary], p.Boundary)
			seen[p.Boundary] = true
			require.Less(t, p.Seconds, p.Rule, "%v: what is pinned is quicker than the rule's choice", p)
			require.LessOrEqual(t, p.Error, p.Bound, "%v", p)
		}
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	require.NoError(f, Write(&b, file()))
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Read(bytes.NewReader(data))
		if err == nil {
			require.NoError(t, Write(&bytes.Buffer{}, got))
		}
	})
}
