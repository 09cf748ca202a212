package gpu

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// An Adapter describes a device that the system offers, whichever APIs it is reached
// through, and whether [Open] would take it.
type Adapter struct {
	Index    int    // position in the list of Adapters; the same for every Config
	Name     string // as the driver gives it: "NVIDIA H200"
	Vendor   string // "NVIDIA"; a number where it is unknown
	VendorID uint32 // PCI vendor, or a Khronos number above 0xffff; 0: unknown
	DeviceID uint32 // PCI device; 0: unknown
	// Kind is "discrete", "integrated", "virtual", "unknown" or "software", the last
	// for adapters that compute on the CPU.
	Kind     string
	APIs     []string // that reach it, the preferred one first
	Driver   string   // the driver's own description; empty if it gives none
	Limits   Limits   // the most that Config.Limits may ask for
	Features []string // abilities beyond the standard's, shapes of matrix units among them
	// Rank is the place in the order in which Open tries adapters: 1 first; 0: Open
	// does not take it.
	Rank   int
	Reason string // for the rank, or why Open does not take it
}

// String tells the adapter from others: index, name, kind, APIs and numbers.
func (a Adapter) String() string {
	return fmt.Sprintf("%d: %s (%s, %s, %04x:%04x)", a.Index, a.Name, a.Kind, strings.Join(a.APIs, " "), a.VendorID, a.DeviceID)
}

// Adapters lists the devices that the system offers, those that Open does not take
// with cfg included. A device that several APIs offer is listed once. Order and
// indices depend on the system alone: discrete devices, integrated, virtual, unknown,
// software; within a kind by the best API, then as the system has them. The list is
// not empty without an error. Errors wrap ErrNoDevice, with what was looked for; ErrInvalid, for a value in
// cfg or the environment that names nothing or too much; or they are ctx's.
func Adapters(ctx context.Context, cfg Config) ([]Adapter, error) { return host.adapters(ctx, cfg) }

func (s system) adapters(ctx context.Context, cfg Config) ([]Adapter, error) {
	r, err := cfg.resolve(s.getenv)
	if err != nil {
		return nil, err
	}
	return bounded(ctx, "list adapters", func() ([]Adapter, error) {
		p, err := s.provider(r)
		if err != nil {
			return nil, fmt.Errorf("gpu: %w", err)
		}
		defer p.Close()
		found, err := p.Adapters(ctx)
		if err != nil {
			return nil, fmt.Errorf("gpu: %w", err)
		}
		list, err := judge(merge(found), r)
		if err != nil {
			return nil, err
		}
		adapters := make([]Adapter, len(list))
		for i, c := range list {
			adapters[i] = c.Adapter
		}
		return adapters, nil
	}, nil)
}

// Kinds of adapters in the order of preference.
const (
	kindDiscrete   = "discrete"
	kindIntegrated = "integrated"
	kindVirtual    = "virtual"
	kindUnknown    = "unknown"
	kindSoftware   = "software"
)

var kinds = []string{kindDiscrete, kindIntegrated, kindVirtual, kindUnknown, kindSoftware}

// softwareNames are in the names of implementations that compute on the CPU. Not all
// of them say so in their type, and a virtual GPU may be one behind the scenes.
var softwareNames = []string{"llvmpipe", "lavapipe", "softpipe", "swiftshader", "basic render driver"}

// kindOf returns the kind of an adapter.
func kindOf(a driver.Adapter) string {
	name := strings.ToLower(a.Name)
	for _, s := range softwareNames {
		if strings.Contains(name, s) {
			return kindSoftware
		}
	}
	switch a.Type {
	case driver.Discrete:
		return kindDiscrete
	case driver.Integrated:
		return kindIntegrated
	case driver.Virtual:
		return kindVirtual
	case driver.CPU:
		return kindSoftware
	}
	return kindUnknown
}

// apis in the order of preference. Vulkan on Apple systems is a layer over Metal.
// What is not in the list, OpenGL above all, is never taken.
var apis = []driver.API{driver.Metal, driver.Vulkan, driver.D3D12, driver.Browser}

func preference(a driver.API) int {
	if i := slices.Index(apis, a); i >= 0 {
		return i
	}
	return len(apis)
}

// A group is one device with the adapters that reach it, the preferred one first.
type group []driver.Adapter

