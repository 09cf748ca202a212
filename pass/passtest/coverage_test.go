package passtest

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// TestCoverageTable writes the table of the file of TANDEM_COVERAGE to the file of
// TANDEM_COVERAGE_TABLE.
func TestCoverageTable(t *testing.T) {
	from, to := os.Getenv("TANDEM_COVERAGE"), os.Getenv("TANDEM_COVERAGE_TABLE")
	if from == "" || to == "" {
		t.Skip("TANDEM_COVERAGE and TANDEM_COVERAGE_TABLE are not both set")
	}
	f, err := os.Create(to)
	require.NoError(t, err)
	require.NoError(t, WriteCoverage(f, from))
	require.NoError(t, f.Close())
}

func TestCoverageIsMerged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "coverage.json")
	cpu := newCovered(pass.Info{Backend: "cpu", API: "go", Name: "a processor", Kind: "cpu"}, []pass.Math{pass.Exact})
	cpu.count("gemm", true)
	cpu.count("gemm", true)
	cpu.count("map", true)
	gpu := newCovered(pass.Info{Backend: "gpu", API: "vulkan", Provider: "/usr/lib/libdriver.so 1.2", Name: "llvmpipe", Kind: "software"}, []pass.Math{pass.Exact, pass.Fast})
	gpu.count("gemm", true)
	gpu.count("gemm", false)
	var together sync.WaitGroup
	for _, c := range []*covered{cpu, gpu} {
		together.Go(func() { require.NoError(t, c.save(path)) })
	}
	together.Wait()
	again := newCovered(pass.Info{Backend: "cpu", API: "go", Name: "a processor", Kind: "cpu"}, []pass.Math{pass.Exact})
	again.count("map", false)
	require.NoError(t, again.save(path))

	var table strings.Builder
	require.NoError(t, WriteCoverage(&table, path))
	lines := strings.Split(table.String(), "\n")
	require.Equal(t, "| op | cpu, go | gpu, vulkan, libdriver.so |", lines[0])
	require.Contains(t, lines, "| gemm | 2 | **1 of 2** |")
	require.Contains(t, lines, "| map | **0 of 1** | – |")
	require.Contains(t, lines, "| gpu, vulkan, libdriver.so | llvmpipe | software | exact, fast |")
	for _, op := range cases.Ops() {
		require.Contains(t, table.String(), "\n| "+op+" |")
	}

	require.NoError(t, os.WriteFile(path, []byte(`[{"backend": "cpu"}]`), 0o666))
	require.ErrorIs(t, WriteCoverage(&table, path), pass.ErrInvalid)
	require.NoError(t, os.WriteFile(path, []byte(`{`), 0o666))
	require.ErrorIs(t, cpu.save(path), pass.ErrInvalid)
	require.ErrorIs(t, WriteCoverage(&table, path+"none"), os.ErrNotExist)
}

// The suite counts what it ran, and not what -run left out.
func TestSuiteCountsItsCases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "coverage.json")
	t.Setenv("TANDEM_COVERAGE", path)
	s := newSuite(Config{Math: []pass.Math{pass.Exact}}, func(testing.TB) pass.Device { return newToy("") })
	t.Run("cases", func(t *testing.T) {
		s.runCases(t, func(e cases.Entry) bool { return strings.HasPrefix(e.Name, "scale/") })
	})
	all, err := readCoverage(path)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "toy", all[0].Backend)
	require.Len(t, all[0].Ops, 1)
	require.Greater(t, all[0].Ops["scale"].Cases, 5)
	require.Equal(t, all[0].Ops["scale"].Cases, all[0].Ops["scale"].Passed)
}
