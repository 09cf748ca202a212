//go:build (linux && (amd64 || arm64) && !android) || (windows && amd64)

package driver

import (
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/tandem-gpu/tandem/pass"
)

// library is the driver's library.
type library struct {
	path    string
	version int
	entries [entryCount]uintptr
}

// Open loads the driver's library from a path, or, if it is empty, from where the system
// has it, and initialises it. The library stays in the process. Errors wrap
// pass.ErrNoDevice.
func Open(path string) (Driver, error) {
	paths := defaultPaths()
	if path != "" {
		paths = []string{path}
	}
	var reasons []string
	for _, p := range paths {
		opened, err := openLibrary(p)
		if err == nil {
			return bind(foundAt(p), func(name string) uintptr { return findSymbol(opened, name) })
		}
		reasons = append(reasons, fmt.Sprintf("load %s: %s", p, strings.TrimPrefix(err.Error(), p+": ")))
	}
	return nil, fmt.Errorf("driver: no NVIDIA driver: %s: %w", strings.Join(reasons, "; "), pass.ErrNoDevice)
}

// bind finds the entry points and initialises the library.
func bind(path string, find func(name string) uintptr) (*library, error) {
	l := &library{path: path}
	for e := range entries {
		l.entries[e] = find(entries[e].name)
	}
	for _, e := range []entry{cuInit, cuDriverGetVersion, cuGetErrorName, cuGetErrorString} {
		if l.entries[e] == 0 {
			return nil, fmt.Errorf("driver: %s is no CUDA driver: no %s: %w", path, entries[e].name, pass.ErrNoDevice)
		}
	}
	var version int32
	if err := l.call(cuDriverGetVersion, uintptr(unsafe.Pointer(&version))); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, err, pass.ErrNoDevice)
	}
	l.version = int(version)
	for e, address := range l.entries {
		if x := entries[e]; address == 0 && !x.optional {
			return nil, fmt.Errorf("driver: %s, of CUDA %s, has no %s: want a driver of CUDA %s or newer: %w",
				path, release(l.version), x.name, release(max(x.from, MinVersion)), pass.ErrNoDevice)
		}
	}
	if err := l.call(cuInit, 0); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, err, pass.ErrNoDevice)
	}
	return l, nil
}

// release writes a version as NVIDIA does: 12.3 for 12030.
func release(version int) string { return fmt.Sprintf("%d.%d", version/1000, version%1000/10) }

// call calls an entry point whose arguments are all words. What they point to stays in
// place while it runs.
//
//go:uintptrescapes
func (l *library) call(e entry, args ...uintptr) error {
	r, _, _ := purego.SyscallN(l.entries[e], args...)
	if code := int32(r); code != 0 {
		return l.failure(e, int(code))
	}
	return nil
}

// scratch is the memory of a call that shall allocate nothing. It stays in place.
type scratch struct {
	args [5]uintptr
	out  uintptr
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// plain calls an entry point that is given no memory of Go, five arguments at most. It
// allocates nothing unless there is an error: calls that are made in every run use it.
func (l *library) plain(e entry, args ...uintptr) error {
	s := scratches.Get().(*scratch)
	n := copy(s.args[:], args)
	r, _, _ := purego.SyscallN(l.entries[e], s.args[:n]...)
	scratches.Put(s)
	if code := int32(r); code != 0 {
		return l.failure(e, int(code))
	}
	return nil
}

// asked calls an entry point whose one argument is where its answer goes.
func (l *library) asked(e entry) (uintptr, error) {
	s := scratches.Get().(*scratch)
	s.out = 0
	s.args[0] = uintptr(unsafe.Pointer(&s.out))
	r, _, _ := purego.SyscallN(l.entries[e], s.args[:1]...)
	out := s.out
	scratches.Put(s)
	if code := int32(r); code != 0 {
		return 0, l.failure(e, int(code))
	}
	return out, nil
}

// failure makes an error of a code.
func (l *library) failure(e entry, code int) error {
	return &Error{
		Code: code,
		Name: l.text(cuGetErrorName, code, "no name"),
		Text: l.text(cuGetErrorString, code, "no description"),
		Call: entries[e].name,
	}
}

// text asks for a text about a code.
func (l *library) text(e entry, code int, otherwise string) string {
	var s *byte
	r, _, _ := purego.SyscallN(l.entries[e], uintptr(code), uintptr(unsafe.Pointer(&s)))
	if int32(r) != 0 || s == nil {
		return otherwise
	}
	n := 0
	for n < 4096 && *(*byte)(unsafe.Add(unsafe.Pointer(s), n)) != 0 {
		n++
	}
	return strings.ToValidUTF8(string(unsafe.Slice(s, n)), "?")
}

// optional returns an error for an entry point that this library does not have.
func (l *library) optional(e entry) error {
	if l.entries[e] != 0 {
		return nil
	}
	return fmt.Errorf("driver: %s, of CUDA %s, has no %s, which needs %s: %w",
		l.path, release(l.version), entries[e].name, release(entries[e].from), pass.ErrUnsupported)
}

// Path implements Driver.
func (l *library) Path() string { return l.path }

// Version implements Driver.
func (l *library) Version() (int, error) { return l.version, nil }

// Close implements Driver. The library stays loaded: it has threads of its own, which
// run its code.
func (l *library) Close() error { return nil }
