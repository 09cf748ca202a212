package dawn

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

func TestColumnOf(t *testing.T) {
	t.Parallel()
	whole := append(functionNames[:], "wgpuGetInstanceFeatures")
	without := func(name string) []string {
		return slices.DeleteFunc(slices.Clone(whole), func(s string) bool { return s == name })
	}
	for _, c := range []struct {
		name    string
		exports []string
		message string // empty: taken
	}{
		{"2026", whole, ""},
		{"no functions", nil, "no function wgpuCreateInstance: not a WebGPU library"},
		{"another maker's", []string{"wgpuCreateInstance", "wgpuGetVersion"}, "not Dawn: it has no function wgpuDeviceTick"},
		{"early 2025", append(slices.Clone(whole), "wgpuInstanceRequestAdapter2"), "Dawn library of early 2025 (it has the function wgpuInstanceRequestAdapter2), which is not taken"},
		{"mid-2025", []string{"wgpuCreateInstance", "wgpuDeviceTick", "wgpuGetInstanceCapabilities"}, "Dawn library of mid-2025"},
		{"no marks", without("wgpuGetInstanceFeatures"), "unknown version"},
		{"a function is missing", without("wgpuQueueSubmit"), "of 2026 without wgpuQueueSubmit"},
	} {
		got, err := columnOf(func(name string) bool { return slices.Contains(c.exports, name) })
		if c.message == "" {
			require.NoError(t, err, c.name)
			require.Equal(t, "2026", got.name)
			require.EqualValues(t, 0x50034, got.features[subgroupMatrix])
			continue
		}
		require.ErrorIs(t, err, pass.ErrUnsupported, c.name)
		require.ErrorContains(t, err, c.message)
	}
	for f, name := range functionNames {
		require.NotEmpty(t, name, "function %d", f)
	}
}
