package main

import (
	"context"
	"errors"
	"time"

	"github.com/tandem-gpu/tandem/examples/internal/kernel"
)

// longRun is how long a run should take: so long that what comes with each of them is a
// percent or two, and so short that there are many.
const longRun = 10 * time.Millisecond

// kernelCase is a case of a table: one op, of which a run does many, one after the other.
func kernelCase(name, shape string, k kernel.Kernel) benchmarkCase {
	return benchmarkCase{name: name, shape: shape, steady: true, make: func() (setup, error) {
		j, err := k.Job()
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, t *target) (*ready, error) { return setUp(ctx, j, t) }, nil
	}}
}

// setUp brings a job to a device, checks the result of the op, and finds how often a run
// should do it.
func setUp(ctx context.Context, j *kernel.Job, t *target) (*ready, error) {
	k, err := j.On(ctx, t.dev)
	if err != nil {
		return nil, err
	}
	timed, err := k.Record(ctx, t.math)
	if err == nil {
		err = timed.Repeat(ctx, min(longRun, t.time/20))
	}
	if err != nil {
		return nil, errors.Join(err, k.Close())
	}
	r := &ready{once: timed.Once, ops: timed.Ops, cost: k.Cost(), close: k.Close}
	if timed.Ops == 1 {
		r.first = timed.First
	}
	return r, nil
}
