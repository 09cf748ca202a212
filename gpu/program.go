package gpu

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// program is a compiled recording: a command for each dispatch, and what a run adds in
// front and behind.
type program struct {
	s          *stream
	plan       *backend.Plan
	dispatches []dispatch
	pieces     []pass.Cost
	colours    []int // workspace buffer of each temporary, -1: none
	words      []int // of the workspace buffers that it needs; scratch comes last
	scratch    int   // index of the first scratch buffer
	fixed      extra
	watched    []watch

	uniforms  *memory // the words of all dispatches, a block each
	constants *memory // fixed words of the ops
	launches  []*launch
	current   *launch
	commands  []driver.Command // of the part that is submitted
	failed    bool             // a part has, and may still be under way

	// Bound to the workspace of one generation.
	generation int
	buffers    []*memory // of the workspace
	run        []driver.Command
	marks      []driver.Command
	groups     []driver.BindGroupID // all, to be destroyed
}

// blockBytes is what one dispatch binds as its uniform block. It is a multiple of every
// device's alignment for uniform bindings.
const (
	blockBytes = 256
	blockWords = blockBytes / 4
)

// dispatchBytes is the cost of a dispatch beside that of its work, as memory moved: a
// few microseconds on the device that Rate describes.
const dispatchBytes = 100e3

func newProgram(s *stream, c *compiler) *program {
	p := &program{s: s, plan: c.plan, dispatches: c.dispatches, fixed: c.extra, watched: c.watched}
	p.colours, p.words = c.plan.Colour()
	p.scratch = len(p.words)
	p.words = append(p.words, c.extra.scratch...)
	p.pieces = make([]pass.Cost, 0, max(len(p.dispatches), 1))
	for i := range p.dispatches {
		cost := p.dispatches[i].cost
		cost.Bytes = max(cost.Bytes, dispatchBytes)
		p.pieces = append(p.pieces, cost)
	}
	if len(p.pieces) == 0 {
		p.pieces = append(p.pieces, pass.Cost{Bytes: dispatchBytes})
	}
	return p
}

// prepare makes everything that the first run needs.
func (p *program) prepare(ctx context.Context) error {
	if err := p.uploadConstants(ctx); err != nil {
		return err
	}
	return p.ready()
}

// ready makes what the first run needs beside constants, as far as it is not there.
func (p *program) ready() error {
	if len(p.launches) == 0 {
		l, err := p.newLaunch()
		if err != nil {
			return err
		}
		p.launches = append(p.launches, l)
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if err := p.s.workspace.grow(p.s.d, p.words); err != nil {
		return err
	}
	return p.rebind()
}

func (p *program) uploadConstants(ctx context.Context) error {
	u := newUpload(p.s.d, p.s.timeline)
	defer u.close()
	var err error
	if n := len(p.dispatches); n > 0 {
		if p.uniforms, err = p.s.d.alloc("uniforms", n*blockWords); err != nil {
			return err
		}
		blocks := make([]uint32, n*blockWords)
		for i, d := range p.dispatches {
			if len(d.words) > blockWords {
				return fmt.Errorf("%s: want at most %d uniform words, given %d: %w", d.label, blockWords, len(d.words), pass.ErrUnsupported)
			}
			copy(blocks[i*blockWords:], d.words)
		}
		if err := u.write(ctx, p.uniforms, 0, blocks); err != nil {
			return err
		}
	}
	if fixed := p.fixed.fixed; len(fixed) > 0 {
		if p.constants, err = p.s.d.alloc("constants", len(fixed)); err != nil {
			return err
		}
		if err := u.write(ctx, p.constants, 0, fixed); err != nil {
			return err
		}
	}
	return u.flush(ctx)
}

// rebind binds the program to the stream's workspace as it is. The stream is locked.
func (p *program) rebind() error {
	w := &p.s.workspace
	if p.run != nil && p.generation == w.generation {
		return nil
	}
	b := binder{p: p, buffers: w.buffers}
	err := b.bind()
	if err != nil {
		b.undo()
		return err
	}
	p.unbind()
	p.generation, p.buffers = w.generation, w.buffers
	p.run, p.marks, p.groups = b.run, b.marks, b.groups
	return nil
}

func (p *program) unbind() {
	for _, g := range p.groups {
		p.s.d.check(p.s.d.drv.DestroyBindGroup(g))
	}
	p.groups, p.run, p.marks = nil, nil, nil
}

// at returns the memory of a place; nil for a temporary without elements.
func (p *program) at(place backend.Place, workspace []*memory) *memory {
	if place.State {
		return p.plan.States[place.Index].(*memory)
	}
	if c := p.colours[place.Index]; c >= 0 {
		return workspace[c]
	}
	return nil
}

// Pieces implements backend.Program: each dispatch is one.
func (p *program) Pieces() []pass.Cost { return p.pieces }

// Free implements backend.Program.
func (p *program) Free() {
	p.unbind()
	for _, l := range p.launches {
		l.free(p.s.d)
	}
	p.uniforms.Free()
	p.constants.Free()
}
