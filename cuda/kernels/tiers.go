package kernels

import "fmt"

// A Tier is what kernels are compiled for: an architecture, or, as PTX, all from a
// capability on, for which the driver then compiles.
type Tier struct {
	Name       string // "sm_90a", "ptx_80"
	Capability int    // times ten
	PTX        bool
	Exact      bool // runs on this capability only, and has what is special to it
}

var tiers = []Tier{
	{Name: "sm_75", Capability: 75},
	{Name: "sm_80", Capability: 80},
	{Name: "sm_86", Capability: 86},
	{Name: "sm_89", Capability: 89},
	{Name: "sm_90a", Capability: 90, Exact: true},
	{Name: "sm_100", Capability: 100},
	{Name: "sm_120", Capability: 120},
	{Name: "ptx_75", Capability: 75, PTX: true},
	{Name: "ptx_80", Capability: 80, PTX: true},
}

// Tiers returns all tiers.
func Tiers() []Tier { return tiers }

// TierNamed returns the tier with a name.
func TierNamed(name string) (Tier, error) {
	var names []string
	for _, t := range tiers {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Tier{}, fmt.Errorf("no kernels are compiled for %q, want one of %v", name, names)
}

// Runs reports whether a device of a capability runs what a tier holds: its own and a
// higher minor one of the same major, or, of PTX, any that is not lower.
func (t Tier) Runs(capability int) bool {
	switch {
	case t.Exact:
		return capability == t.Capability
	case t.PTX:
		return capability >= t.Capability
	}
	return capability/10 == t.Capability/10 && capability >= t.Capability
}

// Waits reports whether kernels of the tier wait by themselves for those that they depend
// on, so that they may be launched before those are done. It takes instructions of 9.0,
// which PTX for older devices has not, wherever it runs.
func (t Tier) Waits() bool { return !t.PTX && t.Capability >= 90 }

// Has reports whether an entry is compiled for the tier.
func (t Tier) Has(e Entry) bool {
	if e.Exact {
		return t.Exact && t.Capability == e.From
	}
	return t.Capability >= e.From
}

// Entries returns those of a family that are compiled for the tier.
func (t Tier) Entries(f Family) []Entry {
	var has []Entry
	for _, e := range f.Entries {
		if t.Has(e) {
			has = append(has, e)
		}
	}
	return has
}

// Best returns the tier that serves a device best: compiled for it, else the highest PTX.
// It is no higher than the capability that rules are told of, which may be lower than the
// device's.
func Best(device, told int) (Tier, error) {
	var best Tier
	for _, t := range tiers {
		if !t.Runs(device) || t.Capability > told {
			continue
		}
		if best.Name == "" || best.PTX && !t.PTX || best.PTX == t.PTX && t.Capability > best.Capability {
			best = t
		}
	}
	if best.Name == "" {
		return best, fmt.Errorf("no kernels are compiled for capability %d.%d", device/10, device%10)
	}
	return best, nil
}
