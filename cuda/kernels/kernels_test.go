package kernels_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/cuda/kernels/internal/cubin"
	"github.com/tandem-gpu/tandem/cuda/kernels/internal/source"
)

func TestTable(t *testing.T) {
	_, good, err := source.Structs(kernels.Families())
	require.NoError(t, err)
	require.Len(t, good, len(kernels.Families()))
	name := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	for _, f := range kernels.Families() {
		for _, e := range f.Entries {
			require.Regexp(t, name, e.Name)
			require.True(t, e.Threads > 0 && e.Threads <= 1024 && e.Threads%32 == 0, "%s: %d threads", e.Name, e.Threads)
			require.True(t, e.Shared >= -1 && e.Shared <= 227<<10, "%s: %d bytes of shared memory", e.Name, e.Shared)
			require.True(t, e.Cluster >= 0 && e.Cluster <= 8, "%s: a cluster of %d", e.Name, e.Cluster)
			require.LessOrEqual(t, reflect.TypeOf(e.Args).Size(), uintptr(4096), e.Name)
			in := 0
			for _, tier := range kernels.Tiers() {
				if tier.Has(e) {
					in++
				}
			}
			require.NotZero(t, in, "%s is in no tier: from %d, exact %v", e.Name, e.From, e.Exact)
			require.True(t, e.Cluster == 0 || e.From >= 90, "%s has clusters, which are of 9.0", e.Name)
		}
	}
}

// What is generated and committed is of this table.
func TestGenerated(t *testing.T) {
	want, _, err := source.Structs(kernels.Families())
	require.NoError(t, err)
	got, err := os.ReadFile(source.ArgsFile)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "args.cuh is of an older table; run: go run ./cuda/kernels/internal/generate")
}

func TestTiers(t *testing.T) {
	for _, c := range []struct {
		device, told int
		want         string
	}{
		{75, 75, "sm_75"}, {80, 80, "sm_80"}, {86, 86, "sm_86"}, {87, 87, "sm_86"}, {89, 89, "sm_89"}, {90, 90, "sm_90a"},
		{100, 100, "sm_100"}, {103, 103, "sm_100"}, {110, 110, "ptx_80"}, {120, 120, "sm_120"}, {121, 121, "sm_120"},
		{130, 130, "ptx_80"}, {78, 78, "sm_75"},
		{90, 80, "ptx_80"}, {90, 75, "ptx_75"}, {86, 80, "sm_80"}, {90, 86, "ptx_80"},
	} {
		got, err := kernels.Best(c.device, c.told)
		require.NoError(t, err)
		require.Equal(t, c.want, got.Name, "device %d, told %d", c.device, c.told)
	}
	_, err := kernels.Best(70, 70)
	require.ErrorContains(t, err, "capability 7.0")
	_, err = kernels.TierNamed("sm_1")
	require.ErrorContains(t, err, `"sm_1", want one of [sm_75 `)

	has := func(e kernels.Entry) (names []string) {
		for _, tier := range kernels.Tiers() {
			if tier.Has(e) {
				names = append(names, tier.Name)
			}
		}
		return names
	}
	var waits []string
	for _, tier := range kernels.Tiers() {
		if tier.Waits() {
			waits = append(waits, tier.Name)
		}
	}
	require.Equal(t, []string{"sm_90a", "sm_100", "sm_120"}, waits)
	require.Len(t, has(kernels.Entry{}), 9)
	require.Equal(t, []string{"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120", "ptx_80"}, has(kernels.Entry{From: 80}))
	require.Equal(t, []string{"sm_90a", "sm_100", "sm_120"}, has(kernels.Entry{From: 90}))
	require.Equal(t, []string{"sm_90a"}, has(kernels.Entry{From: 90, Exact: true}))
}

