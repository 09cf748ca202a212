package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/cuda/kernels/internal/source"
)

const host = "cuda/internal/emulate/host"

// Contraction of products and sums, as nvcc does it too, must not change what a kernel
// computes beyond its tolerance.
var hostFlags = []string{
	"-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-march=native", "-ffp-contract=fast",
	// A frame that is larger than the guard of a stack touches each page of it.
	"-fstack-clash-protection", "--param=stack-clash-protection-guard-size=12",
	"-Wall", "-Wno-unknown-pragmas", "-Wno-sign-compare", "-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Wno-unused-function",
	"-DTANDEM_EMULATED",
}

// An object is a file to compile for the emulator.
type object struct {
	source, object string
	family         kernels.Family // zero: of the emulator itself
	err            error
}

// emulated makes the library for package emulate. A family that cannot be compiled is left
// out of it, and is an error.
func emulated(o options, families []kernels.Family) error {
	dir := filepath.Join(o.build, fmt.Sprintf("emulated_%d", o.arch))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var all []*object
	add := func(f kernels.Family, source, name string) {
		all = append(all, &object{source: source, object: filepath.Join(dir, name+".o"), family: f})
	}
	hosts, err := filepath.Glob(filepath.Join(host, "*.cc"))
	if err != nil {
		return err
	}
	for _, h := range hosts {
		add(kernels.Family{}, h, "host_"+strings.TrimSuffix(filepath.Base(h), ".cc"))
	}
	for _, f := range families {
		var entries []kernels.Entry
		for _, e := range f.Entries {
			if o.arch >= e.From {
				entries = append(entries, e)
			}
		}
		if len(entries) == 0 {
			continue
		}
		wrapper := filepath.Join(dir, f.Name+"_entries.cc")
		if err := replace(wrapper, []byte(source.Emulated(f, entries))); err != nil {
			return err
		}
		add(f, wrapper, f.Name)
	}

	tokens := make(chan struct{}, o.jobs)
	var wait sync.WaitGroup
	for _, x := range all {
		wait.Go(func() {
			tokens <- struct{}{}
			defer func() { <-tokens }()
			x.err = x.compile(o)
		})
	}
	wait.Wait()
	args := []string{"-shared", "-Wl,-z,defs", "-o", o.emulated + ".new"}
	for _, x := range all {
		if x.err != nil {
			if x.family.Name == "" {
				return x.err // without the emulator there is nothing to link
			}
			err = errors.Join(err, x.err)
			continue
		}
		args = append(args, x.object)
	}
	args = append(args, "-lpthread")
	if out, linkErr := exec.Command(o.cxx, args...).CombinedOutput(); linkErr != nil {
		return errors.Join(err, fmt.Errorf("link: %w\n%s", linkErr, out))
	}
	return errors.Join(err, os.Rename(o.emulated+".new", o.emulated))
}

// compile makes an object, unless it is of these very sources and flags.
func (x *object) compile(o options) error {
	flags := append([]string{fmt.Sprintf("-DTANDEM_ARCH=%d", o.arch), "-I" + host, "-I" + o.kernels}, hostFlags...)
	if x.family.Name == "" {
		flags = append(flags, "-O3")
	}
	files, err := source.Files(x.source, host, o.kernels)
	if err != nil {
		return err
	}
	sum, err := source.Digest(x.family, files, append(flags, o.cxx)...)
	if err != nil {
		return err
	}
	mark := x.object + ".digest"
	if old, err := os.ReadFile(mark); err == nil && string(old) == sum && !o.force {
		if _, err := os.Stat(x.object); err == nil {
			return nil
		}
	}
	os.Remove(mark)
	out, err := exec.Command(o.cxx, append(flags, "-c", "-o", x.object, x.source)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", x.source, err, out)
	}
	if len(out) > 0 {
		fmt.Fprintf(os.Stderr, "%s:\n%s", x.source, out)
	}
	return os.WriteFile(mark, []byte(sum), 0o644)
}
