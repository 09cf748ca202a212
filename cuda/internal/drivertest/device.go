package drivertest

import (
	"github.com/tandem-gpu/tandem/cuda/internal/driver"
)

// Path implements driver.Driver.
func (d *Driver) Path() string {
	if d.config.Path != "" {
		return d.config.Path
	}
	return "drivertest"
}

// Version implements driver.Driver.
func (d *Driver) Version() (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.outside("Version"); err != nil {
		return 0, err
	}
	if d.config.Version == 0 {
		return 13000, nil
	}
	return d.config.Version, nil
}

// DeviceCount implements driver.Driver.
func (d *Driver) DeviceCount() (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.devices), d.outside("DeviceCount")
}

// device begins a call about a device.
func (d *Driver) device(call string, ordinal int) (*Profile, error) {
	if err := d.outside(call); err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= len(d.devices) {
		return nil, Error(call, driver.InvalidDevice)
	}
	return &d.devices[ordinal], nil
}

// DeviceName implements driver.Driver.
func (d *Driver) DeviceName(ordinal int) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.device("DeviceName", ordinal)
	if err != nil {
		return "", err
	}
	return p.Name, nil
}

// DeviceUUID implements driver.Driver.
func (d *Driver) DeviceUUID(ordinal int) ([16]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := d.device("DeviceUUID", ordinal)
	return [16]byte{0xAB, 0xCD, 15: byte(ordinal)}, err
}

// DeviceMemory implements driver.Driver.
func (d *Driver) DeviceMemory(ordinal int) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.device("DeviceMemory", ordinal)
	if err != nil {
		return 0, err
	}
	return p.Memory, nil
}

// Attribute implements driver.Driver.
func (d *Driver) Attribute(ordinal int, a driver.Attribute) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.device("Attribute", ordinal)
	if err != nil {
		return 0, err
	}
	v, ok := p.attribute(ordinal, a)
	if !ok {
		return 0, wrong("Attribute", driver.InvalidValue, "attribute %d", a)
	}
	return v, nil
}

// CreateContext implements driver.Driver.
func (d *Driver) CreateContext(ordinal int) (driver.Context, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.device("CreateContext", ordinal)
	if err != nil {
		return 0, err
	}
	if p.Exclusive {
		return 0, Error("CreateContext", driver.DeviceUnavailable)
	}
	c := &scope{handle: driver.Context(d.handle()), ordinal: ordinal}
	d.contexts[c.handle] = c
	d.current[thread()] = c.handle
	return c.handle, nil
}

// DestroyContext implements driver.Driver. What the context still holds is a leak.
func (d *Driver) DestroyContext(h driver.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.outside("DestroyContext"); err != nil {
		return err
	}
	c := d.contexts[h]
	if c == nil {
		return Error("DestroyContext", driver.InvalidContext)
	}
	d.finishAll(c)
	d.leaks = append(d.leaks, d.holdings(c)...)
	d.drop(c)
	delete(d.contexts, h)
	if t := thread(); d.current[t] == h {
		delete(d.current, t)
	}
	return nil
}

// SetCurrent implements driver.Driver.
func (d *Driver) SetCurrent(h driver.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.outside("SetCurrent"); err != nil {
		return err
	}
	if h == 0 {
		delete(d.current, thread())
		return nil
	}
	if d.contexts[h] == nil {
		return Error("SetCurrent", driver.InvalidContext)
	}
	d.current[thread()] = h
	return nil
}

// Current implements driver.Driver.
func (d *Driver) Current() (driver.Context, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.outside("Current"); err != nil {
		return 0, err
	}
	return d.current[thread()], nil
}

// MemInfo implements driver.Driver.
func (d *Driver) MemInfo() (free, total uint64, err error) {
	err = d.inside("MemInfo", func(c *scope) error {
		total = d.devices[c.ordinal].Memory
		free = total - d.held(c.ordinal)
		return nil
	})
	return free, total, err
}

// held returns the bytes that all contexts of a device have.
func (d *Driver) held(ordinal int) uint64 {
	var n uint64
	for _, c := range d.contexts {
		if c.ordinal == ordinal {
			n += c.held
		}
	}
	return n
}

// PriorityRange implements driver.Driver.
func (d *Driver) PriorityRange() (least, greatest int, err error) {
	return 0, -5, d.inside("PriorityRange", func(*scope) error { return nil })
}

// Lose makes all contexts fail with a code from now on.
func (d *Driver) Lose(code int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.contexts {
		c.lost = Error("Lose", code)
	}
}

// Close implements driver.Driver.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return nil
}
