package backend

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// A recorder is the Pass that a callback of Record works on. It checks every op and
// keeps the first mistake.
type recorder struct {
	s    *session
	ref  pass.Ref // of what the recording makes, without ID
	over bool     // the callback has returned
	err  error

	room   *room // of what follows
	plan   *Plan
	temps  []temp
	uses   []*shared // params and buffers in use, once each
	inputs []pass.Buffer
	held   map[*shared]bool
}

// A temp is a temporary or input while it is recorded.
type temp struct {
	handle  pass.Buffer
	input   bool
	written bool
}

func newRecorder(s *session, number uint32, opt pass.RecordOptions) *recorder {
	m := s.lodge()
	return &recorder{
		s:    s,
		ref:  pass.Ref{Device: s.d.number, Session: s.number, Recording: number},
		room: m,
		plan: &Plan{
			Label:  opt.Label,
			Math:   opt.Math,
			Steps:  m.steps[:0],
			Temps:  m.temps[:0],
			places: map[pass.Ref]Place{},
			params: map[pass.Ref]Memory{},
			caches: map[pass.Ref]Memory{},
		},
		temps: m.handles[:0],
		held:  map[*shared]bool{},
	}
}

func (r *recorder) failf(format string, a ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, a...)
	}
}

func (r *recorder) Do(ops ...pass.Op) {
	for _, op := range ops {
		if r.err != nil || r.over {
			return
		}
		n := len(r.plan.Steps)
		r.plan.Steps = append(r.plan.Steps, pass.Checked{})
		err := r.room.checker.Check(op, &r.plan.Steps[n])
		keep := false
		if err == nil {
			keep, err = r.add(&r.plan.Steps[n], n)
		}
		if !keep {
			r.plan.Steps = r.plan.Steps[:n]
		}
		if err != nil {
			r.failf("op %d: %w", n, err)
		}
	}
}

// add records a checked op after looking up its handles, and reports whether there is
// anything to do.
func (r *recorder) add(op *pass.Checked, step int) (writes bool, err error) {
	for i := range op.Params {
		p := &op.Params[i]
		if err := r.useParam(p.Param); err != nil {
			return false, fmt.Errorf("%s: %s: %w", op.Op.Name(), p.Name, err)
		}
	}
	for _, u := range op.Caches {
		if err := r.useCache(u.Cache); err != nil {
			return false, fmt.Errorf("%s: %s: %w", op.Op.Name(), u.Name, err)
		}
		writes = writes || u.Access&pass.Write != 0
	}
	for i := range op.Args {
		a := &op.Args[i]
		if err := r.useArg(a, step); err != nil {
			return false, fmt.Errorf("%s: %s: %w", op.Op.Name(), a.Name, err)
		}
		writes = writes || a.Access&pass.Write != 0 && !empty(a)
	}
	if !writes {
		return false, nil
	}
	for i := range op.Args {
		a := &op.Args[i]
		if b := a.View.Buffer; a.Access&pass.Write != 0 && b.Ref().Recording != 0 && !empty(a) {
			r.temps[b.Ref().ID-1].written = true
		}
	}
	return true, nil
}

func empty(a *pass.Arg) bool { return a.Batch == 0 || a.Rows == 0 || a.Cols == 0 }

func (r *recorder) useParam(p pass.Param) error {
	d := r.s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.paramLocked(p)
	if err != nil {
		return err
	}
	if r.holdLocked(s) {
		r.plan.params[p.Ref()] = s.mem
	}
	return nil
}

func (r *recorder) useCache(h pass.Cache) error {
	s, err := r.s.cache(h)
	if err != nil {
		return err
	}
	r.s.d.mu.Lock()
	defer r.s.d.mu.Unlock()
	if r.holdLocked(s) {
		r.plan.caches[h.Ref()] = s.mem
	}
	return nil
}

// holdLocked counts the recording as a user of s, once, and reports whether it was none.
func (r *recorder) holdLocked(s *shared) bool {
	if r.held[s] {
		return false
	}
	r.held[s] = true
	s.refs++
	r.uses = append(r.uses, s)
	return true
}

// useArg looks up the buffer of an argument and stretches its lifetime to the step.
func (r *recorder) useArg(a *pass.Arg, step int) error {
	b := a.View.Buffer
	if b.Ref().Recording == 0 {
		return r.useState(b)
	}
	t, err := r.temp(b)
	if err != nil {
		return err
	}
	if t.input && a.Access&pass.Write != 0 {
		return fmt.Errorf("%v is an input and may only be read: %w", b, pass.ErrInvalid)
	}
	if empty(a) {
		return nil
	}
	if a.Access&pass.Read != 0 && !t.written {
		return fmt.Errorf("%v is read before anything was written to it: %w", b, pass.ErrInvalid)
	}
	r.stretch(b, step)
	return nil
}

func (r *recorder) stretch(b pass.Buffer, step int) {
	t := &r.plan.Temps[b.Ref().ID-1]
	if t.Last < t.First { // not used before
		t.Len = b.Len()
		t.First = min(t.First, step)
	}
	t.Last = max(t.Last, step)
}

