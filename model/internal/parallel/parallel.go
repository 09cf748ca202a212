// Package parallel spreads loops over samples and frames on the host over processors: one
// of them moves a third of what memory can, or less.
package parallel

import "runtime"

const (
	grain = 1 << 18 // bytes that are worth a goroutine
	most  = 8       // goroutines, with which memory is busy
)

// For calls work for parts of [0, n) that together are all of it, side by side if they are
// large: each element stands for so many bytes. It returns when all calls have. If one
// panics, so does For, with the same value: whoever guards the caller's goroutine guards
// those beside it, too.
func For(n, bytes int, work func(from, to int)) {
	parts := min(n*bytes/grain, most, runtime.GOMAXPROCS(0), n)
	if parts <= 1 {
		work(0, n)
		return
	}
	ends := make(chan any, parts)
	for i := range parts {
		go func() {
			defer func() { ends <- recover() }()
			work(i*n/parts, (i+1)*n/parts)
		}()
	}
	var first any
	for range parts {
		if p := <-ends; first == nil {
			first = p
		}
	}
	if first != nil {
		panic(first)
	}
}