func TestArchiveRefuses(t *testing.T) {
	tier, err := kernels.TierNamed("sm_75")
	require.NoError(t, err)
	_, err = kernels.OpenArchive(fstest.MapFS{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = kernels.OpenArchive(fstest.MapFS{"images/manifest.json": {Data: []byte("{")}})
	require.ErrorContains(t, err, "manifest")

	files := fstest.MapFS{"images/manifest.json": {Data: []byte(
		`{"families":[{"name":"move","images":{"sm_75":{"digest":"00"}}}]}`)}}
	a, err := kernels.OpenArchive(files)
	require.NoError(t, err)
	require.False(t, a.Empty())
	_, err = a.Image("move", tier)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = a.Image("none", tier)
	require.ErrorContains(t, err, "no image of none for sm_75")
	files["images/move.sm_75.gz"] = &fstest.MapFile{Data: []byte("this is not what gzip writes")}
	_, err = a.Image("move", tier)
	require.ErrorContains(t, err, "gzip")
	files["images/move.sm_75.gz"] = &fstest.MapFile{Data: []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x4b\x04\x00\x43\xbe\xb7\xe8\x01\x00\x00\x00")}
	_, err = a.Image("move", tier)
	require.ErrorContains(t, err, "want digest 00, given ca978112")

	image, err := kernels.Nominal().Image("move", tier)
	require.NoError(t, err)
	require.Equal(t, []byte{0}, image)
}

// The embedded images are of these sources, and hold what the table says.
func TestImages(t *testing.T) {
	a, err := kernels.Embedded()
	require.NoError(t, err)
	if a.Empty() {
		if os.Getenv("TANDEM_REQUIRE_IMAGES") != "" {
			t.Fatal("there are no images; make kernels compiles them")
		}
		t.Skip("SKIPPED: there are no images; make kernels compiles them")
	}
	require.Equal(t, source.Flags, a.Flags)
	var families []string
	for _, f := range kernels.Families() {
		if len(f.Entries) > 0 {
			families = append(families, f.Name)
		}
	}
	var recorded []string
	for _, r := range a.Families {
		recorded = append(recorded, r.Name)
	}
	require.Equal(t, families, recorded, "make kernels compiles them")
	for _, f := range kernels.Families() {
		t.Run(f.Name, func(t *testing.T) {
			i := slices.IndexFunc(a.Families, func(r kernels.FamilyRecord) bool { return r.Name == f.Name })
			if i < 0 {
				return
			}
			r := a.Families[i]
			sum, err := source.FamilyDigest(".", f)
			require.NoError(t, err)
			require.Equal(t, sum, r.Sources, "the images are of older sources; make kernels compiles them")
			images := 0
			for _, tier := range kernels.Tiers() {
				if entries := tier.Entries(f); len(entries) > 0 {
					checkImage(t, a, r, tier, entries)
					images++
				}
			}
			require.Len(t, r.Images, images)
		})
	}
}

// What a block may have, by architecture.
var sharedMemory = map[string]int{
	"sm_75": 64 << 10, "sm_80": 163 << 10, "sm_86": 99 << 10, "sm_89": 99 << 10, "sm_90a": 227 << 10, "sm_100": 227 << 10, "sm_120": 99 << 10,
}

func checkImage(t *testing.T, a *kernels.Archive, r kernels.FamilyRecord, tier kernels.Tier, entries []kernels.Entry) {
	image, err := a.Image(r.Name, tier)
	require.NoError(t, err)
	var found map[string]cubin.Kernel
	if tier.PTX {
		require.Zero(t, image[len(image)-1])
		found = cubin.ReadPTX(image)
	} else if found, err = cubin.Read(image); err != nil {
		t.Fatal(err)
	}
	require.Len(t, found, len(entries), "%s for %s", r.Name, tier.Name)
	for _, e := range entries {
		k, ok := found[e.Name]
		require.True(t, ok, "%s for %s", e.Name, tier.Name)
		require.Equal(t, int(reflect.TypeOf(e.Args).Size()), k.Args, e.Name)
		require.Equal(t, e.Threads, k.Threads, e.Name)
		i := slices.IndexFunc(r.Entries, func(r kernels.EntryRecord) bool { return r.Name == e.Name })
		require.GreaterOrEqual(t, i, 0, e.Name)
		record := r.Entries[i]
		require.Equal(t, []any{k.Args, e.Threads, e.Shared, e.Tile}, []any{record.Args, record.Threads, record.Shared, record.Tile}, e.Name)
		if tier.PTX {
			continue
		}
		c := record.Tiers[tier.Name]
		require.Equal(t, c.Registers, k.Registers, "%s for %s", e.Name, tier.Name)
		require.Equal(t, c.Static, k.Static, "%s for %s", e.Name, tier.Name)
		require.LessOrEqual(t, k.Registers*e.Threads, 65536, "%s for %s cannot be launched", e.Name, tier.Name)
		if most := sharedMemory[tier.Name]; e.Shared <= most {
			require.LessOrEqual(t, max(e.Shared, 0)+k.Static, most, "%s for %s", e.Name, tier.Name)
		}
		if c.Spills > 0 {
			t.Logf("%s for %s spills %d bytes", e.Name, tier.Name, c.Spills)
		}
	}
}

// Sums have one order. Atomic operations, which do not, are on whole numbers, and in the one
// wrapper that there is for them.
func TestNoFloatingAtomics(t *testing.T) {
	atomics := regexp.MustCompile(`\batomic[A-Z]\w*\(|\b(atom|red)\.[a-z]`)
	sources, err := filepath.Glob("*.cu*")
	require.NoError(t, err)
	found := 0
	for _, name := range sources {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if !atomics.MatchString(line) {
				continue
			}
			found++
			require.Equal(t, "hardware.cuh", name, line)
			require.Contains(t, line, "(uint32_t* p, uint32_t v)", name)
		}
	}
	require.Positive(t, found)
}
