package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/passtest/cases"
)

// ErrWrong is wrapped by the error for results that are further from float64 than the kind of
// math allows.
var ErrWrong = errors.New("wrong result, not timed")

// check compares sampled parts of what the device computed with float64: the first, the
// middle and the last item, and of each the first, the middle and the last row or head.
func (t *Timed) check(ctx context.Context) error {
	k := t.k
	output, ids := map[string][]float32{}, []uint32(nil)
	for _, name := range k.job.c.Outputs {
		var data any
		if name == k.job.IDs {
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
		if a.Name == k.job.IDs {
			return cases.U32(a.Name, gather(ids, a), a.Batch, a.Rows, a.Cols)
		}
		return cases.F32(a.Name, gather(output[a.Name], a), a.Batch, a.Rows, a.Cols)
	}
	parts, err := sample(k.op)
	if err != nil {
		return err
	}
	t.Limit = k.job.c.In(t.math).Limits()
	for i, part := range within(parts, k.job.Bound) {
		want, err := k.job.truth(i, part)
		if err != nil {
			return err
		}
		for _, a := range part.Args {
			at := slices.IndexFunc(want, func(t cases.Tensor) bool { return t.Name == a.Name })
			if a.Access&pass.Write == 0 || at < 0 {
				continue
			}
			report := cases.Compare(gathered(a), want[at], t.Limit)
			if err := report.Err(t.Limit); err != nil {
				return fmt.Errorf("%w: from element %d: %w", ErrWrong, a.View.Offset, err)
			}
			t.L2 = max(t.L2, report.L2)
		}
	}
	return nil
}

// Foresee computes what checks compare with, which takes longer than most ops do on a device.
func (j *Job) Foresee() error {
	parts, err := sample(j.op)
	if err != nil {
		return err
	}
	for i, part := range within(parts, j.Bound) {
		if _, err := j.truth(i, part); err != nil {
			return err
		}
	}
	return nil
}

// truth computes a sample in float64, once.
func (j *Job) truth(i int, part pass.Checked) ([]cases.Tensor, error) {
	if want, ok := j.want[i]; ok {
		return want, nil
	}
	c := j.c
	c.Op = part.Op
	for _, a := range part.Args {
		if a.Access&pass.Read != 0 {
			c.Inputs = append(slices.Clip(c.Inputs), cases.F32(a.Name, gather(j.host[a.Name], a), a.Batch, a.Rows, a.Cols))
		}
	}
	want, err := c.Truth()
	if err == nil {
		j.want[i] = want
	}
	return want, err
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
