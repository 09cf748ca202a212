// Package atomicfile writes files whole or not at all: a program that measures for hours
// finds out first that it cannot write, and one that is interrupted leaves what was there.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// A File is a file that is being made. Until Commit there is nothing at its path, or what
// was there before. What is no regular file, such as /dev/stdout, is written to at once.
type File struct {
	path string // empty: written to at once
	to   *os.File
}

// Create begins the file at path, or where path leads as a link. Commit or Discard must
// follow. Errors are those of package os.
func Create(path string) (*File, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	switch info, err := os.Stat(path); {
	case err != nil || info.Mode().IsRegular():
		to, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
		if err != nil {
			return nil, err
		}
		return &File{path, to}, nil
	case info.IsDir():
		return nil, &os.PathError{Op: "create", Path: path, Err: syscall.EISDIR}
	}
	to, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	return &File{"", to}, nil
}

// Write implements io.Writer.
func (f *File) Write(b []byte) (int, error) { return f.to.Write(b) }

// Commit puts the file in its place. If that fails, what was there stays.
func (f *File) Commit() error {
	if f.path == "" {
		return f.to.Close()
	}
	defer f.Discard()
	if err := errors.Join(f.to.Chmod(0o644), f.to.Close()); err != nil {
		return err
	}
	return os.Rename(f.to.Name(), f.path)
}

// Discard gives the file up. It does nothing after Commit, or on nil.
func (f *File) Discard() {
	if f == nil {
		return
	}
	f.to.Close()
	if f.path != "" {
		os.Remove(f.to.Name())
	}
}
