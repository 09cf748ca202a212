package cuda

import (
	"errors"
	"fmt"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend/parallel"
)

// The driver takes about twice as long to make a graph of kernels and to give it up again as
// to launch them one by one; a replay costs next to nothing. Recordings that run once are
// many (every clip has a length of its own), and so are those that run thousands of times.
// So the first run launches its kernels one by one, and so does the second, which is what
// tells the two apart. While the device works on the second the graphs are made, by the
// goroutine that would only wait for it, and from the third run on they are replayed, or from
// the fourth, where the third was submitted right behind the second. A run that is queued
// meanwhile is submitted when they are there, and is done behind those before: all go to one
// stream.
const graphsAfter = 2

// replay makes the graphs of segments that have none, if the program has run often enough.
// Without memory for one the kernels are launched one by one still, and it is tried again
// after as many runs as there were so far.
func (p *program) replay(from, to int) error {
	d := p.s.d
	if p.runs < p.due || d.trace != nil {
		return nil
	}
	var took *phases
	nodes := 0
	for i := from; i < to; i++ {
		g := &p.segments[i]
		if g.exec != 0 || g.from == g.to {
			continue
		}
		if took == nil {
			took = newPhases()
		}
		launches := p.launches[g.from:g.to]
		after := parallel.Begin(func() [][]int { return dependencies(launches) }) // while the driver makes the nodes
		err := d.do(func() (err error) {
			g.exec, err = p.graph(launches, after, took)
			return err
		})
		if errors.Is(err, pass.ErrOutOfMemory) {
			p.due = 2 * max(p.runs, 1)
			d.log.Warn("cuda: no graph", "label", p.plan.Label, "kernels", len(launches), "error", err)
			return nil
		}
		if err != nil {
			return fmt.Errorf("graph: %w", err)
		}
		p.graphs.Add(1)
		nodes += len(launches)
	}
	if nodes > 0 {
		took.log(d.log, "cuda: graph", p.plan.Label, nodes)
	}
	return nil
}

// graph makes an executable graph of launches that come after others.
func (p *program) graph(launches []launch, after func() [][]int, took *phases) (driver.Exec, error) {
	drv := p.s.d.drv
	g, err := drv.CreateGraph()
	if err != nil {
		return 0, err
	}
	defer drv.DestroyGraph(g)
	nodes := make([]driver.Node, len(launches))
	for i := range launches {
		if nodes[i], err = drv.AddKernel(g, launches[i].driver()); err != nil {
			return 0, launches[i].wrap(err)
		}
	}
	took.end("nodes")
	edges := make([]driver.Edge, 0, len(launches)+len(launches)/4)
	for i, before := range after() {
		// A kernel waits for what it depends on by itself, and every kernel does, so
		// that all that came before the one is done as well.
		early := len(before) == 1 && p.s.d.kernels.wait()
		for _, k := range before {
			edges = append(edges, driver.Edge{From: nodes[k], To: nodes[i], Programmatic: early})
		}
	}
	took.end("order")
	if err := drv.AddEdges(g, edges); err != nil {
		return 0, err
	}
	took.end("edges")
	defer took.end("instance")
	e, err := drv.Instantiate(g)
	if err != nil {
		return 0, err
	}
	if err := drv.Upload(e, p.s.queue); err != nil { // now, that the first replay need not wait for it
		drv.DestroyExec(e)
		return 0, err
	}
	return e, nil
}

// wrap says of which launch an error is.
func (l *launch) wrap(err error) error {
	return fmt.Errorf("op %d: %s: kernel %s: %w", l.step, l.label, l.entry.Name, err)
}
