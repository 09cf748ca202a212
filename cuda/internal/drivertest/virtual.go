package drivertest

import "github.com/tandem-gpu/tandem/cuda/internal/driver"

// virtual begins a call about mapped memory.
func (d *Driver) virtual(call string, c *scope, sizes ...uint64) error {
	if d.devices[c.ordinal].NoVirtual {
		return Error(call, driver.NotSupported)
	}
	for _, n := range sizes {
		if n == 0 || n%granularity != 0 {
			return wrong(call, driver.InvalidValue, "%d is no multiple of %d", n, granularity)
		}
	}
	return nil
}

// Granularity implements driver.Driver.
func (d *Driver) Granularity(ordinal int) (uint64, error) {
	return granularity, d.inside("Granularity", func(c *scope) error { return d.virtual("Granularity", c) })
}

// Reserve implements driver.Driver.
func (d *Driver) Reserve(bytes uint64) (p driver.Pointer, err error) {
	err = d.inside("Reserve", func(c *scope) error {
		if err := d.virtual("Reserve", c, bytes); err != nil {
			return err
		}
		pages, err := reserve(bytes + 2*granularity)
		if err != nil {
			return wrong("Reserve", driver.OutOfMemory, "%v", err)
		}
		skip := up(uint64(pages.at())+pageSize, granularity) - uint64(pages.at())
		s := &space{owner: c, pages: pages, at: skip, bytes: bytes, mapped: make([]driver.Physical, bytes/granularity)}
		p = driver.Pointer(uint64(pages.at()) + skip)
		d.spaces[p] = s
		return nil
	})
	return p, err
}

// Unreserve implements driver.Driver.
func (d *Driver) Unreserve(p driver.Pointer, bytes uint64) error {
	return d.returning("Unreserve", func(c *scope) error {
		s := d.spaces[p]
		if s == nil || s.bytes != bytes {
			return wrong("Unreserve", driver.InvalidValue, "%d bytes were not reserved at %#x", bytes, uint64(p))
		}
		for _, m := range s.mapped {
			if m != 0 {
				return wrong("Unreserve", driver.InvalidValue, "memory is still mapped")
			}
		}
		delete(d.spaces, p)
		if err := s.pages.free(); err != nil {
			return wrong("Unreserve", driver.InvalidValue, "%v", err)
		}
		return nil
	})
}

// Create implements driver.Driver.
func (d *Driver) Create(ordinal int, bytes uint64) (m driver.Physical, err error) {
	err = d.inside("Create", func(c *scope) error {
		if err := d.virtual("Create", c, bytes); err != nil {
			return err
		}
		if ordinal != c.ordinal {
			return Error("Create", driver.InvalidDevice)
		}
		if d.held(c.ordinal)+bytes > d.devices[c.ordinal].Memory {
			return Error("Create", driver.OutOfMemory)
		}
		c.held += bytes
		m = driver.Physical(d.handle())
		d.physical[m] = &physical{owner: c, bytes: bytes}
		return nil
	})
	return m, err
}

// Release implements driver.Driver. Memory that is mapped lives until it is unmapped; here
// that must come first.
func (d *Driver) Release(m driver.Physical) error {
	return d.returning("Release", func(c *scope) error {
		x := d.physical[m]
		switch {
		case x == nil || x.owner != c:
			return Error("Release", driver.InvalidValue)
		case x.mapped:
			return wrong("Release", driver.InvalidValue, "the memory is still mapped")
		}
		delete(d.physical, m)
		c.held -= x.bytes
		return nil
	})
}

// granules finds the space and the granules of a range.
func (d *Driver) granules(call string, p driver.Pointer, bytes uint64) (*space, []driver.Physical, uint64, error) {
	for at, s := range d.spaces {
		if p < at || uint64(p-at) >= s.bytes {
			continue
		}
		from := uint64(p - at)
		if from%granularity != 0 || bytes > s.bytes-from {
			break
		}
		return s, s.mapped[from/granularity : (from+bytes)/granularity], s.at + from, nil
	}
	return nil, nil, 0, wrong(call, driver.InvalidValue, "%d bytes at %#x do not lie in reserved addresses", bytes, uint64(p))
}

// Map implements driver.Driver. The memory holds poison.
func (d *Driver) Map(ordinal int, p driver.Pointer, bytes uint64, m driver.Physical) error {
	return d.inside("Map", func(c *scope) error {
		if err := d.virtual("Map", c, bytes); err != nil {
			return err
		}
		x := d.physical[m]
		if x == nil || x.owner != c || x.mapped || x.bytes != bytes || ordinal != c.ordinal {
			return wrong("Map", driver.InvalidValue, "memory %#x of %d bytes on device %d", uint64(m), bytes, ordinal)
		}
		s, granules, from, err := d.granules("Map", p, bytes)
		if err != nil {
			return err
		}
		for _, g := range granules {
			if g != 0 {
				return wrong("Map", driver.InvalidValue, "something is mapped there")
			}
		}
		if err := s.pages.open(from, bytes); err != nil {
			return wrong("Map", driver.OutOfMemory, "%v", err)
		}
		fill(s.pages.data[from:][:bytes], poison)
		for i := range granules {
			granules[i] = m
		}
		x.mapped = true
		return nil
	})
}

// Unmap implements driver.Driver.
func (d *Driver) Unmap(p driver.Pointer, bytes uint64) error {
	return d.returning("Unmap", func(c *scope) error {
		d.finishAll(c)
		s, granules, from, err := d.granules("Unmap", p, bytes)
		if err != nil {
			return err
		}
		for i, g := range granules {
			x := d.physical[g]
			if x == nil {
				return wrong("Unmap", driver.InvalidValue, "nothing is mapped there")
			}
			x.mapped = false
			granules[i] = 0
		}
		if err := s.pages.shut(from, bytes); err != nil {
			return wrong("Unmap", driver.InvalidValue, "%v", err)
		}
		return nil
	})
}
