package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// A kernel is one op to time. Arguments lie in buffers of a session, so nothing moves
// between host and device while it is timed. A run is one replay of a recording that does
// the op many times, one after the other, such that what starting a replay costs does not
// show.
type kernel struct {
	op   pass.Op
	args []string                     // fields that are views
	ids  string                       // that of them which is U32, one row an item; "": none
	load func() (pass.Weights, error) // weights of its field W; nil: none
}

// A kernelJob is a kernel with the data that all devices share.
type kernelJob struct {
	kernel
	c    cases.Case
	host map[string][]float32   // what buffers hold at first
	size map[string]int         // elements of each buffer
	want map[int][]cases.Tensor // of each sample, once it was computed
}

// kernelCase is a case of a table.
func kernelCase(name, shape string, k kernel) benchmarkCase {
	return benchmarkCase{name: name, shape: shape, steady: true, make: func() (setup, error) {
		j, err := k.job()
		if err != nil {
			return nil, err
		}
		return j.setup, nil
	}}
}

// job makes weights and inputs: random, the same every time.
func (k kernel) job() (*kernelJob, error) {
	j := &kernelJob{kernel: k, host: map[string][]float32{}, size: map[string]int{}, want: map[int][]cases.Tensor{}}
	j.c = cases.Case{Op: k.op}
	params := map[string]pass.Param{}
	if k.load != nil {
		w, err := k.load()
		if err != nil {
			return nil, err
		}
		shape, err := w.Shape()
		if err != nil {
			return nil, err
		}
		j.c.Params = []cases.Param{{Field: "W", Weights: w}}
		params["W"] = pass.MakeParam(pass.Ref{Device: 1, ID: 1, Generation: 1}, shape)
	}
	views := map[string]pass.View{}
	const huge = min(1<<40, math.MaxInt>>4) // elements; nothing is allocated
	for i, name := range k.args {
		views[name] = pass.MakeBuffer(pass.Ref{Device: 1, Session: 1, ID: uint32(i + 1), Generation: 1}, k.typeOf(name), huge).View()
	}
	op, err := j.c.Bind(views, params, nil)
	if err != nil {
		return nil, err
	}
	checked, err := pass.Check(op)
	if err != nil {
		return nil, err
	}
	for i, a := range checked.Args {
		n := a.Batch * a.Rows * a.Cols
		j.size[a.Name] = n
		if a.Access&pass.Read != 0 {
			j.host[a.Name] = random(uint64(i+1), n, 1)
		}
		if a.Access&pass.Write != 0 {
			j.c.Outputs = append(j.c.Outputs, a.Name)
		}
	}
	return j, nil
}

func (k kernel) typeOf(arg string) pass.DType {
	if arg == k.ids {
		return pass.U32
	}
	return pass.F32
}

// random returns n values from −scale to scale.
func random(seed uint64, n int, scale float32) []float32 {
	rng := rand.New(rand.NewPCG(seed, 1))
	v := make([]float32, n)
	for i := range v {
		v[i] = (2*rng.Float32() - 1) * scale
	}
	return v
}

// An instance is a kernel on a device.
type instance struct {
	job     *kernelJob
	t       *target
	session pass.Session
	weights pass.Param
	buffers map[string]pass.Buffer
	op      pass.Checked
	rec     pass.Recording
	repeats int           // of the op in a run
	took    time.Duration // by the first run, of one op
}

func (j *kernelJob) setup(ctx context.Context, t *target) (*ready, error) {
	k := &instance{job: j, t: t, buffers: map[string]pass.Buffer{}}
	if err := k.prepare(ctx); err != nil {
		return nil, errors.Join(err, k.close())
	}
	r := &ready{once: k.once, ops: k.repeats, cost: k.op.Cost, close: k.close}
	if k.repeats == 1 {
		r.first = k.took
	}
	return r, nil
}

// prepare brings everything to the device, checks the result of the op, and finds how
// often a run should do it.
func (k *instance) prepare(ctx context.Context) (err error) {
	j := k.job
	params, views := map[string]pass.Param{}, map[string]pass.View{}
	if k.session, err = k.t.dev.NewSession(pass.SessionConfig{Label: "bench"}); err != nil {
		return err
	}
	for _, p := range j.c.Params {
		if k.weights, err = k.t.dev.Load(ctx, p.Weights); err != nil {
			return err
		}
		params[p.Field] = k.weights
	}
	for _, name := range j.args {
		b, err := k.session.Alloc(j.typeOf(name), j.size[name])
		if err != nil {
			return err
		}
		if data, ok := j.host[name]; ok {
			if err := k.session.Write(ctx, b.View(), data); err != nil {
				return err
			}
		}
		k.buffers[name], views[name] = b, b.View()
	}
	op, err := j.c.Bind(views, params, nil)
	if err != nil {
		return err
	}
	if k.op, err = pass.Check(op); err != nil {
		return err
	}
	if err := k.record(ctx, 1); err != nil {
		return err
	}
	if k.took, err = k.once(ctx); err != nil {
		return err
	}
	if err := k.check(ctx); err != nil {
		return err
	}
	return k.repeat(ctx, k.took)
}

