package source_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/cuda/kernels/internal/source"
)

type plain struct {
	X    kernels.View
	P    kernels.F16
	N    [3]uint32
	Each float32
}
type mapped struct {
	Map kernels.TensorMap
	N   [15]uint32
	_   uint32
}
type lost struct {
	N uint32
	P kernels.F32
}
type short struct {
	P kernels.F32
	N uint32
}
type strange struct{ S string }

func family(name string, entries ...kernels.Entry) kernels.Family {
	return kernels.Family{Name: name, Entries: entries}
}

func TestStructs(t *testing.T) {
	text, good, err := source.Structs([]kernels.Family{
		family("a", kernels.Entry{Name: "a_one", Args: plain{}}),
		family("b", kernels.Entry{Name: "b_one", Args: mapped{}}),
	})
	require.NoError(t, err)
	require.Len(t, good, 2)
	for _, want := range []string{
		"struct plain {\n\tkernels::View X;\n\thalf* P;\n\tuint32_t N[3];\n\tfloat Each;\n};\nstatic_assert(sizeof(plain) == 48, \"as in Go\");\n",
		"static_assert(offsetof(plain, N) == 32, \"as in Go\");\n",
		"struct mapped {\n\tkernels::TensorMap Map;\n\tuint32_t N[15];\n\tuint32_t filler2;\n};\n",
		"struct View {\n\tfloat* P;\n\tint64_t Row;\n\tint64_t Batch;\n};\n",
	} {
		require.Contains(t, string(text), want)
	}
}

// A family with a mistake is left out, the others are not.
func TestStructsRefuses(t *testing.T) {
	for _, c := range []struct {
		args any
		text string
	}{
		{lost{}, "kernel b_one: source_test.lost: 4 bytes are lost before field P"},
		{short{}, "source_test.short: 4 bytes are lost at the end"},
		{strange{}, "field S: kernels take no string"},
		{uint32(1), "parameters are uint32, want a struct"},
		{nil, "want a struct"},
	} {
		text, good, err := source.Structs([]kernels.Family{
			family("a", kernels.Entry{Name: "a_one", Args: plain{}}),
			family("b", kernels.Entry{Name: "b_one", Args: c.args}),
		})
		require.ErrorContains(t, err, c.text)
		require.Len(t, good, 1)
		require.Contains(t, string(text), "struct plain {")
	}
	_, good, err := source.Structs([]kernels.Family{
		family("a", kernels.Entry{Name: "one", Args: plain{}}), family("b", kernels.Entry{Name: "one", Args: plain{}}),
	})
	require.ErrorContains(t, err, "kernel one is in the table twice")
	require.Len(t, good, 1)
}

func TestFamilyDigest(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write("f.cu", "#include \"a.cuh\"\n#include \"args.cuh\"\n#include <math.h>\n")
	write("a.cuh", "  #include \"b.cuh\"\n#include \"a.cuh\"\n#include \"elsewhere.h\"\n")
	write("b.cuh", "int b;")
	write("args.cuh", "struct Of { int another; };")
	f := family("f", kernels.Entry{Name: "f_one", Call: "f::one", Args: plain{}, Threads: 64})
	sum := func() string {
		s, err := source.FamilyDigest(dir, f)
		require.NoError(t, err)
		return s
	}
	files, err := source.Files(filepath.Join(dir, "f.cu"))
	require.NoError(t, err)
	require.Len(t, files, 4)
	first := sum()
	write("args.cuh", "struct Of { int other; };")
	require.Equal(t, first, sum(), "structs of other families do not count")
	write("b.cuh", "int c;")
	second := sum()
	require.NotEqual(t, first, second)
	f.Entries[0].Args = mapped{}
	third := sum()
	require.NotEqual(t, second, third, "its own do")
	f.Entries[0].Resident = 2
	require.NotEqual(t, third, sum(), "so does how a kernel is compiled")
	f.Name = "none"
	_, err = source.FamilyDigest(dir, f)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestWrappers(t *testing.T) {
	f := family("f", kernels.Entry{Name: "f_one", Call: "f::one<2>", Args: plain{}, Threads: 64, Resident: 3, Cluster: 4})
	require.Equal(t, `#include "f.cu"

extern "C" __global__ __launch_bounds__(64, 3) __cluster_dims__(4, 1, 1) void f_one(const __grid_constant__ kernels::plain a) {
	wait_dependency();
	release_dependents();
	f::one<2>(a);
}
`, source.Wrappers(f, f.Entries))
	late := family("f", kernels.Entry{Name: "f_late", Call: "f::late", Args: plain{}, Threads: 64, Waits: true})
	require.NotContains(t, source.Wrappers(late, late.Entries), "wait_dependency")
	require.Contains(t, source.Wrappers(late, late.Entries), "release_dependents")
	require.Contains(t, source.Emulated(f, f.Entries), `"f_one", run_f_one, sizeof(kernels::plain), 64, 4};`)
}
