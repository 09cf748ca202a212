package cuda

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// memory is a piece of device memory that has one owner.
type memory struct {
	d     *device
	label string
	at    driver.Pointer
	bytes int
}

// alloc makes memory of that many bytes, whose contents are undefined.
func (d *device) alloc(label string, bytes int) (*memory, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("%s: %d bytes: %w", label, bytes, pass.ErrInvalid)
	}
	if err := d.gone(); err != nil {
		return nil, err
	}
	size := max(bytes, 16)
	if err := d.ledger.reserve(int64(size)); err != nil {
		return nil, fmt.Errorf("%s: %w", label, err)
	}
	m := &memory{d: d, label: label, bytes: size}
	err := d.do(func() (err error) {
		m.at, err = d.drv.Alloc(uint64(size))
		return err
	})
	if err != nil {
		d.ledger.release(int64(size))
		return nil, fmt.Errorf("%s: %d bytes%s: %w", label, size, d.free(), err)
	}
	return m, nil
}

// free says how much memory is left, for error messages.
func (d *device) free() string {
	var free, total uint64
	err := d.do(func() (err error) {
		free, total, err = d.drv.MemInfo()
		return err
	})
	if err != nil {
		return ""
	}
	return fmt.Sprintf(", with %d of %d free", free, total)
}

// Free implements backend.Memory. It may be called on nil.
func (m *memory) Free() {
	if m == nil || m.at == 0 {
		return
	}
	at := m.at
	m.at = 0
	m.d.ledger.release(int64(m.bytes))
	if err := m.d.do(func() error { return m.d.drv.Free(at) }); err != nil && m.d.gone() == nil {
		m.d.log.Warn("cuda: free", "memory", m.label, "error", err)
	}
}

// zero makes memory with all bits 0.
func (d *device) zero(label string, bytes int) (*memory, error) {
	m, err := d.alloc(label, (bytes+3)/4*4)
	if err != nil {
		return nil, err
	}
	err = d.do(func() error { return d.drv.Set32(m.at, 0, uint64(m.bytes/4), d.loads) })
	if err == nil {
		err = d.settle(d.loads, d.watchdog)
	}
	if err != nil {
		m.Free()
		return nil, fmt.Errorf("%s: %w", label, err)
	}
	return m, nil
}

// upload makes memory with the given contents.
func (d *device) upload(ctx context.Context, label string, b []byte) (*memory, error) {
	m, err := d.alloc(label, len(b))
	if err != nil {
		return nil, err
	}
	next := func(dst []byte, from int) error { copy(dst, b[from:]); return nil }
	if err := d.fill(ctx, m, 0, next, len(b)); err != nil {
		m.Free()
		return nil, err
	}
	return m, nil
}

// fill sets bytes of memory from at on to what next makes, piece by piece, the piece's
// first byte being number from. While one piece travels the next is made.
func (d *device) fill(ctx context.Context, m *memory, at int, next func(dst []byte, from int) error, bytes int) error {
	var busy *pinned
	defer func() { d.release(busy) }()
	for from := 0; from < bytes; from += stagingBytes {
		p, err := d.another(ctx, busy)
		if err != nil {
			return err
		}
		if p == busy {
			busy = nil
		}
		part := p.data[:min(stagingBytes, bytes-from)]
		if err = produce(next, part, from); err == nil {
			err = d.move(p, func() error {
				return d.drv.CopyToDevice(m.at+driver.Pointer(at+from), p.at, uint64(len(part)), d.loads)
			})
		}
		if err == nil {
			err = d.arrive(busy)
		}
		if err != nil {
			d.release(p)
			return err
		}
		d.release(busy)
		busy = p
	}
	return d.arrive(busy)
}

// produce calls what makes the contents of memory. It may run code of the caller, whose
// panic must not take a staging buffer with it.
func produce(next func(dst []byte, from int) error, dst []byte, from int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while bytes from %d on were read: %v: %w", from, p, pass.ErrInvalid)
		}
	}()
	return next(dst, from)
}

// another returns a staging buffer to fill while the one in use travels: if there is none,
// that one, once it has arrived, since callers that wait for each other's would wait for
// ever.
func (d *device) another(ctx context.Context, busy *pinned) (*pinned, error) {
	if busy == nil {
		return d.staging.get(ctx, d)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case p := <-d.staging.idle:
		if p != nil {
			return p, nil
		}
		return d.staging.make(d)
	default:
		if err := d.arrive(busy); err != nil {
			return nil, err
		}
		return busy, nil
	}
}