func (g group) kind() string {
	kind := kindUnknown
	for _, a := range g {
		if k := kindOf(a); kind == kindUnknown {
			kind = k
		}
	}
	return kind
}

// reaches reports whether a device is reached through an API.
func (g group) reaches(api driver.API) bool {
	return slices.ContainsFunc(g, func(a driver.Adapter) bool { return a.API == api })
}

// merge puts the adapters of one device together and orders the devices. One API
// offers a device once, so two alike within an API are two devices, and the n-th of
// one API is the n-th of the other.
func merge(found []driver.Adapter) []group {
	byAPI := slices.Clone(found)
	slices.SortStableFunc(byAPI, func(a, b driver.Adapter) int { return cmp.Compare(preference(a.API), preference(b.API)) })
	var groups []group
	for _, a := range byAPI {
		i := slices.IndexFunc(groups, func(g group) bool { return !g.reaches(a.API) && sameDevice(g[0], a) })
		if i < 0 {
			groups = append(groups, group{a})
		} else {
			groups[i] = append(groups[i], a)
		}
	}
	slices.SortStableFunc(groups, func(a, b group) int {
		return cmp.Compare(slices.Index(kinds, a.kind()), slices.Index(kinds, b.kind()))
	})
	return groups
}

// sameDevice reports whether two adapters of different APIs may be one device. Names
// differ from API to API, numbers do not, but not every API has them.
func sameDevice(a, b driver.Adapter) bool {
	if (kindOf(a) == kindSoftware) != (kindOf(b) == kindSoftware) {
		return false
	}
	if a.VendorID != 0 && a.DeviceID != 0 && b.VendorID != 0 && b.DeviceID != 0 {
		return a.VendorID == b.VendorID && a.DeviceID == b.DeviceID
	}
	return strings.EqualFold(a.Name, b.Name)
}

// A candidate is a device with what a request makes of it.
type candidate struct {
	Adapter
	ways  group // adapters to open, in order; empty if the device is declined
	other bool  // declined because the request names another
}

// judge ranks the devices for a request. It fails if the request names none of them.
func judge(groups []group, r request) ([]candidate, error) {
	list := make([]candidate, len(groups))
	for i, g := range groups {
		list[i] = describe(i, g)
	}
	named, err := find(list, r)
	if err != nil {
		return nil, err
	}
	rank := 0
	previous := ""
	for i, g := range groups {
		c := &list[i]
		var reason string
		switch ways, declined := g.allowed(r); {
		case named != nil && !slices.Contains(named, i):
			c.other = true
			reason = fmt.Sprintf("%s is %q", r.adapterFrom, r.adapter)
		case declined != "":
			reason = declined
		case named == nil && c.Kind == kindSoftware && !r.software:
			reason = "computes on the CPU; software adapters are only taken when asked for: " +
				"name it, or set Config.Software or TANDEM_SOFTWARE"
		default:
			rank++
			c.ways, c.Rank = ways, rank
			c.through(ways[0])
			switch {
			case len(named) == 1:
				reason = fmt.Sprintf("%s is %q", r.adapterFrom, r.adapter)
			case rank == 1:
				reason = "first choice: " + c.Kind
			case previous == c.Kind:
				reason = fmt.Sprintf("choice %d: also %s, later in the list", rank, c.Kind)
			default:
				reason = fmt.Sprintf("choice %d: %s comes after %s", rank, c.Kind, previous)
			}
			previous = c.Kind
		}
		c.Reason = reason
	}
	return list, nil
}

// describe makes the public description of a device. Its name is the same for every
// request.
func describe(index int, g group) candidate {
	first := g[0]
	c := candidate{Adapter: Adapter{
		Index: index, Name: first.Name, Vendor: first.Vendor, VendorID: first.VendorID, DeviceID: first.DeviceID, Kind: g.kind(),
	}}
	for _, way := range g {
		c.APIs = append(c.APIs, string(way.API))
	}
	c.through(first)
	return c
}

// through describes what depends on the API.
func (c *candidate) through(way driver.Adapter) {
	c.Driver, c.Limits, c.Features = way.Driver, limitsOf(way.Limits), nil
	if way.Features != 0 {
		c.Features = strings.Split(way.Features.String(), ",")
	}
	for _, m := range way.Matrices {
		c.Features = append(c.Features, "matrix "+m.String())
	}
}

