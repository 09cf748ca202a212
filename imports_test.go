package tandem_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Which of the module's trees each tree may import, beside itself. What a browser lacks must
// not get into pass and model, and backends know nothing of each other.
var mayImport = map[string][]string{
	"shaders":  nil,
	"pass":     nil,
	"model":    {"pass"},
	"gpu":      {"pass", "shaders"},
	"cuda":     {"pass"},
	".":        {"pass", "gpu", "cuda"},
	"examples": {".", "pass", "gpu", "cuda", "model", "shaders"},
}

// What is bound to one place: modules, and packages of ours.
var onlyUnder = map[string][]string{
	"github.com/cogentcore/webgpu": {"gpu/internal"},
	"github.com/ebitengine/purego": {"gpu/internal", "cuda/internal"},
	"github.com/stretchr/testify":  nil, // tests, and packages named for them
	module + "/pass/backend":       {"pass", "gpu", "cuda"},
}

const module = "github.com/tandem-gpu/tandem"

func TestImports(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() && (name == "build" || d.Name() == "testdata" || len(d.Name()) > 1 && d.Name()[0] == '.') {
			return filepath.SkipDir
		}
		if d.IsDir() && strings.HasSuffix(name, "test") {
			return filepath.SkipDir // what tests are made of
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.FromSlash(name), nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		tree := treeOf(dir)
		seen[tree] = true
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			if imported == module || within(imported, module) {
				to := treeOf(strings.TrimPrefix(strings.TrimPrefix(imported, module), "/"))
				if to != tree {
					require.Contains(t, mayImport[tree], to, "%s imports %s", name, imported)
				}
			}
			for what, places := range onlyUnder {
				if !within(imported, what) && imported != what {
					continue
				}
				ok := false
				for _, place := range places {
					ok = ok || dir == place || within(dir, place)
				}
				require.True(t, ok, "%s imports %s", name, imported)
			}
		}
		return nil
	})
	require.NoError(t, err)
	for tree := range mayImport {
		require.True(t, seen[tree], "no files in %s", tree)
	}
	for tree := range seen {
		require.Contains(t, mayImport, tree)
	}
}

func treeOf(dir string) string {
	first, _, _ := strings.Cut(dir, "/")
	if first == "" {
		return "."
	}
	return first
}

func within(name, parent string) bool { return strings.HasPrefix(name, parent+"/") }
