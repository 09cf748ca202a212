package drivertest

import (
	"os"
	"syscall"
	"unsafe"
)

// pages are addresses of the host's memory.
type pages struct {
	data []byte
}

var pageSize = uint64(os.Getpagesize())

// reserve sets addresses apart, which nobody may touch.
func reserve(bytes uint64) (pages, error) {
	data, err := syscall.Mmap(-1, 0, int(bytes), syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	return pages{data}, err
}

func (p pages) at() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(p.data))) }

// open makes a part readable and writable.
func (p pages) open(from, bytes uint64) error {
	return syscall.Mprotect(p.data[from:from+bytes], syscall.PROT_READ|syscall.PROT_WRITE)
}

// shut makes a part untouchable again and gives its memory up.
func (p pages) shut(from, bytes uint64) error {
	if err := syscall.Madvise(p.data[from:from+bytes], syscall.MADV_DONTNEED); err != nil {
		return err
	}
	return syscall.Mprotect(p.data[from:from+bytes], syscall.PROT_NONE)
}

func (p pages) free() error { return syscall.Munmap(p.data) }
