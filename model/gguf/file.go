package gguf

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/tandem-gpu/tandem/model/internal/mapped"
	"github.com/tandem-gpu/tandem/model/internal/nearest"
	"github.com/tandem-gpu/tandem/pass"
)

// A File is an open file. It may be used from any goroutine.
type File struct {
	label    string // for errors, empty or with a colon
	version  int
	metadata Metadata
	names    []string
	tensors  map[string]Tensor
	opened   *mapped.File // by Open; nil: by somebody else
	closed   atomic.Bool
}

// New reads the header of a file of the given size. It reads r later, too, whenever
// values are asked for; Close does not close r.
func New(r io.ReaderAt, size int64) (*File, error) {
	f, err := parse(r, size)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	return f, nil
}

// Read reads a file from r to its end, into memory. Who does not trust r limits it.
func Read(r io.Reader) (*File, error) {
	if r == nil {
		return nil, fmt.Errorf("gguf: want an input, given nil: %w", pass.ErrInvalid)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	return New(bytes.NewReader(b), int64(len(b)))
}

// Open opens the file at path, which errors name. The result must be closed.
func Open(path string) (*File, error) {
	r, err := mapped.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	f, err := parse(r, r.Size())
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("gguf: %s: %w", path, err)
	}
	f.label, f.opened = filepath.Base(path)+": ", r
	return f, nil
}

// Version returns the version of the format that the file has: 2 or 3.
func (f *File) Version() int { return f.version }

// Metadata returns the metadata of the file. The map is the caller's, the slices in it
// are not.
func (f *File) Metadata() Metadata { return maps.Clone(f.metadata) }

// Names returns the names of the tensors, sorted. The slice is the caller's.
func (f *File) Names() []string { return slices.Clone(f.names) }

// Raw returns the named tensor, of any type. Its Data is readable until Close, and nil
// for a type whose size is not known here. The error for a name that does not exist
// gives the nearest one that does.
func (f *File) Raw(name string) (Tensor, error) {
	if f.closed.Load() {
		return Tensor{}, fmt.Errorf("gguf: %stensor %.200q: %w", f.label, name, pass.ErrClosed)
	}
	t, ok := f.tensors[name]
	if !ok {
		return Tensor{}, fmt.Errorf("gguf: %sno tensor %.200q among %d%s: %w", f.label, name, len(f.names), nearest.Hint(name, f.names), pass.ErrInvalid)
	}
	t.Shape = slices.Clone(t.Shape)
	return t, nil
}

// Tensor returns the named tensor for loading. Only F32, F16, BF16 and Q8_0 can be
// loaded.
func (f *File) Tensor(name string) (pass.Tensor, error) {
	t, err := f.Raw(name)
	if err != nil {
		return pass.Tensor{}, err
	}
	d, ok := t.Type.pass()
	if !ok {
		return pass.Tensor{}, fmt.Errorf("gguf: %stensor %.200q: type %v: want F32, F16, BF16 or Q8_0: %w", f.label, name, t.Type, pass.ErrUnsupported)
	}
	return pass.Tensor{Name: t.Name, Type: d, Shape: t.Shape, Data: t.Data}, nil
}

// Close closes what Open opened. It is safe on nil and when called again.
func (f *File) Close() error {
	if f == nil || f.closed.Swap(true) || f.opened == nil {
		return nil
	}
	if err := f.opened.Close(); err != nil {
		return fmt.Errorf("gguf: %s%w", f.label, err)
	}
	return nil
}
