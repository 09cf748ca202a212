package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/cuda/kernels/internal/source"
)

const manifestName = "manifest.json"

// images compiles the families whose images are not of their present sources, and writes
// the manifest. A family that cannot be compiled keeps its images, and is an error.
func images(o options, families []kernels.Family) error {
	if err := os.MkdirAll(o.images, 0o755); err != nil {
		return err
	}
	var err error
	if o.nvcc, err = findNVCC(o.nvcc); err != nil {
		return err
	}
	toolchain, err := versions(o.nvcc)
	if err != nil {
		return err
	}
	old, err := readManifest(o.images)
	if err != nil {
		return err
	}
	m := kernels.Manifest{Toolchain: toolchain, Flags: source.Flags}
	same := maps.Equal(old.Toolchain, toolchain) && !o.force
	var mistakes error
	for _, f := range families {
		if len(f.Entries) == 0 {
			continue
		}
		was := recordOf(old, f.Name)
		r, err := family(o, f, was, same)
		if err != nil {
			mistakes = errors.Join(mistakes, err)
			r = was
		}
		if r != nil {
			m.Families = append(m.Families, *r)
		}
		// What is done is kept if a later family fails or the work is broken off.
		partial := m
		partial.Families = slices.Concat(m.Families, others(old, m))
		if err := writeManifest(o.images, partial); err != nil {
			return err
		}
	}
	if err := writeManifest(o.images, m); err != nil {
		return err
	}
	return errors.Join(mistakes, removeOthers(o.images, m))
}

// family compiles one, for all tiers.
func family(o options, f kernels.Family, was *kernels.FamilyRecord, same bool) (*kernels.FamilyRecord, error) {
	sum, err := source.FamilyDigest(o.kernels, f)
	if err != nil {
		return nil, err
	}
	wanted := len(o.only) == 0 || o.only[f.Name]
	if was != nil && (!wanted || same && was.Sources == sum && present(o.images, was)) {
		return was, nil
	}
	if !wanted {
		return nil, nil
	}
	r := &kernels.FamilyRecord{Name: f.Name, Sources: sum, Images: map[string]kernels.ImageRecord{}}
	for _, e := range f.Entries {
		r.Entries = append(r.Entries, kernels.EntryRecord{
			Name: e.Name, Args: int(reflect.TypeOf(e.Args).Size()), Threads: e.Threads, Shared: e.Shared, Tile: e.Tile,
			Tiers: map[string]kernels.Compiled{},
		})
	}
	var (
		mu       sync.Mutex
		wait     sync.WaitGroup
		mistakes error
		tokens   = make(chan struct{}, o.jobs)
		packed   = map[string][]byte{}
	)
	for _, t := range kernels.Tiers() {
		entries := t.Entries(f)
		if len(entries) == 0 {
			continue
		}
		wait.Go(func() {
			tokens <- struct{}{}
			defer func() { <-tokens }()
			image, compiled, err := compileImage(o, f, t, entries)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				mistakes = errors.Join(mistakes, err)
				return
			}
			packed[f.Name+"."+t.Name+".gz"] = pack(image)
			sum := sha256.Sum256(image)
			r.Images[t.Name] = kernels.ImageRecord{Digest: hex.EncodeToString(sum[:]), Bytes: len(image)}
			for i := range r.Entries {
				if c, ok := compiled[r.Entries[i].Name]; ok {
					r.Entries[i].Tiers[t.Name] = c
				}
			}
		})
	}
	wait.Wait()
	if mistakes != nil {
		return nil, mistakes
	}
	for name, b := range packed {
		if err := replace(filepath.Join(o.images, name), b); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// pack compresses an image, to the same bytes each time.
func pack(image []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is a constant
	}
	w.Write(image)
	w.Close()
	return b.Bytes()
}

func present(dir string, r *kernels.FamilyRecord) bool {
	for tier := range r.Images {
		if _, err := os.Stat(filepath.Join(dir, r.Name+"."+tier+".gz")); err != nil {
			return false
		}
	}
	return true
}

func recordOf(m kernels.Manifest, name string) *kernels.FamilyRecord {
	for i := range m.Families {
		if m.Families[i].Name == name {
			return &m.Families[i]
		}
	}
	return nil
}

// others returns the families of a manifest that another has not.
func others(old, m kernels.Manifest) []kernels.FamilyRecord {
	var rest []kernels.FamilyRecord
	for _, r := range old.Families {
		if recordOf(m, r.Name) == nil {
			rest = append(rest, r)
		}
	}
	return rest
}

// removeOthers removes images that the manifest does not list.
func removeOthers(dir string, m kernels.Manifest) error {
	all, err := filepath.Glob(filepath.Join(dir, "*.gz"))
	if err != nil {
		return err
	}
	listed := map[string]bool{}
	for _, f := range m.Families {
		for tier := range f.Images {
			listed[f.Name+"."+tier+".gz"] = true
		}
	}
	for _, name := range all {
		if !listed[filepath.Base(name)] {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

func readManifest(dir string) (kernels.Manifest, error) {
	var m kernels.Manifest
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, os.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%s: %w", manifestName, err)
	}
	return m, nil
}

func writeManifest(dir string, m kernels.Manifest) error {
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	return replace(filepath.Join(dir, manifestName), append(text, '\n'))
}

// check compares the manifests of two folders: they hold the digests of all images.
func check(got, want string) error {
	a, err := os.ReadFile(filepath.Join(got, manifestName))
	if err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(want, manifestName))
	if err != nil {
		return err
	}
	if bytes.Equal(a, b) {
		return nil
	}
	fresh, err := readManifest(got)
	if err != nil {
		return err
	}
	stored, err := readManifest(want)
	if err != nil {
		return err
	}
	var different []string
	for _, f := range fresh.Families {
		was := recordOf(stored, f.Name)
		for tier, image := range f.Images {
			if was == nil || was.Images[tier] != image {
				different = append(different, f.Name+" for "+tier)
			}
		}
	}
	slices.Sort(different)
	return fmt.Errorf("the images are not what their sources give; different: %v (toolchain %v, was %v)", different, fresh.Toolchain, stored.Toolchain)
}
