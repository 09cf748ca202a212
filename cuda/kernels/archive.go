package kernels

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"sync"
)

//go:embed images
var embedded embed.FS

// A Manifest says what the images are made of and what came out. `make kernels` writes it.
type Manifest struct {
	Toolchain map[string]string `json:"toolchain"` // versions, by package
	Flags     []string          `json:"flags"`
	Families  []FamilyRecord    `json:"families"`
}

// A FamilyRecord is a family in the manifest.
type FamilyRecord struct {
	Name    string                 `json:"name"`
	Sources string                 `json:"sources"` // digest of the sources and the table
	Images  map[string]ImageRecord `json:"images"`  // by tier
	Entries []EntryRecord          `json:"entries"`
}

// An ImageRecord is one image.
type ImageRecord struct {
	Digest string `json:"digest"`
	Bytes  int    `json:"bytes"`
}

// An EntryRecord is a kernel: what the table says of it, and what the compiler made of it
// in each tier that is not PTX.
type EntryRecord struct {
	Name    string              `json:"name"`
	Args    int                 `json:"args"` // bytes
	Threads int                 `json:"threads"`
	Shared  int                 `json:"shared"` // dynamic; −1: the launch says
	Tile    [3]int              `json:"tile"`
	Tiers   map[string]Compiled `json:"tiers"`
}

// Compiled is what the compiler says of a kernel.
type Compiled struct {
	Registers int `json:"registers"`
	Stack     int `json:"stack"`  // bytes of each thread
	Spills    int `json:"spills"` // bytes stored, and bytes loaded, because registers ran out
	Static    int `json:"static"` // shared memory, bytes
}

// An Archive is images of kernels and their manifest.
type Archive struct {
	Manifest
	digest string
	files  fs.FS // nil: every image is empty
}

// Embedded returns the archive that is part of the build.
var Embedded = sync.OnceValues(func() (*Archive, error) { return OpenArchive(embedded) })

// OpenArchive reads the manifest of images that lie in the folder "images".
func OpenArchive(files fs.FS) (*Archive, error) {
	text, err := fs.ReadFile(files, "images/manifest.json")
	if err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	sum := sha256.Sum256(text)
	a := &Archive{digest: hex.EncodeToString(sum[:8]), files: files}
	if err := json.Unmarshal(text, &a.Manifest); err != nil {
		return nil, fmt.Errorf("kernels: manifest: %w", err)
	}
	return a, nil
}

// Nominal returns an archive in which every kernel of the table is, with empty images, for
// drivers that have kernels of their own.
func Nominal() *Archive { return &Archive{digest: "nominal"} }

// Empty reports whether there are no images: they are compiled with `make kernels`.
func (a *Archive) Empty() bool { return a.files != nil && len(a.Families) == 0 }

// Digest tells one archive from another.
func (a *Archive) Digest() string { return a.digest }

// Digest returns that of the embedded archive.
func Digest() string {
	a, err := Embedded()
	if err != nil {
		return ""
	}
	return a.Digest()
}

// Image returns the image of a family for a tier: a cubin, or PTX that ends with a zero
// byte. It is checked against the manifest.
func (a *Archive) Image(family string, t Tier) ([]byte, error) {
	if a.files == nil {
		return []byte{0}, nil
	}
	want, ok := a.record(family, t)
	if !ok {
		return nil, fmt.Errorf("kernels: there is no image of %s for %s", family, t.Name)
	}
	image, err := a.read("images/" + family + "." + t.Name + ".gz")
	if err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	sum := sha256.Sum256(image)
	if got := hex.EncodeToString(sum[:]); got != want.Digest {
		return nil, fmt.Errorf("kernels: image of %s for %s: want digest %s, given %s", family, t.Name, want.Digest, got)
	}
	if t.PTX {
		image = append(image, 0)
	}
	return image, nil
}

func (a *Archive) record(family string, t Tier) (ImageRecord, bool) {
	for _, f := range a.Families {
		if f.Name == family {
			r, ok := f.Images[t.Name]
			return r, ok
		}
	}
	return ImageRecord{}, false
}

func (a *Archive) read(name string) ([]byte, error) {
	packed, err := fs.ReadFile(a.files, name)
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	image, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return image, nil
}
