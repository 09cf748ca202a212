package passtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// toy is the smallest hardware that fulfils the contract: it computes with package
// truth. With a fault it breaks one promise, to see that the suite notices.
type toy struct {
	fault  string
	shared sync.Map // memory by length, for states that sessions share
	mu     sync.Mutex
}

func newToy(fault string) pass.Device { return backend.New(&toy{fault: fault}) }

func (h *toy) Info() pass.Info {
	return pass.Info{Backend: "toy", Name: "toy", API: "go", Kind: "cpu"}
}

func (h *toy) Load(ctx context.Context, w pass.Weights, _ pass.ParamShape) (backend.Memory, error) {
	m := &toyMemory{weights: w}
	if h.fault == "load ignores errors" {
		return m, nil
	}
	copied, err := copyWeights(w)
	m.weights = copied
	return m, err
}

func (h *toy) NewStream(pass.SessionConfig) (backend.Stream, error) {
	if h.fault == "goroutine stays" {
		go func() { select {} }()
	}
	return &toyStream{h: h}, nil
}

func (h *toy) Rate() pass.Cost { return pass.Cost{FLOP: 1e8, Bytes: 1e9} }
func (h *toy) Close() error    { return nil }

type toyMemory struct {
	words   []uint32
	weights pass.Weights
	shared  bool
}

func (m *toyMemory) Free() {
	if m.shared {
		return
	}
	for i := range m.words { // a use after Free shows
		m.words[i] = 0x7FC0DEAD
	}
	m.weights = nil
}

type toyStream struct {
	h    *toy
	all  []*toyMemory
	last [][]uint32 // outputs of the first run, for stale data
}

func (s *toyStream) Alloc(_ pass.DType, n int) (backend.Memory, error) {
	m := &toyMemory{words: make([]uint32, n)}
	if s.h.fault == "alloc leaves garbage" && n > 0 {
		m.words[n-1] = 1
	}
	if s.h.fault == "sessions share state" {
		m.shared = true
		first, _ := s.h.shared.LoadOrStore(n, m)
		m = first.(*toyMemory)
	}
	s.all = append(s.all, m)
	return m, nil
}

func (s *toyStream) NewCache(g pass.CacheConfig) (backend.Memory, error) {
	n := g.Batch * g.Capacity * g.Heads * g.HeadDim
	m := &toyMemory{words: make([]uint32, 2*n)} // keys, then values
	s.all = append(s.all, m)
	return m, nil
}

func (s *toyStream) Write(_ context.Context, m backend.Memory, offset int, data []uint32) error {
	if s.h.fault == "write is off by one" && offset > 0 {
		offset--
	}
	copy(m.(*toyMemory).words[offset:], data)
	return nil
}

func (s *toyStream) Read(_ context.Context, m backend.Memory, offset int, data []uint32) error {
	copy(data, m.(*toyMemory).words[offset:])
	return nil
}

func (s *toyStream) Close() error { return nil }

func (s *toyStream) Compile(_ context.Context, p *backend.Plan) (backend.Program, error) {
	if s.h.fault == "lifetimes too short" {
		for i := range p.Temps {
			p.Temps[i].Last -= 2
		}
	}
	offsets, length := p.Pack(1)
	g := &toyProgram{s: s, p: p, pieces: []pass.Cost{{}}, work: make([]uint32, length)}
	for i, t := range p.Temps {
		g.temps = append(g.temps, g.work[offsets[i]:offsets[i]+t.Len])
	}
	for i, step := range p.Steps {
		if i == 0 {
			g.pieces[0] = step.Cost
		} else {
			g.pieces = append(g.pieces, step.Cost)
		}
	}
	return g, nil
}

type toyProgram struct {
	s      *toyStream
	p      *backend.Plan
	pieces []pass.Cost
	work   []uint32
	temps  [][]uint32
	runs   int
}

func (g *toyProgram) Pieces() []pass.Cost { return g.pieces }
func (g *toyProgram) Free()               {}

func (g *toyProgram) Dump(w io.Writer) error {
	for _, step := range g.p.Steps {
		if _, err := fmt.Fprintln(w, step.Op.Name()); err != nil {
			return err
		}
	}
	return nil
}

// A toyTicket is done when it is made.
type toyTicket struct{ err error }

func (t toyTicket) Wait() error { return t.err }

var done backend.Ticket = toyTicket{}

var leaked sync.Map // what a replay allocates, kept from the compiler

func (g *toyProgram) Submit(job *backend.Job, from, to int) (backend.Ticket, error) {
	if g.s.h.fault == "sessions share state" { // wrong, but no race
		g.s.h.mu.Lock()
		defer g.s.h.mu.Unlock()
	}
	if from == 0 {
		for i, data := range job.Inputs {
			copy(g.temps[g.p.Inputs[i]], data)
		}
		if g.s.h.fault == "states do not last" && g.runs > 0 {
			for _, m := range g.p.States {
				clear(m.(*toyMemory).words)
			}
		}
	}
	for i := from; i < min(to, len(g.p.Steps)); i++ {
		if err := g.step(g.p.Steps[i]); err != nil {
			return toyTicket{err}, nil
		}
	}
	if to < len(g.pieces) {
		return done, nil
	}
	g.runs++
	if g.s.h.fault == "runs clear other states" {
		for _, m := range g.s.all {
			if !slices.Contains(g.p.States, backend.Memory(m)) {
				clear(m.words)
			}
		}
	}
	if g.s.h.fault == "replay allocates" {
		leaked.Store(g, make([]byte, 1000+g.runs))
	}
	for i, o := range g.p.Outputs {
		if g.s.h.fault == "stale outputs" && g.runs > 1 {
			copy(job.Outputs[i], g.s.last[i])
			continue
		}
		copy(job.Outputs[i], g.words(o.Place)[o.Offset:])
		if g.s.h.fault == "stale outputs" {
			g.s.last = append(g.s.last[:i:i], slices.Clone(job.Outputs[i]))
		}
	}
	return done, nil
}

