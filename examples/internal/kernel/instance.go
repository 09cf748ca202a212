package kernel

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// An Instance is a job on a device.
type Instance struct {
	job     *Job
	dev     pass.Device
	session pass.Session
	weights pass.Param
	buffers map[string]pass.Buffer
	op      pass.Checked
}

// On brings a job to a device. The caller closes the instance, and the device after it.
func (j *Job) On(ctx context.Context, dev pass.Device) (*Instance, error) {
	k := &Instance{job: j, dev: dev, buffers: map[string]pass.Buffer{}}
	if err := k.prepare(ctx); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

func (k *Instance) prepare(ctx context.Context) (err error) {
	j := k.job
	params, views := map[string]pass.Param{}, map[string]pass.View{}
	if k.session, err = k.dev.NewSession(pass.SessionConfig{Label: "bench"}); err != nil {
		return err
	}
	for _, p := range j.c.Params {
		if k.weights, err = k.dev.Load(ctx, p.Weights); err != nil {
			return err
		}
		params[p.Field] = k.weights
	}
	for _, name := range j.Args {
		b, err := k.session.Alloc(j.typeOf(name), j.size[name])
		if err != nil {
			return err
		}
		k.buffers[name], views[name] = b, b.View()
		if data, ok := j.host[name]; ok {
			if err := k.session.Write(ctx, b.View(), data); err != nil {
				return err
			}
		}
	}
	op, err := j.c.Bind(views, params, nil)
	if err != nil {
		return err
	}
	k.op, err = pass.Check(op)
	return err
}

// Cost returns what the op itself must do.
func (k *Instance) Cost() pass.Cost { return k.op.Cost }

// Close gives back what the instance has on its device, recordings among it.
func (k *Instance) Close() error {
	var errs []error
	if k.session != nil {
		errs = append(errs, k.session.Close())
	}
	if !k.weights.IsZero() {
		errs = append(errs, k.dev.Unload(k.weights))
	}
	return errors.Join(errs...)
}

// A Timed is a recording of an instance whose results were right.
type Timed struct {
	k    *Instance
	math pass.Math
	rec  pass.Recording

	Ops   int             // that a run does
	First time.Duration   // by the first run, which was of one op
	L2    float64         // largest relative L2 error of a sample, against float64
	Limit cases.Tolerance // that errors were held against
}

// Record records the op once, as the device would compute it now, runs it and compares
// sampled parts of its results with float64. Results that are wrong are an error; see
// [ErrWrong].
func (k *Instance) Record(ctx context.Context, m pass.Math) (*Timed, error) {
	t := &Timed{k: k, math: m}
	if err := k.reset(ctx); err != nil {
		return nil, err
	}
	err := t.record(ctx, 1)
	if err == nil {
		t.First, err = t.Once(ctx)
	}
	if err == nil {
		err = t.check(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// reset makes outputs what no op leaves behind, so that those of another recording do not
// pass for those of this one.
func (k *Instance) reset(ctx context.Context) error {
	for _, name := range k.job.c.Outputs {
		n := k.job.size[name]
		var data any
		if host, ok := k.job.host[name]; ok {
			data = host
		} else if name == k.job.IDs {
			data = slices.Repeat([]uint32{math.MaxUint32}, n)
		} else {
			data = slices.Repeat([]float32{float32(math.NaN())}, n)
		}
		if err := k.session.Write(ctx, k.buffers[name].View(), data); err != nil {
			return err
		}
	}
	return nil
}

// record makes the recording of n times the op.
func (t *Timed) record(ctx context.Context, n int) error {
	if err := t.Close(); err != nil {
		return err
	}
	op := t.k.op.Op
	rec, err := t.k.session.Record(ctx, pass.RecordOptions{Label: op.Name(), Math: t.math}, func(p pass.Pass) {
		for range n {
			p.Do(op)
		}
	})
	if err != nil {
		return err
	}
	t.rec, t.Ops = rec, n
	return nil
}

// mostRepeats bounds the ops of a run.
const mostRepeats = 4096

// Repeat raises the number of ops in a run until it takes about the given time: so long
// that what comes with each run is a percent or two. How long a first run takes says
// little: kernels may be loaded by it, and clocks be low.
func (t *Timed) Repeat(ctx context.Context, long time.Duration) error {
	const slow = time.Second // once more would take as long
	if t.First >= max(long, slow) {
		return nil
	}
	for {
		took, err := t.least(ctx, 3)
		if err != nil || took >= long || t.Ops >= mostRepeats {
			return err
		}
		n := int(1.2 * float64(t.Ops) * float64(long) / float64(max(took, time.Microsecond)))
		if err := t.record(ctx, min(max(n, 2*t.Ops), mostRepeats)); err != nil {
			return err
		}
	}
}

// least returns the shortest of n runs, of fewer if they take long.
func (t *Timed) least(ctx context.Context, n int) (time.Duration, error) {
	const enough = 100 * time.Millisecond
	least, sum := time.Duration(math.MaxInt64), time.Duration(0)
	for i := 0; i < n && sum < enough; i++ {
		took, err := t.Once(ctx)
		if err != nil {
			return 0, err
		}
		least, sum = min(least, took), sum+took
	}
	return least, nil
}

// Once replays the recording and returns the time from the call to its end.
func (t *Timed) Once(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	run, err := t.rec.Run(ctx)
	took := time.Since(start)
	run.Close()
	return took, err
}

// Several replays the recording n times, one run behind the other, and returns the time of
// one. What starting and ending a run takes counts less than in Once.
func (t *Timed) Several(ctx context.Context, n int) (time.Duration, error) {
	start := time.Now()
	runs := make([]pass.Run, 0, n)
	var err error
	for len(runs) < n && err == nil {
		var r pass.Run
		if r, err = t.rec.Start(ctx); err == nil {
			runs = append(runs, r)
		}
	}
	for _, r := range runs {
		if err == nil {
			err = r.Wait(ctx)
		}
		r.Close()
	}
	return time.Since(start) / time.Duration(max(n, 1)), err
}

// Close gives the recording back; the instance stays.
func (t *Timed) Close() error {
	if t.rec == nil {
		return nil
	}
	rec := t.rec
	t.rec = nil
	return rec.Close()
}
