// Package emulate runs CUDA kernels on the host. `make cuda-emulated` compiles the same
// sources that GPUs get with the host's C++ compiler; threads of a block are fibers, and
// what kernels do beyond plain C++ goes through wrappers that have a second, slow and
// strict form here (see host/host.h). Memory of the device is memory of the host.
//
// It finds what a GPU may hide: missing barriers, because the order of threads is drawn at
// random; reads and writes outside of memory, where a page that cannot be accessed lies
// behind it; shared memory that is used before it is written, which holds NaN; copies and
// bulk copies that are used before they are waited for; blocks of a cluster that end while
// something is on its way to them; vectors that are not aligned.
package emulate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A Library is compiled kernels. It may be used from several goroutines at a time.
type Library struct {
	path   string
	handle uintptr
	run    func(entry uintptr, l *launch, text *byte, room uint64) int32
	seed   atomic.Uint64

	mu      sync.Mutex
	entries map[string]uintptr
}

// launch is emulate::Launch of host.h.
type launch struct {
	grid, block               [3]uint32
	shared, cooperative, size uint32
	_                         uint32
	seed                      uint64
	args                      unsafe.Pointer
}

// A Launch is one run of a kernel.
type Launch struct {
	Grid, Block [3]uint32
	Shared      uint32 // dynamic shared memory, bytes
	Cooperative bool   // all blocks run together
	Args        []byte // the struct that the kernel takes
}

// Open loads a library that `make cuda-emulated` made. It is never unloaded. If there is
// no file the error is [os.ErrNotExist].
func Open(path string) (*Library, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("emulate: %w", err)
	}
	h, err := load(path)
	if err != nil {
		return nil, fmt.Errorf("emulate: %s: %w", path, err)
	}
	f, err := symbol(h, "tandem_emulate")
	if err != nil {
		return nil, fmt.Errorf("emulate: %s is no library of kernels: %w", path, err)
	}
	l := &Library{path: path, handle: h, entries: map[string]uintptr{}}
	bind(&l.run, f)
	return l, nil
}

// Seed sets from what the order of threads is drawn from here on. Each launch draws anew,
// from the next number.
func (l *Library) Seed(n uint64) { l.seed.Store(n) }

// entry returns the description of a kernel in the library.
func (l *Library) entry(name string) (uintptr, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, ok := l.entries[name]; ok {
		return at, nil
	}
	at, err := symbol(l.handle, "tandem_entry_"+name)
	if err != nil {
		return 0, fmt.Errorf("emulate: kernel %s is not in %s", name, l.path)
	}
	l.entries[name] = at
	return at, nil
}

// Has reports whether the library has a kernel.
func (l *Library) Has(name string) bool {
	_, err := l.entry(name)
	return err == nil
}

// Launch runs a kernel and returns when it is done. A fault, a deadlock or a misuse is an
// error that names block and thread; memory may have been written by then.
func (l *Library) Launch(name string, k Launch) error {
	entry, err := l.entry(name)
	if err != nil {
		return err
	}
	for i := range k.Grid {
		if k.Grid[i] == 0 || k.Block[i] == 0 {
			return fmt.Errorf("emulate: kernel %s: grid %v of blocks %v has no threads", name, k.Grid, k.Block)
		}
	}
	c := &launch{grid: k.Grid, block: k.Block, shared: k.Shared, size: uint32(len(k.Args)), seed: l.seed.Add(1)}
	c.args = unsafe.Pointer(unsafe.SliceData(k.Args))
	if k.Cooperative {
		c.cooperative = 1
	}
	// The struct holds an address of memory of Go, which the library reads during the call.
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(c)
	if len(k.Args) > 0 {
		pin.Pin(unsafe.SliceData(k.Args))
	}
	text := make([]byte, 1200)
	if l.run(entry, c, unsafe.SliceData(text), uint64(len(text))) != 0 {
		text, _, _ = bytes.Cut(text, []byte{0})
		return errors.New("emulate: " + string(text))
	}
	return nil
}
