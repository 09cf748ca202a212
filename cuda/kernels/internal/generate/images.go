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
	type result struct {
		record *kernels.FamilyRecord
		err    error
	}
	var done []chan result
	tokens := make(chan struct{}, o.jobs)
	for _, f := range families {
		if len(f.Entries) == 0 {
			continue
		}
		c := make(chan result, 1)
		done = append(done, c)
		go func() {
			was := recordOf(old, f.Name)
			r, err := family(o, f, was, same, tokens)
			if err != nil {
				r = was
			}
			c <- result{r, err}
		}()
	}
	var mistakes error
	for _, c := range done {
		r := <-c
		mistakes = errors.Join(mistakes, r.err)
		if r.record != nil {
			m.Families = append(m.Families, *r.record)
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

// family compiles one, for the tiers that are wanted.
func family(o options, f kernels.Family, was *kernels.FamilyRecord, same bool, tokens chan struct{}) (*kernels.FamilyRecord, error) {
	sum, err := source.FamilyDigest(o.kernels, f)
	if err != nil {
		return nil, err
	}
	if len(o.only) > 0 && !o.only[f.Name] {
		return was, nil
	}
	r := record(f, sum)
	if was != nil && same && was.Sources == sum {
		maps.Copy(r.Images, was.Images)
		for i := range r.Entries {
			maps.Copy(r.Entries[i].Tiers, was.Entries[i].Tiers)
		}
	}
	type compiled struct {
		tier    kernels.Tier
		image   []byte
		entries map[string]kernels.Compiled
		err     error
	}
	var wanted []*compiled
	var wait sync.WaitGroup
	for _, t := range kernels.Tiers() {
		entries := t.Entries(f)
		if len(entries) == 0 || len(o.tiers) > 0 && !o.tiers[t.Name] || present(o.images, r, t) {
			continue
		}
		c := &compiled{tier: t}
		wanted = append(wanted, c)
		wait.Go(func() {
			tokens <- struct{}{}
			defer func() { <-tokens }()
			c.image, c.entries, c.err = compileImage(o, f, t, entries)
		})
	}
	wait.Wait()
	var mistakes error
	for _, c := range wanted {
		mistakes = errors.Join(mistakes, c.err)
	}
	if mistakes != nil {
		return nil, mistakes
	}
	for _, c := range wanted {
		packed, err := pack(c.image)
		if err == nil {
			err = replace(filepath.Join(o.images, f.Name+"."+c.tier.Name+".gz"), packed)
		}
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(c.image)
		r.Images[c.tier.Name] = kernels.ImageRecord{Digest: hex.EncodeToString(sum[:]), Bytes: len(c.image)}
		for i := range r.Entries {
			if e, ok := c.entries[r.Entries[i].Name]; ok {
				r.Entries[i].Tiers[c.tier.Name] = e
			}
		}
	}
	return r, nil
}

// record returns the record of a family without images.
func record(f kernels.Family, sum string) *kernels.FamilyRecord {
	r := &kernels.FamilyRecord{Name: f.Name, Sources: sum, Images: map[string]kernels.ImageRecord{}}
	for _, e := range f.Entries {
		r.Entries = append(r.Entries, kernels.EntryRecord{
			Name: e.Name, Args: int(reflect.TypeOf(e.Args).Size()), Threads: e.Threads, Shared: e.Shared, Tile: e.Tile,
			Tiers: map[string]kernels.Compiled{},
		})
	}
	return r
}

// pack compresses an image, to the same bytes each time.
func pack(image []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(image); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

func present(dir string, r *kernels.FamilyRecord, t kernels.Tier) bool {
	_, recorded := r.Images[t.Name]
	_, err := os.Stat(filepath.Join(dir, r.Name+"."+t.Name+".gz"))
	return recorded && err == nil
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
