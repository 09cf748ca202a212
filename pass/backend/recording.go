package backend

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend/parallel"
)

type recording struct {
	s       *session
	opt     pass.RecordOptions
	number  uint32
	plan    *Plan
	program Program
	key     []byte // of the plan; nil: the program serves nobody else
	room    *room  // of the plan; nil: it has none of the session's
	pieces  []pass.Cost
	total   float64 // seconds, by the backend's rate
	inputs  []pass.Buffer
	uses    []*shared

	// Guarded by the session's lock.
	closed  bool
	pending int    // runs that are queued or in flight
	told    bool   // the plan was described, by who may be at it yet
	pool    []*run // runs that may be used again
}

func newRecording(s *session, number uint32, opt pass.RecordOptions, r *recorder, program Program, key []byte, m *room) *recording {
	rec := &recording{
		s: s, opt: opt, number: number,
		plan: r.plan, program: program, key: key, room: m, pieces: program.Pieces(),
		inputs: r.inputs, uses: r.uses,
	}
	for _, c := range rec.pieces {
		rec.total += s.d.pace.byRate(c)
	}
	return rec
}

func (rec *recording) call() string {
	if rec.opt.Label == "" {
		return "run"
	}
	return fmt.Sprintf("run %q", rec.opt.Label)
}

func (rec *recording) Start(ctx context.Context, binds ...pass.Bind) (_ pass.Run, err error) {
	defer guard(rec.s.d.name, "start", &err)
	r, err := rec.start(ctx, binds)
	if err != nil {
		return pass.Run{}, rec.s.wrap(rec.call(), err)
	}
	return r, nil
}

func (rec *recording) start(ctx context.Context, binds []pass.Bind) (pass.Run, error) {
	s := rec.s
	if err := s.usable(); err != nil {
		return pass.Run{}, err
	}
	if err := live(ctx); err != nil {
		return pass.Run{}, err
	}
	r := rec.take()
	if err := rec.bind(r, binds); err != nil {
		rec.give(r)
		return pass.Run{}, err
	}
	r.ctx = ctx
	r.job.Serial = serials.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if rec.closed || s.closed.Load() {
		return pass.Run{}, fmt.Errorf("recording: %w", pass.ErrClosed)
	}
	rec.pending++
	s.queue = append(s.queue, r)
	if !s.pumping {
		s.pumping = true
		<-s.token
		go s.pumpFn()
	}
	return pass.MakeRun(r, r.generation), nil
}

// bind copies the data of every input.
func (rec *recording) bind(r *run, binds []pass.Bind) error {
	for i := range r.bound {
		r.bound[i] = false
	}
	for i := range binds {
		b := &binds[i]
		k := slices.IndexFunc(rec.inputs, func(in pass.Buffer) bool { return in == b.Input.Buffer })
		switch {
		case k < 0:
			return fmt.Errorf("bind %d: %v: not an input of this recording: %w", i, b.Input.Buffer, pass.ErrInvalid)
		case r.bound[k]:
			return fmt.Errorf("bind %d: input %d is bound twice: %w", i, k, pass.ErrInvalid)
		case b.F32 != nil && b.U32 != nil || b.F32 != nil && b.Input.Type() != pass.F32 || b.U32 != nil && b.Input.Type() != pass.U32:
			return fmt.Errorf("bind %d: input %d: want data of type %v: %w", i, k, b.Input.Type(), pass.ErrInvalid)
		}
		data := b.U32
		if b.Input.Type() == pass.F32 {
			data = floatWords(b.F32)
		}
		if len(data) != b.Input.Len() {
			return fmt.Errorf("bind %d: input %d: want %d elements, given %d: %w", i, k, b.Input.Len(), len(data), pass.ErrInvalid)
		}
		parallel.Copy(r.job.Inputs[k], data)
		r.bound[k] = true
	}
	if k := slices.Index(r.bound, false); k >= 0 {
		return fmt.Errorf("input %d of %d is not bound: %w", k, len(r.bound), pass.ErrInvalid)
	}
	return nil
}

func (rec *recording) Run(ctx context.Context, binds ...pass.Bind) (pass.Run, error) {
	r, err := rec.Start(ctx, binds...)
	if err != nil {
		return pass.Run{}, err
	}
	if err := r.Wait(ctx); err != nil {
		r.Close()
		return pass.Run{}, err
	}
	return r, nil
}

// take returns a run to fill: a used one if there is one.
func (rec *recording) take() *run {
	rec.s.mu.Lock()
	if n := len(rec.pool); n > 0 {
		r := rec.pool[n-1]
		rec.pool = rec.pool[:n-1]
		rec.s.mu.Unlock()
		return r
	}
	rec.s.mu.Unlock()
	r := &run{rec: rec, generation: 1, bound: make([]bool, len(rec.inputs)), finished: make(chan struct{}, 1)}
	for _, in := range rec.inputs {
		r.job.Inputs = append(r.job.Inputs, make([]uint32, in.Len()))
	}
	for _, o := range rec.plan.Outputs {
		r.job.Outputs = append(r.job.Outputs, make([]uint32, o.Len))
	}
	return r
}

// give takes a run back for another start.
func (rec *recording) give(r *run) {
	rec.s.mu.Lock()
	if !rec.closed {
		rec.pool = append(rec.pool, r)
	}
	rec.s.mu.Unlock()
}

