package drivertest

import (
	"fmt"
	"slices"
)

// Leaks names what was not given back: what destroyed contexts still held, contexts that
// live and what they hold.
func (d *Driver) Leaks() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	leaks := slices.Clone(d.leaks)
	for h, c := range d.contexts {
		leaks = append(leaks, fmt.Sprintf("context %#x", h))
		leaks = append(leaks, d.holdings(c)...)
	}
	slices.Sort(leaks)
	return leaks
}

// holdings names what a context holds.
func (d *Driver) holdings(c *scope) []string {
	var names []string
	add := func(owner *scope, format string, a ...any) {
		if owner == c {
			names = append(names, fmt.Sprintf(format, a...))
		}
	}
	for at, m := range d.pieces {
		add(m.owner, "%d bytes of device memory at %#x", len(m.data), uint64(at))
	}
	for at, m := range d.host {
		add(m.owner, "%d bytes of page-locked memory at %#x", len(m.data), at)
	}
	for at, s := range d.spaces {
		add(s.owner, "%d bytes of addresses at %#x", s.bytes, uint64(at))
	}
	for h, m := range d.physical {
		add(m.owner, "%d bytes of mappable memory %#x", m.bytes, uint64(h))
	}
	for h, s := range d.streams {
		add(s.owner, "stream %#x", h)
	}
	for h, e := range d.events {
		add(e.owner, "event %#x", h)
	}
	for h, owner := range d.modules {
		add(owner, "module %#x", h)
	}
	for h, g := range d.graphs {
		add(g.owner, "graph %#x of %d nodes", h, len(g.nodes))
	}
	for h, e := range d.execs {
		add(e.owner, "instantiated graph %#x of %d nodes", h, len(e.nodes))
	}
	slices.Sort(names)
	return names
}

// drop gives up what a context holds, as its end does.
func (d *Driver) drop(c *scope) {
	for at, m := range d.pieces {
		if m.owner == c {
			_, _ = m.release() // it is a leak already
			delete(d.pieces, at)
		}
	}
	for at, m := range d.host {
		if m.owner == c {
			_, _ = m.release()
			delete(d.host, at)
		}
	}
	for at, s := range d.spaces {
		if s.owner == c {
			_ = s.pages.free()
			delete(d.spaces, at)
		}
	}
	remove(d.physical, func(x *physical) bool { return x.owner == c })
	remove(d.streams, func(x *stream) bool { return x.owner == c })
	remove(d.events, func(x *event) bool { return x.owner == c })
	remove(d.modules, func(x *scope) bool { return x == c })
	remove(d.function, func(x *function) bool { return x.owner == c })
	remove(d.execs, func(x *exec) bool { return x.owner == c })
	for h, g := range d.graphs {
		if g.owner == c {
			remove(d.nodes, func(x *node) bool { return x.graph == h })
			delete(d.graphs, h)
		}
	}
}

// remove deletes entries of a map.
func remove[K comparable, V any](m map[K]V, gone func(V) bool) {
	for k, v := range m {
		if gone(v) {
			delete(m, k)
		}
	}
}