// temp returns what a handle of the recording names.
func (r *recorder) temp(b pass.Buffer) (*temp, error) {
	ref := b.Ref()
	if ref.Device != r.ref.Device || ref.Session != r.ref.Session || ref.Recording != r.ref.Recording {
		return nil, fmt.Errorf("%v: of another recording: %w", b, pass.ErrInvalid)
	}
	if ref.ID == 0 || int(ref.ID) > len(r.temps) || r.temps[ref.ID-1].handle != b {
		return nil, fmt.Errorf("%v: no such handle: %w", b, pass.ErrInvalid)
	}
	return &r.temps[ref.ID-1], nil
}

func (r *recorder) useState(b pass.Buffer) error {
	s, err := r.s.buffer(b)
	if err != nil {
		return err
	}
	if _, ok := r.plan.places[b.Ref()]; !ok {
		r.plan.places[b.Ref()] = Place{State: true, Index: len(r.plan.States)}
		r.plan.States = append(r.plan.States, s.mem)
		r.plan.states = append(r.plan.states, b.Ref())
		r.s.d.mu.Lock()
		r.holdLocked(s)
		r.s.d.mu.Unlock()
	}
	return nil
}

func (r *recorder) Temp(t pass.DType, n int) pass.Buffer { return r.make("temporary", t, n, false) }

func (r *recorder) Input(t pass.DType, n int) pass.Input {
	b := r.make("input", t, n, true)
	if !b.IsZero() {
		r.plan.Inputs = append(r.plan.Inputs, len(r.temps)-1)
		r.inputs = append(r.inputs, b)
	}
	return pass.MakeInput(b)
}

// mostElements bounds one buffer: far above any device, and far below where counting
// bytes would overflow.
const mostElements = 1 << 44

func (r *recorder) make(kind string, t pass.DType, n int, input bool) pass.Buffer {
	if r.err != nil || r.over {
		return pass.Buffer{}
	}
	if err := checkBuffer(t, n); err != nil {
		r.failf("%s: %w", kind, err)
		return pass.Buffer{}
	}
	ref := r.ref
	ref.ID, ref.Generation = uint32(len(r.temps)+1), 1
	b := pass.MakeBuffer(ref, t, n)
	r.temps = append(r.temps, temp{handle: b, input: input, written: input})
	life := Temp{Type: t, First: math.MaxInt, Last: -2}
	if input { // filled by every start, used or not
		life = Temp{Type: t, Len: n, First: -1, Last: -1}
	}
	r.plan.Temps = append(r.plan.Temps, life)
	return b
}

func checkBuffer(t pass.DType, n int) error {
	if t != pass.F32 && t != pass.U32 {
		return fmt.Errorf("type: want F32 or U32, given %v: %w", t, pass.ErrInvalid)
	}
	if n < 0 || int64(n) > mostElements {
		return fmt.Errorf("want 0 to %d elements, given %d: %w", int64(mostElements), n, pass.ErrInvalid)
	}
	return nil
}

func (r *recorder) Output(v pass.View, n int) pass.Output {
	if r.err != nil || r.over {
		return pass.Output{}
	}
	b := v.Buffer
	if b.IsZero() {
		r.failf("output: want a view, given none: %w", pass.ErrInvalid)
		return pass.Output{}
	}
	if n < 0 || v.Offset < 0 || v.Offset > b.Len() || n > b.Len()-v.Offset {
		r.failf("output: want %d elements from %d within %v: %w", n, v.Offset, b, pass.ErrInvalid)
		return pass.Output{}
	}
	var err error
	if b.Ref().Recording == 0 {
		err = r.useState(b)
	} else {
		_, err = r.temp(b)
	}
	if err != nil {
		r.failf("output: %w", err)
		return pass.Output{}
	}
	ref := r.ref
	ref.ID, ref.Generation = uint32(len(r.plan.Outputs)+1), 1
	r.plan.Outputs = append(r.plan.Outputs, Output{Place: r.plan.Place(b), Type: b.Type(), Offset: v.Offset, Len: n})
	return pass.MakeOutput(ref, b.Type(), n)
}

// finish ends the callback's use of the recorder and settles lifetimes.
func (r *recorder) finish() error {
	r.over = true
	for i, o := range r.plan.Outputs {
		if o.Place.State || o.Len == 0 || r.err != nil {
			continue
		}
		t := r.temps[o.Place.Index]
		if !t.written {
			r.failf("output %d: %v was never written: %w", i, t.handle, pass.ErrInvalid)
			continue
		}
		r.stretch(t.handle, len(r.plan.Steps))
	}
	for i := range r.plan.Temps {
		if t := &r.plan.Temps[i]; t.Last < t.First { // never used
			t.Len, t.First, t.Last = 0, 0, -1
		}
	}
	return r.err
}

// leave gives up the recorder's memory: that of the plan too, unless it lives there, which is
// what is returned.
func (r *recorder) leave() *room {
	m := r.room
	m.handles = r.temps[:0]
	if r.plan.settle(m) && r.err == nil {
		return m
	}
	r.s.vacate(m)
	return nil
}

// size returns how much the recording has.
func (r *recorder) size() size { return size{len(r.plan.Steps), len(r.plan.Temps)} }
