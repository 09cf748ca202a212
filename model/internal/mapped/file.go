// Package mapped opens files of weights: mapped into memory where that is possible, and
// read where it is not.
package mapped

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/tandem-gpu/tandem/pass"
)

// A File is an open file. It may be used from any goroutine.
type File struct {
	source source
	size   int64
}

// A source is what a file is read from.
type source interface {
	io.ReaderAt
	io.Closer
}

// Open opens the file at path, and no directory. Errors are those of package os, which
// name it.
func Open(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	if m, ok := mapFile(file, info.Size()); ok {
		file.Close() // the map outlives it
		return &File{m, info.Size()}, nil
	}
	return &File{file, info.Size()}, nil
}

// Size returns how many bytes the file had when it was opened.
func (f *File) Size() int64 { return f.size }

// ReadAt implements [io.ReaderAt]. It fails with pass.ErrClosed after Close, and with an
// error, not with a signal, where the file was cut since it was opened.
func (f *File) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.source.ReadAt(b, at)
	if errors.Is(err, os.ErrClosed) {
		err = fmt.Errorf("%w: %w", err, pass.ErrClosed)
	}
	return n, err
}

// Close closes the file, once nobody reads it. It may be called again.
func (f *File) Close() error {
	if err := f.source.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
