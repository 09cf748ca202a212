//go:build (linux && (amd64 || arm64) && !android) || (windows && amd64)

package driver

import (
	"bytes"
	"strings"
	"unsafe"
)

// DeviceCount implements Driver.
func (l *library) DeviceCount() (int, error) {
	var n int32
	err := l.call(cuDeviceGetCount, uintptr(unsafe.Pointer(&n)))
	return int(n), err
}

// device returns the handle of a device.
func (l *library) device(ordinal int) (uintptr, error) {
	var d int32
	err := l.call(cuDeviceGet, uintptr(unsafe.Pointer(&d)), uintptr(ordinal))
	return uintptr(d), err
}

// DeviceName implements Driver.
func (l *library) DeviceName(ordinal int) (string, error) {
	d, err := l.device(ordinal)
	if err != nil {
		return "", err
	}
	name := make([]byte, 256)
	if err := l.call(cuDeviceGetName, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)-1), d); err != nil {
		return "", err
	}
	name, _, _ = bytes.Cut(name, []byte{0})
	return strings.ToValidUTF8(string(name), "?"), nil
}

// DeviceUUID implements Driver.
func (l *library) DeviceUUID(ordinal int) ([16]byte, error) {
	var id [16]byte
	d, err := l.device(ordinal)
	if err == nil {
		err = l.call(cuDeviceGetUUID, uintptr(unsafe.Pointer(&id)), d)
	}
	return id, err
}

// DeviceMemory implements Driver.
func (l *library) DeviceMemory(ordinal int) (uint64, error) {
	var n uint64
	d, err := l.device(ordinal)
	if err == nil {
		err = l.call(cuDeviceTotalMem, uintptr(unsafe.Pointer(&n)), d)
	}
	return n, err
}

// Attribute implements Driver.
func (l *library) Attribute(ordinal int, a Attribute) (int, error) {
	var v int32
	d, err := l.device(ordinal)
	if err == nil {
		err = l.call(cuDeviceGetAttribute, uintptr(unsafe.Pointer(&v)), uintptr(a), d)
	}
	return int(v), err
}

// CreateContext implements Driver.
func (l *library) CreateContext(ordinal int) (Context, error) {
	var c Context
	d, err := l.device(ordinal)
	if err == nil {
		err = l.call(cuCtxCreate, uintptr(unsafe.Pointer(&c)), 0, d)
	}
	return c, err
}

// DestroyContext implements Driver.
func (l *library) DestroyContext(c Context) error { return l.plain(cuCtxDestroy, uintptr(c)) }

// SetCurrent implements Driver.
func (l *library) SetCurrent(c Context) error { return l.plain(cuCtxSetCurrent, uintptr(c)) }

// Current implements Driver.
func (l *library) Current() (Context, error) {
	c, err := l.asked(cuCtxGetCurrent)
	return Context(c), err
}

// MemInfo implements Driver.
func (l *library) MemInfo() (free, total uint64, err error) {
	err = l.call(cuMemGetInfo, uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total)))
	return free, total, err
}

// PriorityRange implements Driver.
func (l *library) PriorityRange() (least, greatest int, err error) {
	var a, b int32
	err = l.call(cuCtxGetStreamPriorityRange, uintptr(unsafe.Pointer(&a)), uintptr(unsafe.Pointer(&b)))
	return int(a), int(b), err
}
