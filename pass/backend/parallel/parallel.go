// Package parallel has what backends do on several processors of the host.
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

// Begin calls work in a goroutine of its own. The function that it returns waits until work
// has returned, and returns what it did; if work panics, that function does, with the same
// value. It is called once.
func Begin[T any](work func() T) (end func() T) {
	type outcome struct {
		result T
		panic  any
	}
	done := make(chan outcome, 1) // nobody waits here if nobody calls end
	go func() {
		var o outcome
		defer func() {
			o.panic = recover()
			done <- o
		}()
		o.result = work()
	}()
	return func() T {
		o := <-done
		if o.panic != nil {
			panic(o.panic)
		}
		return o.result
	}
}

// Copy is the builtin copy for what may be large: one processor moves a third of what
// memory can, or less. It allocates nothing: runs copy what goes in and comes out.
func Copy[T byte | uint32 | float32](dst, src []T) {
	size := int(unsafe.Sizeof(*new(T)))
	n := min(len(dst), len(src)) * size
	parts := min(n/grain, most, runtime.GOMAXPROCS(0))
	if parts < 2 {
		copy(dst, src)
		return
	}
	c := copiers.Get().(*copier)
	c.dst = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), n)
	c.src = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(src))), n)
	c.parts = parts
	c.rest.Add(parts - 1)
	for i := 1; i < parts; i++ {
		go c.work[i]()
	}
	c.part(0)
	c.rest.Wait()
	c.dst, c.src = nil, nil
	copiers.Put(c)
}

// A copier is what goroutines that copy have in common. Their functions are made once.
type copier struct {
	dst, src []byte
	parts    int
	rest     sync.WaitGroup
	work     [most]func()
}

var copiers = sync.Pool{New: func() any {
	c := &copier{}
	for i := range c.work {
		c.work[i] = func() {
			defer c.rest.Done()
			c.part(i)
		}
	}
	return c
}}

func (c *copier) part(i int) {
	from, to := i*len(c.dst)/c.parts, (i+1)*len(c.dst)/c.parts
	copy(c.dst[from:to], c.src[from:to])
}
