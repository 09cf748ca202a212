package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/cuda/kernels/internal/source"
)

// compileImage runs nvcc for one family and tier.
func compileImage(o options, f kernels.Family, t kernels.Tier, entries []kernels.Entry) ([]byte, map[string]kernels.Compiled, error) {
	fail := func(err error, out []byte) ([]byte, map[string]kernels.Compiled, error) {
		return nil, nil, fmt.Errorf("%s for %s: %w\n%s", f.Name, t.Name, err, out)
	}
	dir, err := filepath.Abs(filepath.Join(o.build, "images", t.Name))
	if err != nil {
		return fail(err, nil)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fail(err, nil)
	}
	include, err := filepath.Abs(o.kernels)
	if err != nil {
		return fail(err, nil)
	}
	// The wrapper has the same name everywhere and the compiler runs where it lies, so that
	// no path gets into the image.
	wrapper, image := f.Name+"_entries.cu", f.Name+".image"
	if err := replace(filepath.Join(dir, wrapper), []byte(source.Wrappers(f, entries))); err != nil {
		return fail(err, nil)
	}
	args := append(append([]string{}, source.Flags...), source.TierFlags(t)...)
	args = append(args, "-I", include, "-o", image, wrapper)
	c := exec.Command(o.nvcc, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		return fail(err, out)
	}
	if note := notes(string(out)); note != "" {
		fmt.Fprintf(os.Stderr, "%s for %s:\n%s", f.Name, t.Name, note)
	}
	b, err := os.ReadFile(filepath.Join(dir, image))
	if err != nil {
		return fail(err, out)
	}
	compiled, err := resources(string(out), t, entries)
	if err != nil {
		return fail(err, out)
	}
	for name, r := range compiled {
		if r.Spills != 0 {
			fmt.Fprintf(os.Stderr, "%s for %s: %d bytes of registers are spilled\n", name, t.Name, r.Spills)
		}
	}
	return b, compiled, nil
}

// notes returns what the compiler says beyond what was asked for.
func notes(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		s := strings.TrimSpace(line)
		known := s == "" || strings.HasPrefix(s, "ptxas info") && !strings.Contains(s, "(C") || strings.Contains(s, "bytes stack frame")
		if !known {
			b.WriteString(line)
		}
	}
	return b.String()
}

var (
	entryLine = regexp.MustCompile(`^ptxas info\s*: Compiling entry function '([^']+)'`)
	stackLine = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
	usedLine  = regexp.MustCompile(`Used (\d+) registers`)
	smemLine  = regexp.MustCompile(`(\d+) bytes smem`)
)

// resources reads what ptxas -v says of each entry.
func resources(out string, t kernels.Tier, entries []kernels.Entry) (map[string]kernels.Compiled, error) {
	all := map[string]kernels.Compiled{}
	if t.PTX {
		return all, nil
	}
	var name string
	for line := range strings.Lines(out) {
		if m := entryLine.FindStringSubmatch(line); m != nil {
			name = m[1]
			continue
		}
		if name == "" {
			continue
		}
		c := all[name]
		if m := stackLine.FindStringSubmatch(line); m != nil {
			c.Stack = number(m[1])
			c.Spills = number(m[2]) + number(m[3])
		}
		if m := usedLine.FindStringSubmatch(line); m != nil {
			c.Registers = number(m[1])
			if s := smemLine.FindStringSubmatch(line); s != nil {
				c.Static = number(s[1])
			}
		}
		all[name] = c
	}
	for _, e := range entries {
		if all[e.Name].Registers == 0 {
			return nil, fmt.Errorf("the compiler says nothing of %s", e.Name)
		}
	}
	return all, nil
}

func number(s string) int {
	n, _ := strconv.Atoi(s) // digits, by the expression
	return n
}

var release = regexp.MustCompile(`V(\d+\.\d+\.\d+)`)

// findNVCC returns the compiler's path, absolute and without links: it looks for its parts
// beside it.
func findNVCC(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", fmt.Errorf("nvcc: %w; make nvcc installs it", err)
	}
	return path, nil
}

// versions returns that of the compiler, and, if it was installed as packages, theirs.
func versions(nvcc string) (map[string]string, error) {
	out, err := exec.Command(nvcc, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("nvcc --version: %w", err)
	}
	m := release.FindSubmatch(out)
	if m == nil {
		return nil, fmt.Errorf("nvcc --version: no version in %q", out)
	}
	all := map[string]string{"nvcc": string(m[1])}
	packages, err := filepath.Glob(filepath.Join(filepath.Dir(nvcc), "../../..", "nvidia_*.dist-info"))
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		name, version, ok := strings.Cut(strings.TrimSuffix(filepath.Base(p), ".dist-info"), "-")
		if ok {
			all[strings.ReplaceAll(name, "_", "-")] = version
		}
	}
	return all, nil
}
