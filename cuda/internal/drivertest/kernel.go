package drivertest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
)

// plainShared is the shared memory that a block may have without AllowShared.
const plainShared = 48 << 10

// function is a kernel of a module.
type function struct {
	module  driver.Module
	owner   *scope
	name    string
	takes   Resources
	allowed int // bytes of dynamic shared memory
}

// LoadModule implements driver.Driver.
func (d *Driver) LoadModule(image []byte) (m driver.Module, err error) {
	err = d.inside("LoadModule", func(c *scope) error {
		if len(image) == 0 {
			return Error("LoadModule", driver.InvalidImage)
		}
		if d.config.Load != nil {
			if err := d.config.Load(image); err != nil {
				return err
			}
		}
		m = driver.Module(d.handle())
		d.modules[m] = c
		return nil
	})
	return m, err
}

// UnloadModule implements driver.Driver.
func (d *Driver) UnloadModule(m driver.Module) error {
	return d.returning("UnloadModule", func(c *scope) error {
		if d.modules[m] != c {
			return wrong("UnloadModule", driver.InvalidHandle, "module %#x", m)
		}
		d.finishAll(c)
		delete(d.modules, m)
		for h, f := range d.function {
			if f.module == m {
				delete(d.function, h)
			}
		}
		return nil
	})
}

// Function implements driver.Driver.
func (d *Driver) Function(m driver.Module, name string) (h driver.Function, err error) {
	err = d.inside("Function", func(c *scope) error {
		if d.modules[m] != c {
			return wrong("Function", driver.InvalidHandle, "module %#x", m)
		}
		var takes Resources
		if d.config.Functions != nil {
			var ok bool
			if takes, ok = d.config.Functions(name); !ok {
				return wrong("Function", driver.NotFound, "%q", name)
			}
		}
		if takes.MaxThreads == 0 {
			takes.MaxThreads = 1024
		}
		if takes.Registers == 0 {
			takes.Registers = 32
		}
		h = driver.Function(d.handle())
		d.function[h] = &function{module: m, owner: c, name: name, takes: takes, allowed: plainShared - takes.Static}
		return nil
	})
	return h, err
}

// of makes a call about a function.
func (d *Driver) of(call string, h driver.Function, f func(c *scope, x *function) error) error {
	return d.inside(call, func(c *scope) error {
		x := d.function[h]
		if x == nil || x.owner != c {
			return wrong(call, driver.InvalidHandle, "function %#x", h)
		}
		return f(c, x)
	})
}

// FunctionAttribute implements driver.Driver.
func (d *Driver) FunctionAttribute(h driver.Function, a driver.FunctionAttribute) (v int, err error) {
	err = d.of("FunctionAttribute", h, func(c *scope, x *function) error {
		values := map[driver.FunctionAttribute]int{
			driver.FunctionMaxThreads: x.takes.MaxThreads, driver.FunctionShared: x.takes.Static, driver.FunctionConst: 0,
			driver.FunctionLocal: x.takes.Local, driver.FunctionRegisters: x.takes.Registers,
			driver.FunctionPTXVersion: d.devices[c.ordinal].Capability, driver.FunctionBinaryVersion: d.devices[c.ordinal].Capability,
			driver.FunctionDynamicShared: x.allowed,
		}
		var ok bool
		if v, ok = values[a]; !ok {
			return wrong("FunctionAttribute", driver.InvalidValue, "attribute %d", a)
		}
		return nil
	})
	return v, err
}

// AllowShared implements driver.Driver.
func (d *Driver) AllowShared(h driver.Function, bytes int) error {
	return d.of("AllowShared", h, func(c *scope, x *function) error {
		if most := d.devices[c.ordinal].SharedMemory - x.takes.Static; bytes < 0 || bytes > most {
			return wrong("AllowShared", driver.InvalidValue, "%d bytes of %d for %s", bytes, most, x.name)
		}
		x.allowed = bytes
		return nil
	})
}

// Occupancy implements driver.Driver.
func (d *Driver) Occupancy(h driver.Function, threads, shared int) (n int, err error) {
	err = d.of("Occupancy", h, func(c *scope, x *function) error {
		if threads <= 0 || shared < 0 {
			return wrong("Occupancy", driver.InvalidValue, "%d threads, %d bytes", threads, shared)
		}
		n = d.resident(&d.devices[c.ordinal], x, threads, shared)
		return nil
	})
	return n, err
}

