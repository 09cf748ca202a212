//go:build linux || darwin

package mapped

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/tandem-gpu/tandem/pass"
)

// A mapping is a file in memory. Close waits for reads.
type mapping struct {
	mu   sync.RWMutex
	data []byte // nil: closed
}

// mapFile maps a file, and reports whether that was possible.
func mapFile(file *os.File, size int64) (source, bool) {
	if size <= 0 || size > math.MaxInt {
		return nil, false
	}
	data, err := syscall.Mmap(int(file.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return nil, false
	}
	return &mapping{data: data}, true
}

func (m *mapping) ReadAt(b []byte, at int64) (n int, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	switch {
	case m.data == nil:
		return 0, fmt.Errorf("read of a mapped file: %w", pass.ErrClosed)
	case at < 0:
		return 0, fmt.Errorf("read of a mapped file at %d: %w", at, pass.ErrInvalid)
	case at >= int64(len(m.data)):
		return 0, io.EOF
	}
	// Pages that the file no longer has, because somebody cut it, or that cannot be
	// read from the disk, fault.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			n, err = 0, fmt.Errorf("read of a mapped file: %v: %w", fault, io.ErrUnexpectedEOF)
		}
	}()
	if n = copy(b, m.data[at:]); n < len(b) {
		err = io.EOF
	}
	return n, err
}

func (m *mapping) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	data := m.data
	m.data = nil
	if data == nil {
		return nil
	}
	return syscall.Munmap(data)
}
