package driver_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
)

func TestVulkanVariables(t *testing.T) {
	t.Parallel()
	there := filepath.Join(t.TempDir(), "icd.json")
	require.NoError(t, os.WriteFile(there, nil, 0o600))
	env := map[string]string{}
	getenv := func(name string) string { return env[name] }
	require.Equal(t, "VK_DRIVER_FILES and VK_ICD_FILENAMES are not set", driver.VulkanVariables(getenv))
	env["VK_DRIVER_FILES"] = there + string(filepath.ListSeparator) + there + "x"
	env["VK_ICD_FILENAMES"] = there
	require.Equal(t, "VK_DRIVER_FILES names "+there+", which is there; VK_DRIVER_FILES names "+there+"x, which cannot be read; "+
		"VK_ICD_FILENAMES names "+there+", which is there", driver.VulkanVariables(getenv))
}
