package drivertest

import (
	"unsafe"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
)

const (
	granularity = 2 << 20
	alignment   = 256 // of allocations
	poison      = 0xFF
)

// piece is an allocation: pages around it may not be touched, and the bytes between it
// and them hold poison for as long as it lives.
type piece struct {
	owner *scope
	pages pages
	data  []byte
	slack [2][]byte // before and behind it
}

// space is a range of addresses, of which granules are mapped.
type space struct {
	owner  *scope
	pages  pages
	at     uint64 // offset of the first address, which is a multiple of granularity
	bytes  uint64
	mapped []driver.Physical // of each granule; 0: none
}

type physical struct {
	owner  *scope
	bytes  uint64
	mapped bool
}

func up(n, to uint64) uint64 { return (n + to - 1) / to * to }

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// newPiece makes an allocation that ends as near to the untouchable page as its alignment
// allows.
func newPiece(owner *scope, n uint64) (*piece, error) {
	body := up(n, alignment)
	inner := up(body, pageSize)
	p, err := reserve(inner + 2*pageSize)
	if err != nil {
		return nil, err
	}
	if err := p.open(pageSize, inner); err != nil {
		return nil, err
	}
	whole := p.data[pageSize:][:inner]
	fill(whole, poison)
	from := inner - body
	return &piece{owner: owner, pages: p, data: whole[from:][:n], slack: [2][]byte{whole[:from], whole[from+n:]}}, nil
}

func (p *piece) at() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(p.data))) }

// release gives the memory up and reports whether something was written around it.
func (p *piece) release() (overrun bool, err error) {
	for _, s := range p.slack {
		for _, b := range s {
			overrun = overrun || b != poison
		}
	}
	return overrun, p.pages.free()
}

// Alloc implements driver.Driver.
func (d *Driver) Alloc(bytes uint64) (p driver.Pointer, err error) {
	err = d.inside("Alloc", func(c *scope) error {
		if bytes == 0 {
			return wrong("Alloc", driver.InvalidValue, "no bytes")
		}
		if d.held(c.ordinal)+bytes > d.devices[c.ordinal].Memory {
			return Error("Alloc", driver.OutOfMemory)
		}
		m, err := newPiece(c, bytes)
		if err != nil {
			return wrong("Alloc", driver.OutOfMemory, "%v", err)
		}
		c.held += bytes
		p = driver.Pointer(m.at())
		d.pieces[p] = m
		return nil
	})
	return p, err
}

// Free implements driver.Driver. As the real one it waits for all work first.
func (d *Driver) Free(p driver.Pointer) error {
	return d.returning("Free", func(c *scope) error {
		d.finishAll(c)
		m := d.pieces[p]
		if m == nil || m.owner != c {
			return wrong("Free", driver.InvalidValue, "nothing lives at %#x", uint64(p))
		}
		delete(d.pieces, p)
		c.held -= uint64(len(m.data))
		return d.end("Free", c, m)
	})
}

// end releases a piece. Bytes written around it lose the context.
func (d *Driver) end(call string, c *scope, m *piece) error {
	n := len(m.data)
	overrun, err := m.release()
	switch {
	case err != nil:
		return wrong(call, driver.InvalidValue, "%v", err)
	case overrun && c.lost == nil:
		c.lost = wrong(call, driver.IllegalAddress, "something was written right before or behind a piece of %d bytes", n)
		return c.lost
	}
	return nil
}

// HostAlloc implements driver.Driver.
func (d *Driver) HostAlloc(bytes uint64) (p uintptr, err error) {
	err = d.inside("HostAlloc", func(c *scope) error {
		if bytes == 0 {
			return wrong("HostAlloc", driver.InvalidValue, "no bytes")
		}
		m, err := newPiece(c, bytes)
		if err != nil {
			return wrong("HostAlloc", driver.OutOfMemory, "%v", err)
		}
		p = m.at()
		d.host[p] = m
		return nil
	})
	return p, err
}

// HostFree implements driver.Driver.
func (d *Driver) HostFree(p uintptr) error {
	return d.returning("HostFree", func(c *scope) error {
		d.finishAll(c)
		m := d.host[p]
		if m == nil || m.owner != c {
			return wrong("HostFree", driver.InvalidValue, "nothing lives at %#x", p)
		}
		delete(d.host, p)
		return d.end("HostFree", c, m)
	})
}

// live returns the bytes of a range of device memory, or nil if they do not all live.
func (d *Driver) live(p driver.Pointer, n uint64) []byte {
	for at, m := range d.pieces {
		if p >= at && uint64(p-at) <= uint64(len(m.data)) && n <= uint64(len(m.data))-uint64(p-at) {
			return m.data[p-at:][:n]
		}
	}
	for at, s := range d.spaces {
		if p < at || uint64(p-at) > s.bytes || n > s.bytes-uint64(p-at) {
			continue
		}
		from := uint64(p - at)
		for g := from / granularity; g*granularity < from+n; g++ {
			if s.mapped[g] == 0 {
				return nil
			}
		}
		return s.pages.data[s.at+from:][:n]
	}
	return nil
}

// locked returns the bytes of a range of page-locked memory, or nil.
func (d *Driver) locked(p uintptr, n uint64) []byte {
	for at, m := range d.host {
		if p >= at && uint64(p-at) <= uint64(len(m.data)) && n <= uint64(len(m.data))-uint64(p-at) {
			return m.data[p-at:][:n]
		}
	}
	return nil
}
