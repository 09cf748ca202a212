package kernel

import (
	"slices"

	"github.com/tandem-gpu/tandem/pass"
)

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
		for _, p := range some {
			if p, err = narrow(p); err != nil {
				return nil, err
			}
			cut = append(cut, p)
		}
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

// narrow shortens the image of a sampled row to what is around it: float64 goes through
// all of an image, whatever is asked for.
func narrow(op pass.Checked) (pass.Checked, error) {
	d, ok := op.Op.(pass.DepthwiseConv2D)
	if !ok || d.Out.Len() != 1 || !d.Lengths.IsZero() {
		return op, nil
	}
	stride := 2 // of an output row, in rows of the image
	if s, _ := d.W.Shape().(pass.DepthwiseShape); s.First {
		stride = 4
	}
	const before, around = 2, 4 // output rows; what one reads lies within
	skipped := max(d.Out.From-before, 0)
	by := skipped * stride
	d.Out = pass.Span{From: d.Out.From - skipped, To: d.Out.To - skipped}
	d.Held = pass.Span{From: d.Held.From - by, To: d.Held.To - by}
	d.Time = min(d.Time-by, around*stride)
	return pass.Check(d)
}
