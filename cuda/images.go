package cuda

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// Without being asked, a kernel gets no more shared memory than this, what the system takes
// from capability 8.0 on counted in.
const (
	sharedByDefault = 48 << 10
	systemShared    = 1 << 10
)

// images are the kernels of a device: those of one tier. The module of a family is loaded
// when the first of its kernels is needed, since the driver may have to compile it.
type images struct {
	d       *device
	archive *kernels.Archive
	chosen  kernels.Tier
	table   map[string]*place

	mu      sync.Mutex
	modules map[string]driver.Module
	loaded  map[string]*kernel
}

// A kernel is one that is loaded.
type kernel struct {
	entry    *kernels.Entry
	fn       driver.Function
	pointers []uintptr // where its parameters have addresses
}

// place is where a kernel is in the table.
type place struct {
	family string
	entry  kernels.Entry
}

// archived is a driver that has kernels of its own, as the one of tests does.
type archived interface{ Archive() *kernels.Archive }

// newImages chooses the tier for a device; a name forces one.
func newImages(d *device, tier string) (*images, error) {
	m := &images{d: d, table: map[string]*place{}, modules: map[string]driver.Module{}, loaded: map[string]*kernel{}}
	var err error
	if own, ok := d.drv.(archived); ok {
		m.archive = own.Archive()
	} else if m.archive, err = kernels.Embedded(); err != nil {
		return nil, err
	}
	if m.archive.Empty() {
		return nil, fmt.Errorf("this build holds no kernels; make kernels compiles them: %w", pass.ErrUnsupported)
	}
	if tier == "" {
		m.chosen, err = kernels.Best(d.gpu.Capability, d.attributes.capability)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, pass.ErrUnsupported)
		}
	} else if m.chosen, err = kernels.TierNamed(tier); err != nil {
		return nil, fmt.Errorf("tier: %w: %w", err, pass.ErrInvalid)
	} else if c := d.gpu.Capability; !m.chosen.Runs(c) {
		return nil, fmt.Errorf("tier: a device of capability %d.%d does not run kernels for %s: %w", c/10, c%10, tier, pass.ErrInvalid)
	}
	for _, f := range kernels.Families() {
		for _, e := range f.Entries {
			m.table[e.Name] = &place{f.Name, e}
		}
	}
	return m, nil
}

// tier returns the name of the tier that kernels are taken from.
func (m *images) tier() string {
	if m.chosen.PTX {
		return m.chosen.Name + ", compiled by the driver"
	}
	return m.chosen.Name
}

// wait reports whether the kernels wait by themselves for what they depend on.
func (m *images) wait() bool { return m.chosen.Waits() }

// has reports whether the tier has a kernel and the device the shared memory that it takes.
func (m *images) has(name string) bool {
	p, ok := m.table[name]
	return ok && m.chosen.Has(p.entry) && p.entry.Shared <= m.d.attributes.sharedMemory
}

// get returns a kernel, loading it if need be.
func (m *images) get(name string) (*kernel, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k, ok := m.loaded[name]; ok {
		return k, nil
	}
	p, ok := m.table[name]
	if !ok {
		return nil, fmt.Errorf("no kernel is called %s: %w", name, pass.ErrUnsupported)
	}
	if !m.chosen.Has(p.entry) {
		return nil, fmt.Errorf("kernel %s is not among those for %s, which %s uses: %w", name, m.chosen.Name, m.d.gpu.Name, pass.ErrUnsupported)
	}
	fn, err := m.load(p)
	if err != nil {
		return nil, fmt.Errorf("kernel %s for %s: %w", name, m.chosen.Name, err)
	}
	k := &kernel{&p.entry, fn, pointers(reflect.TypeOf(p.entry.Args))}
	m.loaded[name] = k
	m.d.log.Debug("cuda: kernel", "name", name, "tier", m.chosen.Name)
	return k, nil
}

func (m *images) load(p *place) (fn driver.Function, err error) {
	if err := m.d.gone(); err != nil {
		return 0, err
	}
	module, ok := m.modules[p.family]
	if !ok {
		image, err := m.archive.Image(p.family, m.chosen)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", err, pass.ErrUnsupported)
		}
		err = m.d.do(func() error {
			module, err = m.d.drv.LoadModule(image)
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("image of %s: %w", p.family, err)
		}
		m.modules[p.family] = module
	}
	err = m.d.do(func() error {
		if fn, err = m.d.drv.Function(module, p.entry.Name); err != nil {
			return err
		}
		return m.allow(fn, p.entry)
	})
	return fn, err
}

// allow lets a kernel have the dynamic shared memory that it takes; one whose launches say
// how much, all there is. What it has beside counts towards what it gets without asking.
func (m *images) allow(fn driver.Function, e kernels.Entry) error {
	if e.Shared == 0 {
		return nil
	}
	static, err := m.d.drv.FunctionAttribute(fn, driver.FunctionShared)
	if err != nil {
		return err
	}
	most := m.d.attributes.sharedMemory - static
	bytes := e.Shared
	if bytes < 0 {
		bytes = most
	}
	if bytes+static+systemShared <= sharedByDefault || bytes > most {
		return nil // what the device does not have is refused when it is launched
	}
	return m.d.drv.AllowShared(fn, bytes)
}

// close gives the modules up.
func (m *images) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for family, module := range m.modules {
		if err := m.d.do(func() error { return m.d.drv.UnloadModule(module) }); err != nil && m.d.gone() == nil {
			m.d.log.Warn("cuda: unload", "kernels", family, "error", err)
		}
	}
	clear(m.modules)
	clear(m.loaded)
}
