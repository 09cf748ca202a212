//go:build cgo && !js && (linux || darwin || windows)

package native

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// lookedFor says where the system's drivers were sought and what is there, for the error
// of an empty list.
func lookedFor() string {
	switch runtime.GOOS {
	case "darwin":
		return "no Metal device"
	case "windows":
		return "no Direct3D 12 and no Vulkan device; " + vulkanVariables(os.Getenv)
	}
	return lookedForVulkan(os.Getenv,
		[]string{"/lib", "/lib64", "/lib/*-linux-gnu", "/usr/lib", "/usr/lib64", "/usr/lib/*-linux-gnu", "/usr/local/lib"},
		[]string{"/etc/vulkan/icd.d", "/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/usr/local/etc/vulkan/icd.d"})
}

func lookedForVulkan(getenv func(string) string, libraries, manifests []string) string {
	libraries = append(libraries, filepath.SplitList(getenv("LD_LIBRARY_PATH"))...)
	loader := "the Vulkan loader libvulkan.so.1 was not found in " + strings.Join(libraries, ", ") + " (Debian: libvulkan1)"
	for _, dir := range libraries {
		if found, _ := filepath.Glob(filepath.Join(dir, "libvulkan.so.1")); len(found) > 0 {
			loader = "the Vulkan loader " + found[0] + " offers no device"
			break
		}
	}
	var found []string
	for _, dir := range manifests {
		list, _ := filepath.Glob(filepath.Join(dir, "*.json"))
		found = append(found, list...)
	}
	drivers := "no driver manifest in " + strings.Join(manifests, ", ") + " (Debian: mesa-vulkan-drivers, or the vendor's driver)"
	if found != nil {
		drivers = "driver manifests " + strings.Join(found, ", ")
	}
	return strings.Join([]string{loader, vulkanVariables(getenv), drivers}, "; ")
}

// vulkanVariables reports the environment variables that replace the loader's own search.
func vulkanVariables(getenv func(string) string) string {
	var parts []string
	for _, name := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
		value := getenv(name)
		if value == "" {
			continue
		}
		for _, path := range filepath.SplitList(value) {
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
