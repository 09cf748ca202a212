package cpu

import (
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/tandem-gpu/tandem/pass"
)

// memory is a row of elements, seen as words and as floats.
type memory struct {
	words  []uint32
	floats []float32
	ledger *ledger // that holds its bytes; nil: another memory's
}

// set makes m the given elements.
func (m *memory) set(words []uint32) {
	m.words = words
	m.floats = unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(words))), len(words))
}

// Free implements backend.Memory.
func (m *memory) Free() {
	if m.ledger != nil {
		m.ledger.release(4 * int64(len(m.words)))
	}
	m.words, m.floats = nil, nil
}

// newMemory makes n zero elements.
func newMemory(l *ledger, n int) (*memory, error) {
	if err := l.reserve(n, 4); err != nil {
		return nil, err
	}
	m := &memory{ledger: l}
	m.set(make([]uint32, n))
	return m, nil
}

// A ledger counts the bytes that a device holds, within a limit.
type ledger struct {
	limit int64
	held  atomic.Int64
}

// reserve counts n elements of the given size, or returns ErrOutOfMemory.
func (l *ledger) reserve(n, size int) error {
	const look = 64 << 20 // requests that are worth a look at what is free
	hi, lo := bits.Mul64(uint64(n), uint64(size))
	if n < 0 || hi != 0 || lo > 1<<62 {
		return fmt.Errorf("%d elements of %d bytes: %w", n, size, pass.ErrOutOfMemory)
	}
	bytes := int64(lo)
	if held := l.held.Add(bytes); held > l.limit {
		l.held.Add(-bytes)
		return fmt.Errorf("%d bytes, with %d of %d held: %w", bytes, held-bytes, l.limit, pass.ErrOutOfMemory)
	}
	if bytes >= look {
		if free, ok := meminfo("MemAvailable"); ok && bytes > free {
			l.held.Add(-bytes)
			return fmt.Errorf("%d bytes, with %d free in the machine: %w", bytes, free, pass.ErrOutOfMemory)
		}
	}
	return nil
}

func (l *ledger) release(bytes int64) { l.held.Add(-bytes) }

// machineMemory returns the bytes that a process may hope for.
func machineMemory() int64 {
	most := int64(1) << 62 // that an address reaches
	if bits.UintSize == 32 {
		most = 2 << 30
	}
	limit := min(64<<30, most)
	if total, ok := meminfo("MemTotal"); ok {
		limit = min(total, most)
	}
	if data, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && n > 0 {
			limit = min(limit, n)
		}
	}
	return limit
}

// meminfo returns a field of Linux's /proc/meminfo in bytes; ok is false elsewhere.
func meminfo(field string) (bytes int64, ok bool) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		if rest, found := strings.CutPrefix(line, field+":"); found {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n << 10, err == nil
		}
	}
	return 0, false
}
