package cuda

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// program is a compiled recording: launches, in segments that become graphs once it has run
// more than once.
type program struct {
	s        *stream
	plan     *backend.Plan
	counted  bool // by the stream
	launches []launch
	held     []*memory
	watched  bool

	chosen     map[string][2]string // by the compiler
	segments   []segment
	pieces     []pass.Cost
	base       driver.Pointer // of the arena, as the launches know it
	generation int            // of the arena
	bytes      int            // of the arena
	offsets    []int          // of the plan's temporaries in it, in elements
	upload     int            // bytes that go up with each run: head and inputs
	download   int            // bytes of the outputs

	runs   int          // begun so far
	due    int          // how many there are when graphs are made
	graphs atomic.Int32 // that there are

	version int      // of the choices
	blocks  []*block // of page-locked memory, one for each job
	failed  uint64   // serial of a job of which a part has failed
}

// A segment is launches that one graph holds, when it is made.
type segment struct {
	from, to int
	exec     driver.Exec
}

// compile makes the launches.
func (p *program) compile(ctx context.Context) error {
	s := p.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.counted {
		p.counted = true
		s.programs++
	}
	if p.chosen == nil {
		p.chosen = map[string][2]string{}
	}
	c := &compiler{
		d: s.d, ctx: ctx, plan: p.plan, constant: map[string]*memory{}, chosen: p.chosen,
	}
	defer func() { p.held = append(p.held, c.held...) }()
	for _, t := range p.plan.Temps { // before a kernel is asked whether it can count that far
		if bytes := 4 * uint64(t.Len); bytes > uint64(s.d.gpu.Memory) {
			return s.arena.beyond(bytes)
		}
	}
	took := newPhases()
	if err := c.compile(); err != nil {
		return err
	}
	took.end("launches")
	offsets, bytes := layOut(p.plan, c.used, c.scratch)
	if err := s.arena.grow(uint64(bytes)); err != nil {
		return err
	}
	took.end("layout")
	if err := c.settle(s.arena.at, offsets); err != nil {
		return err
	}
	took.end("addresses")
	p.launches, p.watched, p.offsets = c.launches, c.watched, offsets[:len(p.plan.Temps)]
	p.base, p.bytes = s.arena.at, bytes
	p.upload = inputsAt
	for _, i := range p.plan.Inputs {
		p.upload = max(p.upload, 4*(offsets[i]+p.plan.Temps[i].Len))
	}
	p.download = 0
	for _, o := range p.plan.Outputs {
		p.download += 4 * o.Len
	}
	p.cut()
	took.log(s.d.log, "cuda: recording", p.plan.Label, len(p.launches))
	p.generation = s.arena.generation // not before: without launches nothing may be submitted
	return p.replay(0, len(p.segments))
}

// A graph holds about this much work, by the device's rate: so much that what launching
// one costs does not show, and so little that a run can be cancelled, reports how far it
// is, and stays below the time limit of devices that have one.
const segmentSeconds = 0.05

// mostNodes bounds the kernels of a graph: what the order of more costs to find grows with
// their square.
const mostNodes = 2048

// cut divides the launches into segments.
func (p *program) cut() {
	p.segments, p.pieces = nil, nil
	rate := p.s.d.Rate()
	var sum pass.Cost
	from := 0
	for i := range p.launches {
		l := &p.launches[i]
		next := sum.Add(l.cost)
		if i > from && (i-from == mostNodes || max(next.FLOP/rate.FLOP, next.Bytes/rate.Bytes) > segmentSeconds) {
			p.segments, p.pieces = append(p.segments, segment{from: from, to: i}), append(p.pieces, sum)
			from, next = i, l.cost
		}
		sum = next
	}
	p.segments, p.pieces = append(p.segments, segment{from: from, to: len(p.launches)}), append(p.pieces, sum)
}

// driver returns a launch as the driver takes it.
func (l *launch) driver() driver.Launch {
	return driver.Launch{
		Function: l.fn, Grid: l.grid, Block: [3]uint32{uint32(l.entry.Threads), 1, 1},
		Shared: uint32(l.shared), Args: l.args,
	}
}

// Pieces implements backend.Program: each segment is one.
func (p *program) Pieces() []pass.Cost { return p.pieces }

// at returns where an element of a buffer of the plan lies.
func (p *program) at(place backend.Place, element int) driver.Pointer {
	if place.State {
		return p.plan.States[place.Index].(*memory).at + driver.Pointer(4*element)
	}
	return p.base + driver.Pointer(4*(p.offsets[place.Index]+element))
}

// drop gives up the graphs and what the launches use.
func (p *program) drop() {
	for _, m := range p.held {
		m.Free()
	}
	p.held = nil
	segments := p.segments
	p.segments = nil
	p.graphs.Store(0)
	p.s.d.do(func() error {
		for _, g := range segments {
			if g.exec != 0 {
				p.s.d.drv.DestroyExec(g.exec)
			}
		}
		return nil
	})
}

// quit gives up what runs need.
func (p *program) quit() {
	p.s.hush()
	for _, b := range p.blocks {
		b.free(p.s.d)
	}
	p.blocks = nil
	if p.counted {
		p.counted = false
		p.s.leave()
	}
}

// Free implements backend.Program.
func (p *program) Free() {
	p.quit()
	p.drop()
}

// Dump implements backend.Program.
func (p *program) Dump(w io.Writer) error {
	_, err := io.WriteString(w, p.text())
	return err
}

// text describes the launches. It holds the lock under which a run compiles the program
// anew, which must not be held when the caller's code is called.
func (p *program) text() string {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	var b strings.Builder
	k := 0
	for i, op := range p.plan.Steps {
		fmt.Fprintf(&b, "%3d %s:", i, op.Op.Name())
		for _, a := range op.Args {
			fmt.Fprintf(&b, " %s %d×%d×%d", a.Name, a.Batch, a.Rows, a.Cols)
		}
		for _, param := range op.Params {
			fmt.Fprintf(&b, ", %v", param.Shape())
		}
		fmt.Fprintf(&b, "; %.3g FLOP, %.3g bytes\n", op.Cost.FLOP, op.Cost.Bytes)
		for ; k < len(p.launches) && p.launches[k].step == i; k++ {
			l := &p.launches[k]
			fmt.Fprintf(&b, "      %s: grid %v, %d threads, %d bytes shared", l.entry.Name, l.grid, l.entry.Threads, l.shared)
			if l.why.format != "" {
				fmt.Fprintf(&b, "; %s", l.why)
			}
			b.WriteByte('\n')
		}
	}
	fmt.Fprintf(&b, "workspace: %d bytes; %d kernels in %d parts, %d of them graphs by now; %d bytes up, %d down\n",
		p.bytes, len(p.launches), len(p.pieces), p.graphs.Load(), p.upload, p.download)
	return b.String()
}
