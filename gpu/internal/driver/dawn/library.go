//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/tandem-gpu/tandem/pass"
)

// library is a loaded library.
type library struct {
	path   string
	opened uintptr // the system's name for it
	column
	functions [functionCount]uintptr

	mu   sync.Mutex
	kept handle // the instance that all providers share; 0: none yet
	// adapters are those of the instance, without f16 on NVIDIA devices and with it. They
	// are never given back.
	adapters map[bool][]adapter
}

// loaded are the libraries of the process by path. They are never unloaded.
var loaded struct {
	sync.Mutex
	libraries map[string]*library
}

// load loads the library and finds out which it is. The error wraps pass.ErrNoDevice.
func load(path string) (*library, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if l := loaded.libraries[path]; l != nil {
		return l, nil
	}
	h, err := openLibrary(path)
	if err != nil {
		return nil, fmt.Errorf("dawn: load %s: %w: %w", path, err, pass.ErrNoDevice)
	}
	l := &library{path: path, opened: h}
	if l.column, err = columnOf(func(name string) bool { return findSymbol(h, name) != 0 }); err != nil {
		return nil, fmt.Errorf("dawn: load %s: %w: %w", path, err, pass.ErrNoDevice)
	}
	for f, name := range functionNames {
		l.functions[f] = findSymbol(h, name)
	}
	if loaded.libraries == nil {
		loaded.libraries = map[string]*library{}
	}
	loaded.libraries[path] = l
	return l, nil
}

// call calls a function whose arguments are all words. What the arguments point to
// stays in place while it runs.
//
//go:uintptrescapes
func (l *library) call(f function, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(l.functions[f], args...)
	return r
}

// boolean calls a function that returns a WGPUBool.
//
//go:uintptrescapes
func (l *library) boolean(f function, args ...uintptr) bool {
	r, _, _ := purego.SyscallN(l.functions[f], args...)
	return uint32(r) != 0
}

// pointer is the memory of the library at an address that it returned.
func pointer(address uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}

// start calls a function that starts an operation, of count words and a callback info,
// and returns its future.
//
//go:uintptrescapes
func (l *library) start(op *operation, f function, count int, a, b, c, d uintptr) uint64 {
	r, _, _ := purego.SyscallN(l.functions[f], starting(op.args[:0], &op.info, count, a, b, c, d)...)
	return uint64(r)
}

// waitCall is a call of the function that waits, in memory that stays in place.
type waitCall struct {
	info futureWait
	args [4]uintptr
}

var waitCalls = sync.Pool{New: func() any { return new(waitCall) }}

// wait waits until the future's callback has run, at most so long. It reports whether
// it has.
func (l *library) wait(instance handle, future uint64, nanoseconds uint64) bool {
	w := waitCalls.Get().(*waitCall)
	w.info = futureWait{future: future}
	w.args = [4]uintptr{instance, 1, uintptr(unsafe.Pointer(&w.info)), uintptr(nanoseconds)}
	r, _, _ := purego.SyscallN(l.functions[instanceWaitAny], w.args[:]...)
	waitCalls.Put(w)
	return uint32(r) == waitSuccess
}
