// Package parallel spreads work on memory over processors: one of them moves a third of
// what memory can, or less.
package parallel

import (
	"runtime"
	"sync"
	"unsafe"
)

const (
	grain = 1 << 18 // bytes that are worth a goroutine
	most  = 8       // goroutines, with which memory is busy
)

// For calls work for parts of [0, n) that together are all of it, side by side if they are
// large: each element stands for so many bytes. It returns when all calls have.
func For(n, bytes int, work func(from, to int)) {
	parts := min(n*bytes/grain, most, runtime.GOMAXPROCS(0), n)
	if parts <= 1 {
		work(0, n)
		return
	}
	var rest sync.WaitGroup
	for i := 1; i < parts; i++ {
		rest.Add(1)
		go func() {
			defer rest.Done()
			work(i*n/parts, (i+1)*n/parts)
		}()
	}
	work(0, n/parts)
	rest.Wait()
}

// Copy is the builtin copy for what may be large.
func Copy[T byte | uint32 | float32](dst, src []T) {
	n, size := min(len(dst), len(src)), int(unsafe.Sizeof(*new(T)))
	if n*size < 2*grain { // without the closure, which would be allocated
		copy(dst, src)
		return
	}
	For(n, size, func(from, to int) { copy(dst[from:to], src[from:to]) })
}
