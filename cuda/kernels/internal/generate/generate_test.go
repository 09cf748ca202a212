package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/kernels"
)

const said = `ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_90a'
ptxas info    : Function properties for one
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 28 registers, used 3 barriers, 1024 bytes smem, 368 bytes cmem[0]
ptxas info    : Compile time = 13.041 ms
ptxas info    : Compiling entry function 'two' for 'sm_90a'
ptxas info    : Function properties for two
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers
`

func TestResources(t *testing.T) {
	tier := kernels.Tier{Name: "sm_90a"}
	got, err := resources(said, tier, []kernels.Entry{{Name: "one"}, {Name: "two"}})
	require.NoError(t, err)
	require.Equal(t, map[string]kernels.Compiled{
		"one": {Registers: 28, Stack: 16, Spills: 20, Static: 1024}, "two": {Registers: 40},
	}, got)
	_, err = resources(said, tier, []kernels.Entry{{Name: "three"}})
	require.ErrorContains(t, err, "nothing of three")
	require.Empty(t, notes(said))
	require.Equal(t, "ptxas info    : (C7520) Potential Performance Loss: …\n", notes(said+"ptxas info    : (C7520) Potential Performance Loss: …\n"))
}

// A compiler that is a script: only what changed is compiled, and what fails keeps what it
// had.
func TestImages(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	calls := filepath.Join(dir, "calls")
	nvcc := write("nvcc", `#!/bin/sh
if [ "$1" = --version ]; then echo "release 13.0, V13.0.88"; exit; fi
echo call >>`+calls+`
while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done
case "$PWD" in *sm_89) grep -q broken "`+dir+`/f.cu";; *) false;; esac && { echo "error: broken" >&2; exit 1; }
cat "$1" "`+dir+`/f.cu" >"$out"
echo "ptxas info    : Compiling entry function 'f_one' for 'sm'
ptxas info    : Used 8 registers"
`, 0o755)
	count := func() int {
		b, _ := os.ReadFile(calls)
		os.Remove(calls)
		return strings.Count(string(b), "call")
	}
	type args struct{ N uint32 }
	families := []kernels.Family{
		{Name: "f", Entries: []kernels.Entry{{Name: "f_one", Call: "f", Args: args{}, Threads: 32}}},
		{Name: "empty"},
	}
	o := options{kernels: dir, build: filepath.Join(dir, "build"), images: filepath.Join(dir, "images"), nvcc: nvcc, jobs: 2}
	write("f.cu", "one", 0o644)
	require.NoError(t, images(o, families))
	require.Equal(t, 9, count())
	first, err := os.ReadFile(filepath.Join(o.images, manifestName))
	require.NoError(t, err)
	require.NoError(t, images(o, families))
	require.Zero(t, count(), "nothing changed")

	write("f.cu", "broken", 0o644)
	require.ErrorContains(t, images(o, families), "error: broken")
	require.NotZero(t, count())
	again, err := os.ReadFile(filepath.Join(o.images, manifestName))
	require.NoError(t, err)
	require.Equal(t, string(first), string(again))
	archive, err := kernels.OpenArchive(os.DirFS(dir))
	require.NoError(t, err)
	_, err = archive.Image("f", kernels.Tiers()[0])
	require.NoError(t, err)

	write("f.cu", "two", 0o644)
	stale := filepath.Join(o.images, "gone.sm_75.gz")
	require.NoError(t, os.WriteFile(stale, nil, 0o644))
	other := o
	other.images = filepath.Join(dir, "others")
	require.NoError(t, images(other, families))
	require.ErrorContains(t, check(other.images, o.images), "different: [f for ptx_75 f for ptx_80 ")
	require.NoError(t, images(o, families))
	require.NoError(t, check(other.images, o.images))
	require.NoFileExists(t, stale)

	archive, err = kernels.OpenArchive(os.DirFS(dir))
	require.NoError(t, err)
	for _, tier := range kernels.Tiers() {
		image, err := archive.Image("f", tier)
		require.NoError(t, err)
		require.Contains(t, string(image), "two")
	}
	o.nvcc = filepath.Join(dir, "none")
	require.ErrorContains(t, images(o, families), "make nvcc installs it")
}

// A family that cannot be compiled is left out of the library, and named.
func TestEmulated(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.MkdirAll(host, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(host, "a.cc"), nil, 0o644))
	require.NoError(t, os.MkdirAll("k", 0o755))
	require.NoError(t, os.WriteFile("k/good.cu", []byte("good"), 0o644))
	require.NoError(t, os.WriteFile("k/bad.cu", []byte("bad"), 0o644))
	cxx := filepath.Join(dir, "cxx")
	require.NoError(t, os.WriteFile(cxx, []byte(`#!/bin/sh
all="$*"
while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done
case "$all" in *bad_entries.cc) echo "error: bad" >&2; exit 1;; esac
echo "$all" >>"$out"
`), 0o755))
	type args struct{ N uint32 }
	entry := func(name string, from int) []kernels.Entry {
		return []kernels.Entry{{Name: name, Call: name, Args: args{}, Threads: 32, From: from}}
	}
	families := []kernels.Family{{Name: "good", Entries: entry("good_one", 0)}, {Name: "bad", Entries: entry("bad_one", 0)}, {Name: "later", Entries: entry("later_one", 90)}}
	o := options{kernels: "k", build: "b", emulated: "lib.so", arch: 75, cxx: cxx, jobs: 1}
	require.ErrorContains(t, emulated(o, families), "error: bad")
	made, err := os.ReadFile("lib.so")
	require.NoError(t, err)
	require.Contains(t, string(made), "good.o")
	require.NotContains(t, string(made), "bad.o")
	require.NotContains(t, string(made), "later.o", "capability 7.5 has no kernels of 9.0")
	before, err := os.ReadFile("b/emulated_75/good.o")
	require.NoError(t, err)
	require.Error(t, emulated(o, families))
	after, err := os.ReadFile("b/emulated_75/good.o")
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "what has not changed is not compiled again")
}
