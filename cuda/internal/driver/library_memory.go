//go:build (linux && (amd64 || arm64) && !android) || (windows && amd64)

package driver

import "unsafe"

// Alloc implements Driver.
func (l *library) Alloc(bytes uint64) (Pointer, error) {
	var p Pointer
	err := l.call(cuMemAlloc, uintptr(unsafe.Pointer(&p)), uintptr(bytes))
	return p, err
}

// Free implements Driver.
func (l *library) Free(p Pointer) error { return l.plain(cuMemFree, uintptr(p)) }

// HostAlloc implements Driver.
func (l *library) HostAlloc(bytes uint64) (uintptr, error) {
	var p uintptr
	err := l.call(cuMemHostAlloc, uintptr(unsafe.Pointer(&p)), uintptr(bytes), 0)
	return p, err
}

// HostFree implements Driver.
func (l *library) HostFree(p uintptr) error { return l.plain(cuMemFreeHost, p) }

// Granularity implements Driver.
func (l *library) Granularity(ordinal int) (uint64, error) {
	var n uint64
	prop := devicePhysical(ordinal)
	err := l.call(cuMemGetAllocationGranularity, uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(&prop)), granularityMinimum)
	return n, err
}

// Reserve implements Driver.
func (l *library) Reserve(bytes uint64) (Pointer, error) {
	var p Pointer
	err := l.call(cuMemAddressReserve, uintptr(unsafe.Pointer(&p)), uintptr(bytes), 0, 0, 0)
	return p, err
}

// Unreserve implements Driver.
func (l *library) Unreserve(p Pointer, bytes uint64) error {
	return l.plain(cuMemAddressFree, uintptr(p), uintptr(bytes))
}

// Create implements Driver.
func (l *library) Create(ordinal int, bytes uint64) (Physical, error) {
	var m Physical
	prop := devicePhysical(ordinal)
	err := l.call(cuMemCreate, uintptr(unsafe.Pointer(&m)), uintptr(bytes), uintptr(unsafe.Pointer(&prop)), 0)
	return m, err
}

// Release implements Driver.
func (l *library) Release(m Physical) error { return l.plain(cuMemRelease, uintptr(m)) }

// Map implements Driver.
func (l *library) Map(ordinal int, p Pointer, bytes uint64, m Physical) error {
	if err := l.call(cuMemMap, uintptr(p), uintptr(bytes), 0, uintptr(m), 0); err != nil {
		return err
	}
	access := memAccess{location: devicePhysical(ordinal).location, flags: accessReadWrite}
	err := l.call(cuMemSetAccess, uintptr(p), uintptr(bytes), uintptr(unsafe.Pointer(&access)), 1)
	if err != nil {
		_ = l.Unmap(p, bytes) // the reason is the first error
	}
	return err
}

// Unmap implements Driver.
func (l *library) Unmap(p Pointer, bytes uint64) error {
	return l.plain(cuMemUnmap, uintptr(p), uintptr(bytes))
}

// CopyToDevice implements Driver.
func (l *library) CopyToDevice(dst Pointer, src uintptr, bytes uint64, s Stream) error {
	return l.plain(cuMemcpyHtoDAsync, uintptr(dst), src, uintptr(bytes), uintptr(s))
}

// CopyToHost implements Driver.
func (l *library) CopyToHost(dst uintptr, src Pointer, bytes uint64, s Stream) error {
	return l.plain(cuMemcpyDtoHAsync, dst, uintptr(src), uintptr(bytes), uintptr(s))
}

// CopyOnDevice implements Driver.
func (l *library) CopyOnDevice(dst, src Pointer, bytes uint64, s Stream) error {
	return l.plain(cuMemcpyDtoDAsync, uintptr(dst), uintptr(src), uintptr(bytes), uintptr(s))
}

// Set32 implements Driver.
func (l *library) Set32(dst Pointer, value uint32, n uint64, s Stream) error {
	return l.plain(cuMemsetD32Async, uintptr(dst), uintptr(value), uintptr(n), uintptr(s))
}
