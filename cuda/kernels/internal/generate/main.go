// Command generate turns the table of package kernels into what is compiled, and compiles
// it. It is run in the folder of the module:
//
//	generate                          writes cuda/kernels/args.cuh and wgmma.cuh
//	generate -emulated FILE           and a library for package emulate, with g++
//	generate -images DIR -nvcc FILE   and the images for GPUs, with nvcc
//
// Only what changed is compiled again; -force compiles everything.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/cuda/kernels/internal/source"
)

type options struct {
	kernels  string // folder of the kernels' sources
	build    string // folder of what is made on the way
	emulated string
	arch     int
	cxx      string
	images   string
	nvcc     string
	check    string
	only     map[string]bool // families; empty: all
	tiers    map[string]bool // of images; empty: all
	force    bool
	jobs     int
}

func main() {
	var o options
	var only, tiers string
	flag.StringVar(&o.kernels, "kernels", "cuda/kernels", "folder of the kernels")
	flag.StringVar(&o.build, "build", "build/cuda", "folder for wrappers and objects")
	flag.StringVar(&o.emulated, "emulated", "", "library to make for the emulator")
	flag.IntVar(&o.arch, "arch", 90, "compute capability, times ten, that the emulator has")
	flag.StringVar(&o.cxx, "cxx", "g++", "compiler for the emulator")
	flag.StringVar(&o.images, "images", "", "folder for the images")
	flag.StringVar(&o.nvcc, "nvcc", "nvcc", "compiler for the images")
	flag.StringVar(&o.check, "check", "", "folder of images that must be the same as those made")
	flag.StringVar(&only, "only", "", "families to compile images of, with commas between")
	flag.StringVar(&tiers, "tiers", "", "tiers to compile images for, with commas between")
	flag.BoolVar(&o.force, "force", false, "compile what has not changed, too")
	flag.IntVar(&o.jobs, "j", 2, "compilers at a time")
	flag.Parse()
	o.only, o.tiers = set(only), set(tiers)
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func set(list string) map[string]bool {
	all := map[string]bool{}
	for s := range strings.SplitSeq(list, ",") {
		if s != "" {
			all[s] = true
		}
	}
	return all
}

func run(o options) error {
	if err := os.MkdirAll(o.build, 0o755); err != nil {
		return err
	}
	text, families, err := source.Structs(kernels.Families())
	if text == nil {
		return err
	}
	if err := replace(filepath.Join(o.kernels, source.ArgsFile), text); err != nil {
		return err
	}
	if err := replace(filepath.Join(o.kernels, "wgmma.cuh"), []byte(warpgroups())); err != nil {
		return err
	}
	if o.emulated != "" {
		err = errors.Join(err, locked(o, "emulated", func() error { return emulated(o, families) }))
	}
	if o.images != "" {
		err = errors.Join(err, locked(o, "images", func() error { return images(o, families) }))
	}
	if o.check != "" && err == nil {
		err = check(o.images, o.check)
	}
	return err
}

// locked runs f while no other generator does the same in the folder.
func locked(o options, what string, f func() error) error {
	unlock, err := lock(filepath.Join(o.build, what+".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	return f()
}

// replace writes a file, unless it has that content already: what is newer is compiled
// again. Readers see the old file or the new one.
func replace(name string, content []byte) error {
	if old, err := os.ReadFile(name); err == nil && string(old) == string(content) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
