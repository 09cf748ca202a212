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

// within returns the samples, from the last, for which so many operations suffice; at
// least one.
func within(parts []pass.Checked, bound float64) []pass.Checked {
	if bound == 0 {
		return parts
	}
	var some []pass.Checked
	sum := 0.0
	for _, p := range slices.Backward(parts) {
		if sum += p.Cost.FLOP; some == nil || sum <= bound {
			some = append(some, p)
		}
	}
	return some
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
			for _, at := range ends(p.Op.Cuts()[i].Extent) {
				part, err := pass.Part(p, axis, at, at+1)
				if err != nil {
					return nil, err
				}
				cut = append(cut, part)
			}
		}
		parts = cut
	}
	var cut []pass.Checked
	for _, p := range parts {
		some, err := queries(p)
		if err != nil {
			return nil, err
		}
		cut = append(cut, some...)
	}
	return cut, nil
}

// ends returns the first, the middle and the last of n.
func ends(n int) []int { return slices.Compact([]int{0, n / 2, n - 1}) }

// queries samples the queries of attention, where what one sees does not depend on how many
// there are.
func queries(op pass.Checked) ([]pass.Checked, error) {
	a, ok := op.Op.(pass.Attention)
	if !ok || a.Queries < 2 || a.Mask.Kind() != pass.MaskNone || !a.Q2.IsZero() || !a.Lengths.IsZero() {
		return []pass.Checked{op}, nil
	}
	var parts []pass.Checked
	for _, at := range ends(a.Queries) {
		one := a
		one.Q, one.O, one.Queries = a.Q.At(at*a.Q.RowStride), a.O.At(at*a.O.RowStride), 1
		part, err := pass.Check(one)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
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