func (rec *recording) Dump(w io.Writer) error {
	if w == nil {
		return rec.s.wrap("dump", fmt.Errorf("want a writer, given nil: %w", pass.ErrInvalid))
	}
	rec.s.mu.Lock()
	closed := rec.closed
	rec.told = true
	rec.s.mu.Unlock()
	if closed {
		return rec.s.wrap("dump", fmt.Errorf("recording: %w", pass.ErrClosed))
	}
	p := rec.plan
	cost := p.Cost()
	_, length := p.Pack(1)
	alive := p.Alive()
	_, err := fmt.Fprintf(w, "recording %q on %s: %v, %d ops, %d inputs, %d outputs, %.3g FLOP, %.3g bytes moved; temporaries: %d bytes at once, %d packed\n",
		p.Label, rec.s.d.name, p.Math, len(p.Steps), len(p.Inputs), len(p.Outputs), cost.FLOP, cost.Bytes, 4*alive, 4*length)
	if err != nil {
		return err
	}
	return rec.program.Dump(w)
}

func (rec *recording) Close() (err error) {
	if rec == nil {
		return nil
	}
	rec.s.mu.Lock()
	if rec.closed {
		rec.s.mu.Unlock()
		return nil
	}
	rec.closed = true
	rec.pool = nil
	idle := rec.pending == 0
	delete(rec.s.recordings, rec)
	rec.s.mu.Unlock()
	if idle {
		rec.free()
	} // else the pump does, after its last run
	return nil
}

// free gives up what the recording holds. No run is pending.
func (rec *recording) free() {
	var err error
	func() {
		defer guard(rec.s.d.name, "close recording", &err)
		if p, ok := rec.program.(Keepable); ok && rec.key != nil {
			if kernels, ok := p.Rest(); ok {
				rec.s.kept.put(kept{p, rec.key, kernels})
				return
			}
			rec.s.kept.recycle(rec.key)
		}
		rec.program.Free()
	}()
	rec.s.d.release(rec.uses...)
	rec.s.mu.Lock()
	told := rec.told
	rec.s.mu.Unlock()
	if !told {
		rec.plan.Steps, rec.plan.Temps = nil, nil
		rec.s.vacate(rec.room)
	}
}

// A run is one start of a recording. It is used again after Close.
type run struct {
	rec      *recording
	job      Job
	bound    []bool
	ctx      context.Context
	finished chan struct{} // a token in it tells waiters to look at over

	// Of the pump.
	from     int     // first piece that has not been submitted
	inFlight int     // parts
	done     float64 // share of the cost
	failed   error   // first error

	mu         sync.Mutex
	generation uint64
	over       bool  // done; err is final
	released   bool  // Close was called before the run was over
	err        error // what Wait returns
}

func (r *run) stale() error {
	return fmt.Errorf("%s: %s: run: %w", r.rec.s.d.name, r.rec.call(), pass.ErrClosed)
}

func (r *run) Wait(ctx context.Context, generation uint64) error {
	if ctx == nil {
		return fmt.Errorf("%s: %s: wait: want a context, given nil: %w", r.rec.s.d.name, r.rec.call(), pass.ErrInvalid)
	}
	for {
		if over, err := r.result(generation); over {
			return err
		}
		select {
		case <-r.finished:
		case <-ctx.Done():
			if over, err := r.result(generation); over {
				return err
			}
			return fmt.Errorf("%s: %s: wait: %w", r.rec.s.d.name, r.rec.call(), ctx.Err())
		}
	}
}

// result returns whether waiting is over, and with what.
func (r *run) result(generation uint64) (over bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		r.signal() // whoever else waits should look too
	}
	if r.generation != generation {
		return true, r.stale()
	}
	return r.over, r.err
}

// signal puts the token into finished. The lock is held.
func (r *run) signal() {
	select {
	case r.finished <- struct{}{}:
	default:
	}
}

func (r *run) Read(o pass.Output, f32 []float32, u32 []uint32, generation uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.generation != generation {
		return r.stale()
	}
	device := r.rec.s.d.name
	if !r.over {
		return fmt.Errorf("%s: read output: the run is not done: %w", device, pass.ErrInvalid)
	}
	if r.err != nil {
		return r.err
	}
	ref := o.Ref()
	k := int(ref.ID) - 1
	if ref.Device != r.rec.s.d.number || ref.Session != r.rec.s.number || ref.Recording != r.rec.number || k < 0 || k >= len(r.job.Outputs) {
		return fmt.Errorf("%s: read output: not an output of this recording: %w", device, pass.ErrInvalid)
	}
	t, data := pass.U32, u32
	if u32 == nil {
		t, data = pass.F32, floatWords(f32)
	}
	if t != o.Type() || len(data) != len(r.job.Outputs[k]) {
		return fmt.Errorf("%s: read output %d: want %d %v, given %d %v: %w", device, k, len(r.job.Outputs[k]), o.Type(), len(data), t, pass.ErrInvalid)
	}
	parallel.Copy(data, r.job.Outputs[k])
	return nil
}

func (r *run) Close(generation uint64) {
	r.mu.Lock()
	if r.generation != generation || r.released {
		r.mu.Unlock()
		return
	}
	r.released = true
	over := r.over
	r.mu.Unlock()
	if over {
		r.reuse()
	}
}

// reuse makes the run ready for another start. It is over and was released.
func (r *run) reuse() {
	r.mu.Lock()
	r.generation++
	r.over, r.released, r.err = false, false, nil
	r.from, r.inFlight, r.done, r.failed, r.ctx = 0, 0, 0, nil, nil
	select {
	case <-r.finished:
	default:
	}
	r.mu.Unlock()
	r.rec.give(r)
}