// fetch copies bytes of memory to the host.
func (d *device) fetch(ctx context.Context, dst []byte, m *memory, at int) error {
	p, err := d.staging.get(ctx, d)
	if err != nil {
		return err
	}
	defer d.release(p)
	for len(dst) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(len(dst), stagingBytes)
		err := d.move(p, func() error {
			return d.drv.CopyToHost(p.at, m.at+driver.Pointer(at), uint64(n), d.loads)
		})
		if err == nil {
			err = d.arrive(p)
		}
		if err != nil {
			return err
		}
		copy(dst, p.data[:n])
		dst, at = dst[n:], at+n
	}
	return nil
}

// move starts a copy to or from a staging buffer.
func (d *device) move(p *pinned, start func() error) error {
	p.state = moving
	err := d.do(func() error {
		if err := start(); err != nil {
			return err
		}
		return d.drv.Record(p.moved, d.loads)
	})
	if err != nil {
		p.state = stuck // the copy may be under way, without an event behind it
	}
	return err
}

// arrive waits until what a staging buffer was last used for is done.
func (d *device) arrive(p *pinned) error {
	if p == nil || p.state == still {
		return nil
	}
	err := d.until(d.watchdog, func() (done bool, err error) {
		err = d.do(func() error {
			done, err = d.drv.QueryEvent(p.moved)
			return err
		})
		return done, err
	})
	p.state = still
	if err != nil {
		p.state = stuck
	}
	return err
}

// release takes a staging buffer back, once nothing travels through it. One of which that
// cannot be said is set aside: the device may yet read it or write to it.
func (d *device) release(p *pinned) {
	switch {
	case p == nil:
	case p.state == stuck || d.arrive(p) != nil:
		d.staging.lose(p)
	default:
		d.staging.idle <- p
	}
}

// Pieces in which transfers go, and how many may be under way on a device.
const (
	stagingBytes   = 8 << 20
	stagingBuffers = 3
)

// pinned is page-locked memory of the host.
type pinned struct {
	at    uintptr
	data  []byte
	moved driver.Event // behind the last copy
	state motion
}

// A motion says what the device does with page-locked memory.
type motion int

const (
	still  motion = iota // nothing
	moving               // a copy, until the event
	stuck                // nobody knows: a copy failed, or did not end in time
)

// staging is the page-locked buffers through which a device's transfers go.
type staging struct {
	idle chan *pinned // nil entries have not been made

	mu   sync.Mutex
	lost []*pinned // that nobody may use any more
}

func newStaging() *staging {
	s := &staging{idle: make(chan *pinned, stagingBuffers)}
	for range stagingBuffers {
		s.idle <- nil
	}
	return s
}

// get returns a buffer that nobody uses.
func (s *staging) get(ctx context.Context, d *device) (*pinned, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var p *pinned
	select {
	case p = <-s.idle:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p != nil {
		return p, nil
	}
	return s.make(d)
}

// make makes a buffer in the place of an entry that was taken.
func (s *staging) make(d *device) (*pinned, error) {
	p := &pinned{}
	err := d.do(func() (err error) {
		if p.at, err = d.drv.HostAlloc(stagingBytes); err != nil {
			return err
		}
		p.data = hostBytes(p.at, stagingBytes)
		if p.moved, err = d.drv.CreateEvent(); err != nil {
			d.drv.HostFree(p.at)
		}
		return err
	})
	if err != nil {
		s.idle <- nil
		return nil, fmt.Errorf("%d bytes of page-locked memory: %w", stagingBytes, err)
	}
	return p, nil
}

// lose sets a buffer aside until the device closes. Another is made in its place.
func (s *staging) lose(p *pinned) {
	s.mu.Lock()
	s.lost = append(s.lost, p)
	s.mu.Unlock()
	s.idle <- nil
}

// free gives the memory up. Nobody moves anything any more.
func (s *staging) free(drv driver.Driver) {
	all := s.lost
	for range stagingBuffers {
		all = append(all, <-s.idle)
	}
	for _, p := range all {
		if p != nil {
			drv.DestroyEvent(p.moved)
			drv.HostFree(p.at)
		}
	}
}

// hostBytes returns memory of the host that is not Go's.
func hostBytes(at uintptr, n int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), n)
}

// bytesOf returns the bytes of words.
func bytesOf(w []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), 4*len(w))
}

// A ledger counts the bytes that a device holds, within a limit.
type ledger struct {
	limit int64 // 0: none
	held  atomic.Int64
}

func (l *ledger) reserve(bytes int64) error {
	if held := l.held.Add(bytes); l.limit > 0 && held > l.limit {
		l.held.Add(-bytes)
		return fmt.Errorf("%d bytes, with %d of the budget of %d held: %w", bytes, held-bytes, l.limit, pass.ErrOutOfMemory)
	}
	return nil
}

func (l *ledger) release(bytes int64) { l.held.Add(-bytes) }
