// Package source says what an image of kernels is made of: files and flags, whose digest
// tells whether the image is still theirs.
package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/tandem-gpu/tandem/cuda/kernels"
)

// Flags of nvcc for all images.
var Flags = []string{"-std=c++17", "-O3", "-Xptxas", "-v"}

// TierFlags returns the flags of nvcc for a tier.
func TierFlags(t kernels.Tier) []string {
	virtual := fmt.Sprintf("compute_%d", t.Capability)
	if t.PTX {
		return []string{"-ptx", "-arch=" + virtual}
	}
	suffix := ""
	if t.Exact {
		suffix = "a"
	}
	return []string{"-cubin", fmt.Sprintf("-gencode=arch=%s%s,code=sm_%d%s", virtual, suffix, t.Capability, suffix)}
}

var include = regexp.MustCompile(`(?m)^\s*#include "([^"]+)"`)

// Files returns the files that a file includes, itself among them, from its own folder and
// the given ones, sorted. Those that are not there, which are the compiler's or of another
// build, are left out.
func Files(file string, folders ...string) ([]string, error) {
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

// ArgsFile is what [Structs] is written to.
const ArgsFile = "args.cuh"

// Digest returns that of files, with their names, and of text. Of the structs of
// parameters only those count that the family's own entries take, lest a change in one
// family makes all be compiled.
func Digest(f kernels.Family, files []string, text ...string) (string, error) {
	args, _, err := Structs([]kernels.Family{f})
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write(args)
	for _, name := range files {
		if filepath.Base(name) == ArgsFile {
			continue
		}
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

// FamilyDigest returns that of everything the images of a family are made of, but for the
// compiler. The folder is that of the kernels.
func FamilyDigest(folder string, f kernels.Family) (string, error) {
	files, err := Files(filepath.Join(folder, f.Name+".cu"))
	if err != nil {
		return "", err
	}
	text := slices.Clone(Flags)
	for _, t := range kernels.Tiers() {
		if e := t.Entries(f); len(e) > 0 {
			text = append(text, TierFlags(t)...)
			text = append(text, Wrappers(f, e))
		}
	}
	return Digest(f, files, text...)
}
