package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/tandem-gpu/tandem/cuda"
)

// earlier returns the pins of a tune file that is there, so that they are kept where nothing
// is measured. One that was made for anything else is an error, unless it may be
// overwritten.
func earlier(path string, k cuda.TuneKey, force bool) ([]cuda.TunePin, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	defer f.Close()
	file, err := cuda.ReadTuneFile(f)
	switch {
	case err == nil && file.Key == k:
		return file.Pins, nil
	case force:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("--out: %s is no tune file (%w); --force overwrites it", path, err)
	}
	return nil, fmt.Errorf("--out: %s was made for %+v, this is %+v; --force overwrites it", path, file.Key, k)
}
