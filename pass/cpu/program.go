package cpu

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// A kernel is an op with its arguments resolved, ready to run again and again.
type kernel interface {
	// variant names how it computes, for dumps.
	variant() string
	// scratch returns how many floats of scratch it needs on a team of the given size.
	scratch(slots int) int
	// run does the work. An error wraps ErrInvalid and names op, argument and value.
	run(t *team) error
}

// A program is a row of kernels.
type program struct {
	stream  *stream
	plan    *backend.Plan
	offsets []int    // of the temporaries in the workspace
	temps   []memory // bound to the workspace while a run is under way

	pieces []piece
	costs  []pass.Cost // of the pieces

	scratchAt, scratch int // in the workspace

	failed uint64 // serial of a job of which a part has failed
	cause  error
}

// A piece is a step, or a part of one.
type piece struct {
	step   int
	kernel kernel
}

// longest is how long a piece may take, so that cancelling and interactive sessions
// need not wait for longer.
const longest = 0.05 // seconds

// compile appends the pieces of a step.
func (p *program) compile(step int, op pass.Checked) error {
	rate := p.stream.h.Rate()
	parts, err := cut(op, rate)
	if err != nil {
		return err
	}
	for _, part := range parts {
		kernels, err := p.kernels(part)
		if err != nil {
			return err
		}
		c := cost(part)
		share := 1 / float64(len(kernels))
		for _, k := range kernels {
			p.pieces = append(p.pieces, piece{step, k})
			p.costs = append(p.costs, pass.Cost{FLOP: c.FLOP * share, Bytes: c.Bytes * share})
			p.scratch = max(p.scratch, k.scratch(p.stream.h.pool.size))
		}
	}
	return nil
}

// cost is that of an op with what its functions take here.
func cost(op pass.Checked) pass.Cost {
	c := op.Cost
	switch v := op.Op.(type) {
	case pass.Map:
		c.FLOP *= newEpilogue(v.Epilogue).flop()
	case pass.Softmax, pass.LogSoftmax, pass.SwiGLU, pass.GLU:
		c.FLOP *= 5 // an exponential
	case pass.Magnitude:
		c.FLOP *= 4 // a root
	}
	return c
}

// cut returns the parts of an op that each take no longer than a piece may, as far as
// its cuts allow: items first, which share nothing but the weights.
func cut(op pass.Checked, rate pass.Cost) ([]pass.Checked, error) {
	c := cost(op)
	want := int(math.Ceil(min(max(c.FLOP/rate.FLOP, c.Bytes/rate.Bytes)/longest, 1024)))
	if want <= 1 {
		return []pass.Checked{op}, nil
	}
	for _, along := range op.Op.Cuts() {
		grains := (along.Extent + along.Grain - 1) / along.Grain
		n := min(want, grains)
		if n <= 1 {
			continue
		}
		var parts []pass.Checked
		for i := range n {
			from := i * grains / n * along.Grain
			to := min((i+1)*grains/n*along.Grain, along.Extent)
			part, err := pass.Part(op, along.Axis, from, to)
			if err != nil {
				return nil, err
			}
			more := []pass.Checked{part}
			if n < want {
				if more, err = cut(part, rate); err != nil {
					return nil, err
				}
			}
			parts = append(parts, more...)
		}
		return parts, nil
	}
	return []pass.Checked{op}, nil
}

// kernels returns what computes an op, to be run one after the other.
func (p *program) kernels(op pass.Checked) ([]kernel, error) {
	switch v := op.Op.(type) {
	case pass.LSTM:
		return p.lstm(v, op.Cost), nil
	case pass.Gemm:
		return []kernel{p.gemm(v, op.Cost)}, nil
	case pass.Conv1D:
		return []kernel{p.conv1d(v, op.Cost)}, nil
	case pass.Map:
		return []kernel{p.mapping(v, cost(op))}, nil
	case pass.Magnitude:
		return []kernel{p.magnitude(v, cost(op))}, nil
	case pass.Copy:
		return []kernel{p.copying(v)}, nil
	case pass.Fill:
		return []kernel{p.fill(v)}, nil

	case pass.LayerNorm:
		return []kernel{p.layernorm(v, op.Cost)}, nil
	case pass.GroupNorm:
		return []kernel{p.groupnorm(v, op.Cost)}, nil
	case pass.PoolNorm:
		return []kernel{p.poolnorm(v, op.Cost)}, nil
	case pass.L2Norm:
		return []kernel{p.l2norm(v, op.Cost)}, nil
	case pass.Softmax:
		return []kernel{p.softmax(v, false, cost(op))}, nil
	case pass.LogSoftmax:
		return []kernel{p.softmax(pass.Softmax(v), true, cost(op))}, nil
	case pass.Argmax:
		return []kernel{p.argmax(v, op.Cost)}, nil
	case pass.Rope:
		return []kernel{p.rotation(v, op.Cost)}, nil
	case pass.Add:
		return []kernel{p.adding(v, op.Cost)}, nil
	case pass.Scale:
		return []kernel{p.scaling(v, op.Cost)}, nil
	case pass.SwiGLU:
		return []kernel{p.gating(v, true, cost(op))}, nil
	case pass.GLU:
		return []kernel{p.gating(pass.SwiGLU{X: v.X, Y: v.Y, Batch: v.Batch, Rows: v.Rows, Cols: v.Cols}, false, cost(op))}, nil
	case pass.Embed:
		return []kernel{p.embed(v, op.Cost)}, nil
	case pass.Permute:
		return []kernel{p.permutation(v)}, nil
	case pass.Advance:
		return []kernel{p.advance(v)}, nil
	case pass.StatsPool:
		return []kernel{p.statspool(v, op.Cost)}, nil

	case pass.Attention:
		return p.attention(v, op.Cost), nil
	case pass.Attend:
		return p.attend(v, op.Cost), nil
	case pass.Append:
		return []kernel{p.appending(v)}, nil
	case pass.Conv2D:
		return []kernel{p.conv2d(v, op.Cost)}, nil
	case pass.ConvGLU:
		return []kernel{p.convGLU(v, op.Cost)}, nil
	case pass.DepthwiseConv2D:
		return []kernel{p.depthwiseConv2D(v, op.Cost)}, nil
	case pass.LogMel:
		return p.logmel(v, op.Cost), nil
	}
	return nil, fmt.Errorf("%s: %w", op.Op.Name(), pass.ErrUnsupported)
}

