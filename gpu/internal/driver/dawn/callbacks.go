//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"sync"
	"sync/atomic"
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

// take is get and remove at once.
func (r *registry[T]) take(id uintptr) (entry T, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry, ok = r.entries[id]
	delete(r.entries, id)
	return entry, ok
}

func (r *registry[T]) remove(id uintptr) { r.take(id) }

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

// operation is something that was started and is waited for: its own callback sets the
// outcome, or, for a submission, the device's count of finished ones tells.
type operation struct {
	id     uintptr // in operations
	device *device // that may be lost or closed meanwhile; nil: none yet
	serial uint64  // of the submission that is waited for; 0: the callback is
	done   atomic.Bool
	outcome

	info callbackInfo
	args [12]uintptr // of the call that starts it, in memory that stays in place
}

var spareOperations = sync.Pool{New: func() any { return new(operation) }}

// begin enters an operation whose callback, one of theCallbacks, sets its outcome.
func begin(d *device, callback uintptr) *operation {
	op := spareOperations.Get().(*operation)
	op.device, op.serial, op.outcome = d, 0, outcome{}
	op.done.Store(false)
	op.id = operations.add(op)
	op.info = callbackInfo{mode: modeWaitAnyOnly, callback: callback, userdata1: op.id}
	return op
}

// submission is an operation that is over when the submission is finished.
func submission(d *device, serial uint64) *operation {
	op := spareOperations.Get().(*operation)
	op.device, op.serial = d, serial
	return op
}

// free gives the operation back for reuse if no callback can still come for it.
func (op *operation) free() {
	if op.serial != 0 || op.done.Load() {
		op.device, op.outcome = nil, outcome{}
		spareOperations.Put(op)
	}
}

// finish is the callback of operations.
func finish(id uintptr, o outcome) {
	if op, ok := operations.take(id); ok {
		op.outcome = o
		op.done.Store(true)
	}
}

// finished reports whether it is over, or why it never will be.
func (op *operation) finished() (bool, error) {
	d := op.device
	if d == nil {
		return op.done.Load(), nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("wait"); err != nil {
		return false, err
	}
	if op.serial != 0 {
		return d.done.Load() >= op.serial, nil
	}
	return op.done.Load(), nil
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
