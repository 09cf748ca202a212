package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tandem-gpu/tandem/cuda/kernels"
)

var include = regexp.MustCompile(`(?m)^\s*#include "([^"]+)"`)

// sources returns the files that a file includes, itself among them, from the given
// folders, sorted by name.
func sources(file string, folders ...string) ([]string, error) {
	seen := map[string]bool{}
	var visit func(string) error
	visit = func(name string) error {
		if seen[name] {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		seen[name] = true
		for _, m := range include.FindAllSubmatch(text, -1) {
			for _, dir := range append([]string{filepath.Dir(name)}, folders...) {
				path := filepath.Join(dir, string(m[1]))
				if _, err := os.Stat(path); err != nil {
					continue
				}
				if err := visit(path); err != nil {
					return err
				}
				break
			}
		}
		return nil
	}
	if err := visit(file); err != nil {
		return nil, err
	}
	var all []string
	for name := range seen {
		all = append(all, name)
	}
	slices.Sort(all)
	return all, nil
}

// digest returns that of files, by their names, and of text.
func digest(files []string, text ...string) (string, error) {
	h := sha256.New()
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n", filepath.Base(name), len(b))
		h.Write(b)
	}
	for _, s := range text {
		io.WriteString(h, s+"\n")
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hardwareWrappers returns the exported functions of a family, for nvcc.
func hardwareWrappers(f kernels.Family, entries []kernels.Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#include \"%s.cu\"\n", f.Name)
	for _, e := range entries {
		bounds := fmt.Sprint(e.Threads)
		if e.Resident > 0 {
			bounds += fmt.Sprintf(", %d", e.Resident)
		}
		cluster := ""
		if e.Cluster > 1 {
			cluster = fmt.Sprintf(" __cluster_dims__(%d, 1, 1)", e.Cluster)
		}
		fmt.Fprintf(&b, "\nextern \"C\" __global__ __launch_bounds__(%s)%s void %s(const __grid_constant__ kernels::%s a) {\n\twait_dependency();\n\t%s(a);\n}\n",
			bounds, cluster, e.Name, argsName(e), e.Call)
	}
	return b.String()
}

// emulatedWrappers returns the entries of a family, for the emulator.
func emulatedWrappers(f kernels.Family, entries []kernels.Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#include \"%s.cu\"\n", f.Name)
	for _, e := range entries {
		fmt.Fprintf(&b, `
static void run_%[1]s(const void* a) { %[2]s(*static_cast<const kernels::%[3]s*>(a)); }
extern "C" __attribute__((visibility("default"))) const emulate::Entry tandem_entry_%[1]s = {
    "%[1]s", run_%[1]s, sizeof(kernels::%[3]s), %[4]d, %[5]d};
`, e.Name, e.Call, argsName(e), e.Threads, e.Cluster)
	}
	return b.String()
}

func argsName(e kernels.Entry) string {
	s := fmt.Sprintf("%T", e.Args)
	return s[strings.LastIndex(s, ".")+1:]
}

// least returns the lowest capability that an entry is compiled for.
func least(e kernels.Entry) int { return max(e.From, 75) }
