package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// VulkanVariables says what the environment variables that replace the Vulkan loader's
// search for drivers name, and whether it is there: for the error of an empty list.
func VulkanVariables(getenv func(string) string) string {
	var parts []string
	for _, name := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
		for _, path := range filepath.SplitList(getenv(name)) {
			state := "is there"
			if _, err := os.Stat(path); err != nil {
				state = "cannot be read"
			}
			parts = append(parts, fmt.Sprintf("%s names %s, which %s", name, path, state))
		}
	}
	if parts == nil {
		return "VK_DRIVER_FILES and VK_ICD_FILENAMES are not set"
	}
	return strings.Join(parts, "; ")
}