// resident returns how many blocks fit on a multiprocessor.
func (d *Driver) resident(p *Profile, x *function, threads, shared int) int {
	if threads > x.takes.MaxThreads || shared > x.allowed {
		return 0
	}
	warps := (threads + 31) / 32
	return min(p.blocksPerSM(), p.threadsPerSM()/(32*warps), 65536/int(up(uint64(x.takes.Registers*32), 256))/warps,
		p.SharedPerSM/max(1, x.takes.Static+shared+p.reservedShared()))
}

// refuse says why a launch is none, or returns nil.
func (d *Driver) refuse(call string, c *scope, l driver.Launch) error {
	x := d.function[l.Function]
	if x == nil || x.owner != c {
		return wrong(call, driver.InvalidHandle, "function %#x", l.Function)
	}
	threads := int(l.Block[0]) * int(l.Block[1]) * int(l.Block[2])
	most := [3]uint32{1<<31 - 1, 65535, 65535}
	for i, n := range l.Grid {
		if n == 0 || n > most[i] {
			return wrong(call, driver.InvalidValue, "%s: grid %v", x.name, l.Grid)
		}
	}
	resident := d.resident(&d.devices[c.ordinal], x, max(threads, 1), int(l.Shared))
	switch {
	case threads == 0 || threads > 1024 || l.Block[2] > 64:
		return wrong(call, driver.InvalidValue, "%s: block %v", x.name, l.Block)
	case threads > x.takes.MaxThreads:
		return wrong(call, driver.InvalidValue, "%s: %d threads of at most %d", x.name, threads, x.takes.MaxThreads)
	case int(l.Shared) > x.allowed:
		return wrong(call, driver.InvalidValue, "%s: %d bytes of shared memory, with %d allowed", x.name, l.Shared, x.allowed)
	case len(l.Args) == 0:
		return wrong(call, driver.InvalidValue, "%s: no arguments", x.name)
	case resident == 0:
		return wrong(call, driver.LaunchOutOfResources, "%s: block %v of %d registers", x.name, l.Block, x.takes.Registers)
	case x.takes.Cluster > 0 && int(l.Grid[0])%x.takes.Cluster != 0:
		return wrong(call, driver.InvalidValue, "%s: grid %v in clusters of %d", x.name, l.Grid, x.takes.Cluster)
	case l.Early && l.Cooperative:
		return wrong(call, driver.InvalidValue, "%s: both early and cooperative", x.name)
	case l.Early && d.devices[c.ordinal].Capability < 90:
		return wrong(call, driver.NotSupported, "%s: an early launch", x.name)
	case l.Cooperative && int(l.Grid[0])*int(l.Grid[1])*int(l.Grid[2]) > resident*d.devices[c.ordinal].SMs:
		return wrong(call, driver.CooperativeTooLarge, "%s: grid %v", x.name, l.Grid)
	}
	return nil
}

// keep copies what a launch points to, as the driver does.
func keep(l driver.Launch) driver.Launch {
	l.Args = slices.Clone(l.Args)
	return l
}

// Launch implements driver.Driver.
func (d *Driver) Launch(l driver.Launch, h driver.Stream) error {
	return d.on("Launch", h, func(c *scope, s *stream) error {
		if err := d.refuse("Launch", c, l); err != nil {
			return err
		}
		name := d.function[l.Function].name
		l := keep(l)
		d.push(s, func() *driver.Error { return d.run(name, l) })
		return nil
	})
}

// run runs a kernel. The lock is held, but not meanwhile.
func (d *Driver) run(name string, l driver.Launch) *driver.Error {
	if e := d.counted("Kernel"); e != nil {
		return e
	}
	if d.config.Kernel == nil {
		return nil
	}
	d.mu.Unlock()
	err := guarded(d.config.Kernel, name, keep(l))
	d.mu.Lock()
	var e *driver.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	}
	return wrong("Kernel", driver.LaunchFailed, "%s: %v", name, err)
}

// guarded makes a panic of the test's function an error.
func guarded(kernel func(string, driver.Launch) error, name string, l driver.Launch) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return kernel(name, l)
}
