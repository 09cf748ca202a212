package gpu

import (
	"context"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/shaders"
)

var declaration = regexp.MustCompile(`@binding\((\d+)\) var<(uniform|storage, read|storage, read_write)>`)

// declared returns the bindings that a kernel's text declares. Numbers that it leaves
// out are read by nobody.
func declared(t *testing.T, text string) []driver.BindingKind {
	kinds := map[string]driver.BindingKind{"uniform": driver.UniformBlock, "storage, read": driver.StorageRead, "storage, read_write": driver.StorageReadWrite}
	var list []driver.BindingKind
	for _, m := range declaration.FindAllStringSubmatch(text, -1) {
		i, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		for len(list) <= i {
			list = append(list, driver.StorageRead)
		}
		list[i] = kinds[m[2]]
	}
	return list
}

// Every branch of every shader compiles.
func TestVariantsCompile(t *testing.T) {
	t.Parallel()
	p, a := testAdapter(t)
	drv, err := p.Open(context.Background(), a.Index, driver.DeviceConfig{})
	require.NoError(t, err)
	defer drv.Close()
	entry := regexp.MustCompile(`@compute @workgroup_size\(\d+\)\s*fn (\w+)`)
	for name, list := range shaders.Variants() {
		for _, v := range list {
			text, err := shaders.Expand(name, v)
			require.NoError(t, err)
			m := entry.FindStringSubmatch(text)
			require.NotNil(t, m, "%s %v", name, v)
			id, err := drv.CreatePipeline(driver.PipelineDesc{Label: name, Source: text, Entry: m[1], Bindings: declared(t, text)})
			require.NoError(t, err, "%s %v", name, v)
			require.NoError(t, drv.DestroyPipeline(id))
		}
	}
}