// Pieces implements backend.Program.
func (p *program) Pieces() []pass.Cost { return p.costs }

// Submit implements backend.Program: it does the work and returns a ticket that is
// done.
func (p *program) Submit(job *backend.Job, from, to int) (backend.Ticket, error) {
	if p.failed == job.Serial {
		return &ticket{p.cause}, nil
	}
	tokens := p.stream.h.pool.tokens
	tokens <- struct{}{}
	defer func() { <-tokens }()
	if err := p.do(job, from, to); err != nil {
		p.failed, p.cause = job.Serial, err
		p.unbind()
		p.stream.team.scratch = nil
		return &ticket{err}, nil
	}
	return &succeeded, nil
}

func (p *program) do(job *backend.Job, from, to int) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicError(r)
		}
	}()
	if from == 0 {
		p.bind()
		for i, t := range p.plan.Inputs {
			copy(p.temps[t].words, job.Inputs[i])
		}
	}
	for _, piece := range p.pieces[min(from, len(p.pieces)):min(to, len(p.pieces))] {
		if err := piece.kernel.run(&p.stream.team); err != nil {
			return fmt.Errorf("op %d: %w", piece.step, err)
		}
	}
	if to == len(p.costs) {
		for i, o := range p.plan.Outputs {
			copy(job.Outputs[i], p.memory(o.Place).words[o.Offset:o.Offset+o.Len])
		}
		p.unbind()
		p.stream.team.scratch = nil
	}
	return nil
}

// bind gives the temporaries their places in the stream's workspace.
func (p *program) bind() {
	words := p.stream.workspace()
	for i, t := range p.plan.Temps {
		p.temps[i].set(words[p.offsets[i] : p.offsets[i]+t.Len : p.offsets[i]+t.Len])
	}
	var scratch memory
	scratch.set(words[p.scratchAt : p.scratchAt+p.scratch])
	p.stream.team.scratch = scratch.floats
}

// unbind lets go of the workspace, which may be replaced by a larger one.
func (p *program) unbind() {
	for i := range p.temps {
		p.temps[i].Free()
	}
}

// memory returns where a buffer lies.
func (p *program) memory(at backend.Place) *memory {
	if at.State {
		return p.plan.States[at.Index].(*memory)
	}
	return &p.temps[at.Index]
}

// Free implements backend.Program. Another program of the stream may run meanwhile.
func (p *program) Free() {
	p.unbind()
	p.stream.leave()
}

// Dump implements backend.Program.
func (p *program) Dump(w io.Writer) error {
	for i, op := range p.plan.Steps {
		var b strings.Builder
		fmt.Fprintf(&b, "%3d %s:", i, op.Op.Name())
		for _, a := range op.Args {
			fmt.Fprintf(&b, " %s %d×%d×%d", a.Name, a.Batch, a.Rows, a.Cols)
		}
		for _, param := range op.Params {
			fmt.Fprintf(&b, ", %v", param.Shape())
		}
		parts, name := 0, ""
		for _, piece := range p.pieces {
			if piece.step == i {
				parts, name = parts+1, piece.kernel.variant()
			}
		}
		fmt.Fprintf(&b, "; %s, %d pieces, %.3g FLOP, %.3g bytes\n", name, parts, op.Cost.FLOP, op.Cost.Bytes)
		if _, err := io.WriteString(w, b.String()); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "workspace: %d bytes, of which %d scratch; %d threads\n",
		4*(p.scratchAt+p.scratch), 4*p.scratch, p.stream.h.pool.size)
	return err
}

// A ticket is of a part that is done.
type ticket struct{ err error }

var succeeded ticket

// Wait implements backend.Ticket.
func (t *ticket) Wait() error { return t.err }
