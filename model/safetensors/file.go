package safetensors

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tandem-gpu/tandem/model/internal/mapped"
	"github.com/tandem-gpu/tandem/model/internal/nearest"
	"github.com/tandem-gpu/tandem/pass"
)

// A File is an open file, or a model of several files opened through its index. It may
// be used from any goroutine.
type File struct {
	label    string // for errors, empty or with a colon
	names    []string
	tensors  map[string]Tensor
	metadata map[string]string
	closers  []io.Closer
	closed   atomic.Bool
}

// New reads the header of a file of the given size. It reads r later, too, whenever
// values are asked for; Close does not close r.
func New(r io.ReaderAt, size int64) (*File, error) {
	f := &File{}
	if err := f.add(r, size); err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return f, nil
}

// Read reads a file from r to its end, into memory. Who does not trust r limits it.
func Read(r io.Reader) (*File, error) {
	if r == nil {
		return nil, fmt.Errorf("safetensors: want an input, given nil: %w", pass.ErrInvalid)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return New(bytes.NewReader(b), int64(len(b)))
}

// Open opens a file, or all files of a sharded model where path ends in .json: then it
// is the index, model.safetensors.index.json, with the shards in the same folder. The
// result must be closed.
func Open(path string) (*File, error) {
	open := openFile
	if strings.HasSuffix(path, ".json") {
		open = openIndex
	}
	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return f, nil
}

func openFile(path string) (*File, error) {
	file, err := mapped.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{label: filepath.Base(path) + ": ", closers: []io.Closer{file}}
	if err := f.add(file, file.Size()); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func (f *File) add(r io.ReaderAt, size int64) error {
	tensors, metadata, err := readHeader(r, size)
	if err != nil {
		return err
	}
	f.tensors = make(map[string]Tensor, len(tensors))
	for _, t := range tensors {
		f.tensors[t.Name] = t
	}
	f.names = slices.Sorted(maps.Keys(f.tensors))
	f.metadata = metadata
	return nil
}

// Names returns the names of the tensors, sorted. The slice is the caller's.
func (f *File) Names() []string { return slices.Clone(f.names) }

// Metadata returns the free-form metadata of the file. The map is the caller's; it is
// never nil. Of a sharded model it is the metadata of the index, in which what is not a
// string stands as JSON.
func (f *File) Metadata() map[string]string {
	m := make(map[string]string, len(f.metadata))
	maps.Copy(m, f.metadata)
	return m
}

// Raw returns the named tensor, of any type. Its Data is readable until Close. The error
// for a name that does not exist gives the nearest one that does.
func (f *File) Raw(name string) (Tensor, error) {
	t, err := f.find(name)
	if err != nil {
		return Tensor{}, fmt.Errorf("safetensors: %w", err)
	}
	return t, nil
}

// Tensor returns the named tensor for loading; see [Tensor.Pass].
func (f *File) Tensor(name string) (pass.Tensor, error) {
	t, err := f.find(name)
	if err != nil {
		return pass.Tensor{}, fmt.Errorf("safetensors: %w", err)
	}
	p, err := t.toPass()
	if err != nil {
		return pass.Tensor{}, fmt.Errorf("safetensors: %s%w", f.label, err)
	}
	return p, nil
}

// Int64s reads the named tensor; see [Tensor.Int64s].
func (f *File) Int64s(name string) ([]int64, error) {
	t, err := f.Raw(name)
	if err != nil {
		return nil, err
	}
	return t.Int64s()
}

// Float64s reads the named tensor; see [Tensor.Float64s].
func (f *File) Float64s(name string) ([]float64, error) {
	t, err := f.Raw(name)
	if err != nil {
		return nil, err
	}
	return t.Float64s()
}

func (f *File) find(name string) (Tensor, error) {
	if f.closed.Load() {
		return Tensor{}, fmt.Errorf("%stensor %.200q: %w", f.label, name, pass.ErrClosed)
	}
	t, ok := f.tensors[name]
	if !ok {
		return Tensor{}, fmt.Errorf("%sno tensor %.200q among %d%s: %w", f.label, name, len(f.names), nearest.Hint(name, f.names), pass.ErrInvalid)
	}
	t.Shape = slices.Clone(t.Shape)
	return t, nil
}

// Close closes what Open opened. It is safe on nil and when called again.
func (f *File) Close() error {
	if f == nil || f.closed.Swap(true) {
		return nil
	}
	var first error
	for _, c := range f.closers {
		if err := c.Close(); err != nil && first == nil {
			first = fmt.Errorf("safetensors: %s%w", f.label, err)
		}
	}
	return first
}
