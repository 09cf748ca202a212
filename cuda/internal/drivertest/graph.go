package drivertest

import (
	"slices"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
)

// graph is nodes in the order in which they were added.
type graph struct {
	owner *scope
	nodes []driver.Node
}

// node is a kernel that runs after others.
type node struct {
	graph  driver.Graph
	name   string
	launch driver.Launch
	after  []int // places in the graph
	place  int
}

// exec is a graph as it was when it was instantiated.
type exec struct {
	owner *scope
	nodes []*node
}

// CreateGraph implements driver.Driver.
func (d *Driver) CreateGraph() (h driver.Graph, err error) {
	err = d.inside("CreateGraph", func(c *scope) error {
		h = driver.Graph(d.handle())
		d.graphs[h] = &graph{owner: c}
		return nil
	})
	return h, err
}

// DestroyGraph implements driver.Driver.
func (d *Driver) DestroyGraph(h driver.Graph) error {
	return d.returning("DestroyGraph", func(c *scope) error {
		g := d.graphs[h]
		if g == nil || g.owner != c {
			return wrong("DestroyGraph", driver.InvalidHandle, "graph %#x", h)
		}
		for _, n := range g.nodes {
			delete(d.nodes, n)
		}
		delete(d.graphs, h)
		return nil
	})
}

// AddKernel implements driver.Driver.
func (d *Driver) AddKernel(h driver.Graph, l driver.Launch) (made driver.Node, err error) {
	err = d.inside("AddKernel", func(c *scope) error {
		g := d.graphs[h]
		if g == nil || g.owner != c {
			return wrong("AddKernel", driver.InvalidHandle, "graph %#x", h)
		}
		if err := d.refuse("AddKernel", c, l); err != nil {
			return err
		}
		made = driver.Node(d.handle())
		d.nodes[made] = &node{graph: h, name: d.function[l.Function].name, launch: keep(l), place: len(g.nodes)}
		g.nodes = append(g.nodes, made)
		return nil
	})
	return made, err
}

// AddEdges implements driver.Driver. A programmatic edge is taken as a whole one, which is
// what the kernel makes of it by waiting; only capability 9.0 has them. Edges lead from
// nodes that were added before, so that there are no circles.
func (d *Driver) AddEdges(h driver.Graph, edges []driver.Edge) error {
	return d.inside("AddEdges", func(c *scope) error {
		if g := d.graphs[h]; g == nil || g.owner != c {
			return wrong("AddEdges", driver.InvalidHandle, "graph %#x", h)
		}
		for _, e := range edges {
			from, to := d.nodes[e.From], d.nodes[e.To]
			switch {
			case from == nil || from.graph != h || to == nil || to.graph != h || from.place >= to.place:
				return wrong("AddEdges", driver.InvalidValue, "an edge from node %#x to %#x", e.From, e.To)
			case slices.Contains(to.after, from.place):
				return wrong("AddEdges", driver.InvalidValue, "two edges from node %#x", e.From)
			case e.Programmatic && d.devices[c.ordinal].Capability < 90:
				return wrong("AddEdges", driver.NotSupported, "a programmatic edge")
			}
			to.after = append(to.after, from.place)
		}
		return nil
	})
}

// Instantiate implements driver.Driver.
func (d *Driver) Instantiate(h driver.Graph) (x driver.Exec, err error) {
	err = d.inside("Instantiate", func(c *scope) error {
		g := d.graphs[h]
		if g == nil || g.owner != c {
			return wrong("Instantiate", driver.InvalidHandle, "graph %#x", h)
		}
		e := &exec{owner: c}
		for _, n := range g.nodes {
			e.nodes = append(e.nodes, d.nodes[n])
		}
		x = driver.Exec(d.handle())
		d.execs[x] = e
		return nil
	})
	return x, err
}

// Upload implements driver.Driver.
func (d *Driver) Upload(h driver.Exec, on driver.Stream) error {
	return d.on("Upload", on, func(c *scope, s *stream) error {
		if e := d.execs[h]; e == nil || e.owner != c {
			return wrong("Upload", driver.InvalidHandle, "graph %#x", h)
		}
		d.push(s, func() *driver.Error { return nil })
		return nil
	})
}

// DestroyExec implements driver.Driver. Work that was asked for is still done.
func (d *Driver) DestroyExec(h driver.Exec) error {
	return d.returning("DestroyExec", func(c *scope) error {
		if e := d.execs[h]; e == nil || e.owner != c {
			return wrong("DestroyExec", driver.InvalidHandle, "graph %#x", h)
		}
		delete(d.execs, h)
		return nil
	})
}

// LaunchGraph implements driver.Driver.
func (d *Driver) LaunchGraph(h driver.Exec, on driver.Stream) error {
	return d.on("LaunchGraph", on, func(c *scope, s *stream) error {
		e := d.execs[h]
		if e == nil || e.owner != c {
			return wrong("LaunchGraph", driver.InvalidHandle, "graph %#x", h)
		}
		d.push(s, func() *driver.Error {
			for _, i := range d.order(e.nodes) {
				n := e.nodes[i]
				if d.function[n.launch.Function] == nil {
					return wrong("LaunchGraph", driver.IllegalAddress, "the module of %s was unloaded", n.name)
				}
				if err := d.run(n.name, n.launch); err != nil {
					return err
				}
			}
			return nil
		})
		return nil
	})
}

// order picks one of the orders that the edges allow.
func (d *Driver) order(nodes []*node) []int {
	waits := make([]int, len(nodes))
	next := make([][]int, len(nodes))
	var ready, order []int
	for i, n := range nodes {
		waits[i] = len(n.after)
		for _, j := range n.after {
			next[j] = append(next[j], i)
		}
		if waits[i] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		k := d.random.IntN(len(ready))
		i := ready[k]
		ready[k] = ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		order = append(order, i)
		for _, j := range next[i] {
			if waits[j]--; waits[j] == 0 {
				ready = append(ready, j)
			}
		}
	}
	return order
}