// find returns the indices of the adapters that the request names: nil if it names
// none, several only for a kind. A name that fits nothing is a mistake of whoever gave
// it, ErrInvalid; a kind that is not there is not.
func find(list []candidate, r request) ([]int, error) {
	if r.adapter == "" {
		return nil, nil
	}
	if i, err := strconv.Atoi(r.adapter); err == nil && i >= 0 && i < len(list) {
		return []int{i}, nil
	}
	matches := func(match func(candidate) bool) []int {
		var found []int
		for i, c := range list {
			if match(c) {
				found = append(found, i)
			}
		}
		return found
	}
	found := matches(func(c candidate) bool { return strings.EqualFold(c.Name, r.adapter) })
	if found == nil {
		if slices.Contains(kinds, r.adapter) {
			found = matches(func(c candidate) bool { return c.Kind == r.adapter })
			if found == nil {
				return nil, fmt.Errorf("gpu: %s: no %s adapter; there are: %s: %w", r.adapterFrom, r.adapter, names(list, nil), pass.ErrNoDevice)
			}
			return found, nil
		}
		found = matches(func(c candidate) bool { return strings.Contains(strings.ToLower(c.Name), r.adapter) })
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("gpu: %s: no adapter %q; there are: %s: %w: %w", r.adapterFrom, r.adapter, names(list, nil), pass.ErrNoDevice, pass.ErrInvalid)
	case 1:
		return found, nil
	}
	return nil, fmt.Errorf("gpu: %s: %q names %d adapters, choose by index: %s: %w",
		r.adapterFrom, r.adapter, len(found), names(list, found), pass.ErrInvalid)
}

// names joins the descriptions of the candidates with the given indices; nil: of all.
func names(list []candidate, which []int) string {
	var parts []string
	for i, c := range list {
		if which == nil || slices.Contains(which, i) {
			parts = append(parts, c.String())
		}
	}
	return strings.Join(parts, "; ")
}

// least is what the kernels need of any device.
var least = driver.Limits{
	MaxBufferSize: 1 << 20, MaxStorageBindingSize: 1 << 20, MaxStorageBuffers: 8, MaxUniformBuffers: 1,
	MaxWorkgroups: 16, MaxInvocations: 64, MaxWorkgroupSizeX: 64, MaxWorkgroupStorage: 16 << 10,
}

// allowed returns the ways to a device that a request allows, or why there is none.
func (g group) allowed(r request) (ways group, declined string) {
	var reasons []string
	for _, a := range g {
		switch shortOf := lacks(a.Limits); {
		case r.api != "" && a.API != r.api:
			reasons = append(reasons, fmt.Sprintf("%s: %s is %q", a.API, r.apiFrom, r.api))
		case preference(a.API) == len(apis):
			reasons = append(reasons, fmt.Sprintf("%s: an API that is never taken", a.API))
		case shortOf != "":
			reasons = append(reasons, fmt.Sprintf("%s: %s", a.API, shortOf))
		default:
			ways = append(ways, a)
		}
	}
	if ways == nil {
		declined = strings.Join(reasons, "; ")
	}
	return ways, declined
}

// lacks names the limits that are lower than the kernels need.
func lacks(l driver.Limits) string {
	var missing []string
	check := func(name string, offered, wanted uint64) {
		if offered < wanted {
			missing = append(missing, fmt.Sprintf("%s wanted %d, offered %d", name, wanted, offered))
		}
	}
	check("MaxBufferSize", l.MaxBufferSize, least.MaxBufferSize)
	check("MaxStorageBindingSize", l.MaxStorageBindingSize, least.MaxStorageBindingSize)
	check("MaxStorageBuffers", uint64(l.MaxStorageBuffers), uint64(least.MaxStorageBuffers))
	check("MaxUniformBuffers", uint64(l.MaxUniformBuffers), uint64(least.MaxUniformBuffers))
	check("MaxWorkgroups", uint64(l.MaxWorkgroups), uint64(least.MaxWorkgroups))
	check("MaxInvocations", uint64(l.MaxInvocations), uint64(least.MaxInvocations))
	check("MaxWorkgroupSizeX", uint64(l.MaxWorkgroupSizeX), uint64(least.MaxWorkgroupSizeX))
	check("MaxWorkgroupStorage", uint64(l.MaxWorkgroupStorage), uint64(least.MaxWorkgroupStorage))
	if missing == nil {
		return ""
	}
	return "limits are too low: " + strings.Join(missing, "; ")
}