func (g *toyProgram) words(at backend.Place) []uint32 {
	if at.State {
		return g.p.States[at.Index].(*toyMemory).words
	}
	return g.temps[at.Index]
}

// step runs an op as the case that it is.
func (g *toyProgram) step(op pass.Checked) error {
	if m, isCopy := op.Op.(pass.Copy); isCopy || op.Op.Name() == "fill" {
		return g.move(op, m)
	}
	if err := g.indices(op); err != nil {
		return err
	}
	if w, exact := adderStep(op); exact {
		return g.add(op, w)
	}
	return g.compute(op)
}

// compute gathers dense tensors, asks package truth, and scatters what it says.
func (g *toyProgram) compute(op pass.Checked) error {
	fault := g.s.h.fault
	c := cases.Case{Name: "toy", Op: op.Op, Same: map[string]string{}}
	for _, p := range op.Params {
		c.Params = append(c.Params, cases.Param{Field: p.Name, Weights: g.p.Param(p.Param).(*toyMemory).weights})
	}
	for i, a := range op.Args {
		if fault == "lengths ignored" && a.Name == "Lengths" {
			continue
		}
		for _, b := range op.Args[:i] {
			if a.View == b.View && a.Access != pass.Read {
				c.Same[a.Name] = b.Name
			}
		}
		if a.Access&pass.Write != 0 {
			c.Outputs = append(c.Outputs, a.Name)
		}
		if c.Same[a.Name] == "" && (a.Access&pass.Read != 0 || slices.Contains(cases.KeptOutputs(op.Op), a.Name)) {
			c.Inputs = append(c.Inputs, g.gather(op, a))
		}
	}
	g.openCaches(op, &c)
	c.Op = withoutAddends(withoutLengths(c.Op, fault), fault)
	wanted, err := c.Truth()
	if err != nil {
		return err
	}
	if op.Op.Name() == "advance" && fault == "counters stay" {
		return nil
	}
	g.closeCaches(op, wanted)
	for _, a := range op.Args {
		for _, w := range wanted {
			if w.Name == a.Name {
				g.spoil(op, &w)
				g.scatter(a, w.Words)
			}
		}
	}
	return nil
}

func (g *toyProgram) each(a pass.Arg, f func(at int)) {
	v := a.View
	if g.s.h.fault == "strides ignored" {
		v.RowStride, v.BatchStride = a.Cols, a.Rows*a.Cols
	}
	if g.s.h.fault == "offsets ignored" {
		v.Offset = 0
	}
	for b := range a.Batch {
		for r := range a.Rows {
			for j := range a.Cols {
				f(v.Offset + b*v.BatchStride + r*v.RowStride + j)
			}
		}
	}
}

func (g *toyProgram) gather(op pass.Checked, a pass.Arg) cases.Tensor {
	t := cases.Tensor{Name: a.Name, Type: a.View.Buffer.Type(), Shape: []int{a.Batch, a.Rows, a.Cols}}
	if x, ok := indexOf(op.Op, a.Name); ok {
		if _, each := x.View(); !each {
			t.Shape = []int{}
		}
	}
	words := g.words(g.p.Place(a.View.Buffer))
	g.each(a, func(at int) { t.Words = append(t.Words, words[at]) })
	if _, end := a.Range(); g.s.h.fault == "input written" && end > 0 && a.Access == pass.Read {
		words[end-1]++
	}
	return t
}

func (g *toyProgram) scatter(a pass.Arg, w []uint32) {
	words := g.words(g.p.Place(a.View.Buffer))
	i := 0
	g.each(a, func(at int) { words[at] = w[i]; i++ })
	if _, end := a.Range(); g.s.h.fault == "one element too many" && end < len(words) {
		words[end] = 0
	}
}

// move copies and fills without package truth, so that tests are fast.
func (g *toyProgram) move(op pass.Checked, m pass.Copy) error {
	if f, ok := op.Op.(pass.Fill); ok {
		w := cases.F32("", []float32{f.Value}).Words[0] | f.Word
		words := g.words(g.p.Place(f.To.Buffer))
		g.each(op.Args[len(op.Args)-1], func(at int) { words[at] = w })
		return nil
	}
	from, to := g.words(g.p.Place(m.From.Buffer)), g.words(g.p.Place(m.To.Buffer))
	for b := range m.Batch {
		i, err := g.row(op, "FromRow", m.FromRow, b, m.Rows, m.FromRows)
		j, err2 := g.row(op, "ToRow", m.ToRow, b, m.Rows, m.ToRows)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		for r := range m.Rows {
			src := m.From.Offset + b*m.From.BatchStride + (i+r)*m.From.RowStride
			dst := m.To.Offset + b*m.To.BatchStride + (j+r)*m.To.RowStride
			copy(to[dst:dst+m.Cols], from[src:])
		}
	}
	return nil
}
