//go:build (linux && (amd64 || arm64) && !android) || (windows && amd64)

package driver

import (
	"unsafe"

	"github.com/ebitengine/purego"
)

// CreateStream implements Driver.
func (l *library) CreateStream(priority int) (Stream, error) {
	var s Stream
	err := l.call(cuStreamCreateWithPriority, uintptr(unsafe.Pointer(&s)), streamNonBlocking, uintptr(priority))
	return s, err
}

// DestroyStream implements Driver.
func (l *library) DestroyStream(s Stream) error { return l.plain(cuStreamDestroy, uintptr(s)) }

// Synchronize implements Driver.
func (l *library) Synchronize(s Stream) error { return l.plain(cuStreamSynchronize, uintptr(s)) }

// Query implements Driver.
func (l *library) Query(s Stream) (bool, error) { return l.ready(cuStreamQuery, uintptr(s)) }

// ready calls an entry point that says whether something is done.
func (l *library) ready(e entry, handle uintptr) (bool, error) {
	s := scratches.Get().(*scratch)
	s.args[0] = handle
	r, _, _ := purego.SyscallN(l.entries[e], s.args[:1]...)
	scratches.Put(s)
	switch code := int32(r); code {
	case 0:
		return true, nil
	case NotReady:
		return false, nil
	default:
		return false, l.failure(e, int(code))
	}
}

// CreateEvent implements Driver.
func (l *library) CreateEvent() (Event, error) {
	var e Event
	err := l.call(cuEventCreate, uintptr(unsafe.Pointer(&e)), 0)
	return e, err
}

// DestroyEvent implements Driver.
func (l *library) DestroyEvent(e Event) error { return l.plain(cuEventDestroy, uintptr(e)) }

// Record implements Driver.
func (l *library) Record(e Event, s Stream) error {
	return l.plain(cuEventRecord, uintptr(e), uintptr(s))
}

// QueryEvent implements Driver.
func (l *library) QueryEvent(e Event) (bool, error) { return l.ready(cuEventQuery, uintptr(e)) }

// Elapsed implements Driver.
func (l *library) Elapsed(from, to Event) (float32, error) {
	var ms float32
	err := l.call(cuEventElapsedTime, uintptr(unsafe.Pointer(&ms)), uintptr(from), uintptr(to))
	return ms, err
}
