package safetensors

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/tandem-gpu/tandem/model/internal/mapped"
	"github.com/tandem-gpu/tandem/model/internal/nearest"
	"github.com/tandem-gpu/tandem/pass"
)

// openIndex opens every shard that the index at path names. Shards may hold further
// tensors: the index decides.
func openIndex(path string) (*File, error) {
	index, err := readIndex(path)
	if err != nil {
		return nil, err
	}
	f := &File{
		label:    filepath.Base(path) + ": ",
		names:    slices.Sorted(maps.Keys(index.Shards)),
		tensors:  make(map[string]Tensor, len(index.Shards)),
		metadata: map[string]string{},
	}
	for key, value := range index.Metadata {
		text := ""
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		f.metadata[key] = text
	}
	shards := map[string]*File{}
	for _, name := range f.names {
		shard := index.Shards[name]
		s, ok := shards[shard]
		if !ok {
			if s, err = openShard(filepath.Dir(path), shard); err != nil {
				f.Close()
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			shards[shard] = s
			f.closers = append(f.closers, s)
		}
		t, ok := s.tensors[name]
		if !ok {
			f.Close()
			return nil, fmt.Errorf("%s: no tensor %.200q in %s%s: %w", path, name, shard, nearest.Hint(name, s.names), pass.ErrInvalid)
		}
		f.tensors[name] = t
	}
	return f, nil
}

type index struct {
	Metadata map[string]json.RawMessage `json:"metadata"`
	Shards   map[string]string          `json:"weight_map"`
}

func readIndex(path string) (index, error) {
	file, err := mapped.Open(path)
	if err != nil {
		return index{}, err
	}
	defer file.Close()
	if file.Size() > maxHeader {
		return index{}, fmt.Errorf("%s: index of %d bytes, want at most %d: %w", path, file.Size(), maxHeader, pass.ErrInvalid)
	}
	text, err := io.ReadAll(io.NewSectionReader(file, 0, file.Size()))
	if err != nil {
		return index{}, err
	}
	var x index
	if err := json.Unmarshal(text, &x); err != nil {
		return index{}, fmt.Errorf("%s: index: %w: %w", path, err, pass.ErrInvalid)
	}
	if x.Shards == nil {
		return index{}, fmt.Errorf("%s: index without weight_map: %w", path, pass.ErrInvalid)
	}
	return x, nil
}

// openShard opens a file of the model's folder, and none elsewhere.
func openShard(folder, name string) (*File, error) {
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("shard %.200q is not in the folder of the index: %w", name, pass.ErrInvalid)
	}
	return openFile(filepath.Join(folder, name))
}
