//go:build !linux

package drivertest

import "unsafe"

// pages are memory of Go, without pages that nobody may touch.
type pages struct {
	data []byte
}

const pageSize = 4096

const mostReserved = 256 << 20

func reserve(bytes uint64) (pages, error) {
	if bytes > mostReserved {
		return pages{}, Error("reserve", 2)
	}
	whole := make([]byte, bytes+pageSize)
	skip := -uintptr(unsafe.Pointer(&whole[0])) % pageSize
	return pages{whole[skip:][:bytes]}, nil
}

func (p pages) at() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(p.data))) }

func (p pages) open(from, bytes uint64) error { return nil }

func (p pages) shut(from, bytes uint64) error { return nil }

func (p pages) free() error { return nil }
