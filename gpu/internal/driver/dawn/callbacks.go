//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"sync"
	"unsafe"
)

// callbacks are the addresses of the functions that the library calls.
type callbacks struct {
	object, scope, status, done, uncaptured, lost, load, store uintptr
}

// theCallbacks are made once in a process: there is a bounded number, and they are
// never freed.
var theCallbacks = sync.OnceValue(makeCallbacks)

// registry gives numbers to what callbacks are about. The library gets the number.
type registry[T any] struct {
	mu      sync.RWMutex
	last    uintptr
	entries map[uintptr]T
}

func (r *registry[T]) add(entry T) uintptr {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries == nil {
		r.entries = map[uintptr]T{}
	}
	r.last++
	r.entries[r.last] = entry
	return r.last
}

func (r *registry[T]) get(id uintptr) (entry T, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	entry, ok = r.entries[id]
	return entry, ok
}

func (r *registry[T]) remove(id uintptr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.entries, id)
}

var (
	operations registry[*operation]
	devices    registry[*device]
	caches     registry[*blobCache]
)

// outcome is what the callback of an operation said.
type outcome struct {
	status, kind uint32
	object       handle
	message      string
}

// operation is something that was started and whose callback has not run yet.
type operation struct {
	id   uintptr
	done chan struct{} // closed when the outcome is there
	outcome
}

func begin() *operation {
	op := &operation{done: make(chan struct{})}
	op.id = operations.add(op)
	return op
}

// finish is the callback of operations.
func finish(id uintptr, o outcome) {
	if op, ok := operations.get(id); ok {
		operations.remove(id)
		op.outcome = o
		close(op.done)
	}
}

// finished reports whether the callback has run.
func (op *operation) finished() bool {
	select {
	case <-op.done:
		return true
	default:
		return false
	}
}

// info asks for callback to be called when the operation is waited for.
func (op *operation) info(callback uintptr) *callbackInfo {
	return &callbackInfo{mode: modeWaitAnyOnly, callback: callback, userdata1: op.id}
}

func onDone(id uintptr, serial uint64) {
	if d, ok := devices.get(id); ok {
		d.finishedSerial(serial)
	}
}

func onUncaptured(id uintptr, kind uint32, message string) {
	if d, ok := devices.get(id); ok {
		d.late.add(kind, message)
	}
}

func onLost(id uintptr, reason uint32, message string) {
	if d, ok := devices.get(id); ok && reason != lostDestroyed && reason != lostCancelled {
		d.late.lose(message)
	}
}

// maxKey bounds the keys of compiled kernels, which have some hundred bytes. Libraries
// of another time call with other arguments, of which the first is an address.
const maxKey = 1 << 20

// onLoad copies what the cache has for a key to value, if it fits, and returns its
// size, or 0. It is asked for the size first.
func onLoad(keySize uintptr, key *byte, valueSize uintptr, value *byte, id, _ uintptr) uintptr {
	if keySize > maxKey || valueSize > maxCache {
		return 0
	}
	c, ok := caches.get(id)
	if !ok {
		return 0
	}
	data := c.load(bytesAt(key, keySize))
	if value != nil && len(data) <= int(valueSize) {
		copy(bytesAt(value, valueSize), data)
	}
	return uintptr(len(data))
}

func onStore(keySize uintptr, key *byte, valueSize uintptr, value *byte, id, _ uintptr) uintptr {
	if keySize > maxKey || valueSize > maxCache {
		return 0
	}
	if c, ok := caches.get(id); ok {
		c.store(bytesAt(key, keySize), bytesAt(value, valueSize))
	}
	return 0
}

// bytesAt is memory of the library, valid until the callback returns.
func bytesAt(p *byte, size uintptr) []byte {
	if p == nil {
		return nil
	}
	return unsafe.Slice(p, size)
}