// record makes the recording of n times the op.
func (k *instance) record(ctx context.Context, n int) error {
	if k.rec != nil {
		if err := k.rec.Close(); err != nil {
			return err
		}
	}
	var err error
	k.repeats = n
	k.rec, err = k.session.Record(ctx, pass.RecordOptions{Label: k.op.Op.Name(), Math: k.t.math}, func(p pass.Pass) {
		for range n {
			p.Do(k.op.Op)
		}
	})
	return err
}

// A run should take so long that what comes with each of them is a percent or two, and so
// short that there are many.
const (
	longRun     = 10 * time.Millisecond
	mostRepeats = 4096
)

// repeat raises the number of ops in a run until it is long enough. took is what a run of
// one took, most of which may be the cost of starting it.
func (k *instance) repeat(ctx context.Context, took time.Duration) error {
	long := min(longRun, k.t.time/20)
	for took < long && k.repeats < mostRepeats {
		n := int(1.2 * float64(k.repeats) * float64(long) / float64(max(took, time.Microsecond)))
		if err := k.record(ctx, min(max(n, 2*k.repeats), mostRepeats)); err != nil {
			return err
		}
		took = math.MaxInt64
		for range 3 {
			d, err := k.once(ctx)
			if err != nil {
				return err
			}
			took = min(took, d)
		}
	}
	return nil
}

// once replays the recording, from the call to its end.
func (k *instance) once(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	run, err := k.rec.Run(ctx)
	took := time.Since(start)
	run.Close()
	return took, err
}

func (k *instance) close() error {
	var errs []error
	if k.session != nil {
		errs = append(errs, k.session.Close())
	}
	if !k.weights.IsZero() {
		errs = append(errs, k.t.dev.Unload(k.weights))
	}
	return errors.Join(errs...)
}

// check compares sampled parts of what the device computed with float64: the first, the
// middle and the last item, and of each the first, the middle and the last row or head.
func (k *instance) check(ctx context.Context) error {
	output, ids := map[string][]float32{}, []uint32(nil)
	for _, name := range k.job.c.Outputs {
		var data any
		if name == k.job.ids {
			ids = make([]uint32, k.job.size[name])
			data = ids
		} else {
			output[name] = make([]float32, k.job.size[name])
			data = output[name]
		}
		if err := k.session.Read(ctx, k.buffers[name].View(), data); err != nil {
			return err
		}
	}
	gathered := func(a pass.Arg) cases.Tensor {
		if a.Name == k.job.ids {
			return cases.U32(a.Name, gather(ids, a), a.Batch, a.Rows, a.Cols)
		}
		return cases.F32(a.Name, gather(output[a.Name], a), a.Batch, a.Rows, a.Cols)
	}
	parts, err := sample(k.op)
	if err != nil {
		return err
	}
	for i, part := range parts {
		c := k.job.c
		c.Op = part.Op
		for _, a := range part.Args {
			if a.Access&pass.Read != 0 {
				c.Inputs = append(slices.Clip(c.Inputs), cases.F32(a.Name, gather(k.job.host[a.Name], a), a.Batch, a.Rows, a.Cols))
			}
		}
		want, ok := k.job.want[i]
		if !ok {
			if want, err = c.Truth(); err != nil {
				return err
			}
			k.job.want[i] = want
		}
		tolerance := c.In(k.t.math).Limits()
		for _, a := range part.Args {
			at := slices.IndexFunc(want, func(t cases.Tensor) bool { return t.Name == a.Name })
			if a.Access&pass.Write == 0 || at < 0 {
				continue
			}
			if err := cases.Compare(gathered(a), want[at], tolerance).Err(tolerance); err != nil {
				return fmt.Errorf("wrong result, not timed: from element %d: %w", a.View.Offset, err)
			}
		}
	}
	return nil
}

// sample returns the parts of an op that are checked.
func sample(op pass.Checked) ([]pass.Checked, error) {
	parts := []pass.Checked{op}
	for _, axis := range []pass.Axis{pass.AxisBatch, pass.AxisRows, pass.AxisHeads} {
		var cut []pass.Checked
		for _, p := range parts {
			i := slices.IndexFunc(p.Op.Cuts(), func(c pass.Cut) bool { return c.Axis == axis })
			if i < 0 || p.Op.Cuts()[i].Extent < 2 {
				cut = append(cut, p)
				continue
			}
			n := p.Op.Cuts()[i].Extent
			for _, at := range slices.Compact([]int{0, n / 2, n - 1}) {
				part, err := pass.Part(p, axis, at, at+1)
				if err != nil {
					return nil, err
				}
				cut = append(cut, part)
			}
		}
		parts = cut
	}
	return parts, nil
}

// gather returns the elements of an argument, dense.
func gather[T any](buffer []T, a pass.Arg) []T {
	values := make([]T, 0, a.Batch*a.Rows*a.Cols)
	for b := range a.Batch {
		for r := range a.Rows {
			at := a.View.Offset + b*a.View.BatchStride + r*a.View.RowStride
			values = append(values, buffer[at:at+a.Cols]...)
		}
	}
	return values
}
