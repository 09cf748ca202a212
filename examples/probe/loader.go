package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Search says where Vulkan's loader and its drivers were looked for. It is empty on
// systems whose API is part of the system.
type Search struct {
	Loader    []Place  `json:"loader"`    // files that the loader may be, in the order of the search
	Manifests []Place  `json:"manifests"` // files that name a driver each; folders without one are listed too
	Loaded    []string `json:"loaded"`    // libraries of Vulkan that are in this process now; Linux only
}

// A Place is a file or folder that was looked at.
type Place struct {
	Path   string `json:"path"`
	Found  bool   `json:"found"`
	Detail string `json:"detail,omitempty"` // what a manifest says: library and version of Vulkan
}

// A Module is a kernel driver of a GPU.
type Module struct {
	Name    string `json:"name"`
	Version string `json:"version"` // its own, or that of the kernel which it is part of
}

// loaderVariables are the variables that change what the Vulkan loader finds.
func loaderVariables(goos string) []Setting {
	list := []Setting{
		{Name: "VK_DRIVER_FILES", Meaning: "Vulkan loader: the driver manifests, instead of its search"},
		{Name: "VK_ICD_FILENAMES", Meaning: "Vulkan loader: older name of VK_DRIVER_FILES"},
		{Name: "VK_ADD_DRIVER_FILES", Meaning: "Vulkan loader: driver manifests besides its search"},
	}
	switch goos {
	case "linux":
		return append(list, Setting{Name: "LD_LIBRARY_PATH", Meaning: "folders searched for libraries first"})
	case "windows":
		return list
	}
	return nil
}

// searchVulkan looks where the system's library search and the Vulkan loader look.
func searchVulkan(goos string, getenv func(string) string) Search {
	s := Search{Loader: []Place{}, Manifests: []Place{}, Loaded: []string{}}
	switch goos {
	case "linux":
		folders := filepath.SplitList(getenv("LD_LIBRARY_PATH"))
		folders = append(folders, "/lib/*-linux-gnu", "/usr/lib/*-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")
		for _, folder := range folders {
			s.Loader = append(s.Loader, look(filepath.Join(folder, "libvulkan.so.1"))...)
		}
		s.Manifests = manifests(getenv, []string{
			filepath.Join(getenv("HOME"), ".config/vulkan/icd.d"), filepath.Join(getenv("HOME"), ".local/share/vulkan/icd.d"),
			"/etc/vulkan/icd.d", "/usr/local/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/usr/share/vulkan/icd.d",
		})
		if maps, err := os.ReadFile("/proc/self/maps"); err == nil {
			s.Loaded = vulkanLibraries(string(maps))
		}
	case "windows":
		s.Loader = look(filepath.Join(getenv("SystemRoot"), "System32", "vulkan-1.dll"))
		s.Manifests = manifests(getenv, nil)
	}
	return s
}

// look returns the files that match a pattern, or the pattern as not found.
func look(pattern string) []Place {
	found, _ := filepath.Glob(pattern)
	if found == nil {
		return []Place{{Path: pattern}}
	}
	var list []Place
	for _, path := range found {
		list = append(list, Place{Path: path, Found: true})
	}
	return list
}

// manifests looks where the loader looks for drivers: where variables say so, nowhere
// else.
func manifests(getenv func(string) string, folders []string) []Place {
	list := []Place{}
	named := getenv("VK_DRIVER_FILES")
	if named == "" {
		named = getenv("VK_ICD_FILENAMES")
	}
	if named != "" {
		folders = nil
	} else {
		named = getenv("VK_ADD_DRIVER_FILES")
	}
	for _, path := range filepath.SplitList(named) {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			list = append(list, look(filepath.Join(path, "*.json"))...)
			continue
		}
		list = append(list, look(path)...)
	}
	for _, folder := range folders {
		list = append(list, look(filepath.Join(folder, "*.json"))...)
	}
	for i, p := range list {
		if p.Found {
			list[i].Detail = manifest(p.Path)
		}
	}
	return list
}

// manifest says what a driver's manifest names.
func manifest(path string) string {
	var m struct {
		ICD struct {
			Library string `json:"library_path"`
			Version string `json:"api_version"`
		}
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		return "cannot be read: " + err.Error()
	}
	return m.ICD.Library + ", Vulkan " + m.ICD.Version
}

// modules returns the kernel drivers of GPUs that are loaded.
func modules(folder, release string) []Module {
	list := []Module{}
	for _, name := range []string{"amdgpu", "asahi", "i915", "msm", "nouveau", "nvidia", "panfrost", "panthor", "radeon", "v3d", "virtio_gpu", "xe"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			continue
		}
		version, err := os.ReadFile(filepath.Join(folder, name, "version"))
		if err != nil {
			version, _ = os.ReadFile(release)
		}
		list = append(list, Module{name, strings.TrimSpace(string(version))})
	}
	return list
}

// vulkanLibraries returns the libraries of a process's memory map that belong to Vulkan:
// the loader, and drivers by the names that vendors give them.
func vulkanLibraries(maps string) []string {
	list := []string{}
	for line := range strings.Lines(maps) {
		_, path, ok := strings.Cut(strings.TrimSpace(line), "/")
		if !ok {
			continue
		}
		path = "/" + path
		name := filepath.Base(path)
		if strings.Contains(name, ".so") && (strings.Contains(name, "vulkan") || strings.Contains(name, "nvidia-gl") ||
			strings.Contains(name, "GLX_nvidia") || strings.HasPrefix(name, "amdvlk")) && !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	return list
}
