package cuda

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// featureRange is how much larger than another's the weights of a feature may be, a power of
// two. Halves of an activation 2^16 below the largest of its row lack nothing; of one far
// below that, which weights as much larger make up for, there would be less and less.
const featureRange = 1 << 16

// measure finds out whether the range of the weights is too wide for operands of F16, before
// a product first takes them so. Features without any weight count for nothing.
func (m *matrix) measure(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.measured {
		return nil
	}
	const enough = 512 // blocks that keep a large GPU busy
	across := ceilDiv(m.stride, kernels.FeaturesColumns)
	parts := min(ceilDiv(enough, across), ceilDiv(m.rows, 64))
	peaks, err := m.d.alloc(m.label+" features", 4*parts*m.stride)
	if err != nil {
		return err
	}
	defer peaks.Free()
	all := make([]float32, parts*m.stride)
	err = m.d.following(ctx, func(c *compiler) error {
		return run(c.call("linear_features_"+typeName(m.typ)), kernels.Features{
			Values: kernels.U32(m.values.at), BlockScales: kernels.F16(m.scalesAt(0)), Peaks: kernels.F32(peaks.at),
			From: int64(m.stride), Rows: uint32(m.rows), Parts: uint32(parts),
		}, grid{across, parts, 1}, 0, pass.Cost{Bytes: float64(m.values.bytes)})
	}, func() error { return m.d.fetch(ctx, float32Bytes(all), peaks, 0) })
	if err != nil {
		return fmt.Errorf("features of %s: %w", m.label, err)
	}
	m.ranging, m.measured = ranging(largest(all, m.stride)) || m.d.choices.takes(asLoaded), true
	return nil
}

// asLoaded is what Config.Ways has, under the empty name, for a device that takes all
// weights for such of a wide range.
const asLoaded = "weights as loaded"

// largest returns the largest of the magnitudes of each of so many features, of which all
// come again and again.
func largest(all []float32, features int) []float32 {
	first := all[:features]
	for rest := all[features:]; len(rest) > 0; rest = rest[features:] {
		for i, v := range rest[:features] {
			if v > first[i] {
				first[i] = v
			}
		}
	}
	return first
}

// ranging reports whether features of these magnitudes differ by more than F16 holds.
func ranging(features []float32) bool {
	least, most := float32(0), float32(0)
	for _, v := range features {
		if v > 0 && (least == 0 || v < least) {
			least = v
		}
		most = max(most, v)
	}
	return least < most/featureRange
}

// measure finds out about the weights of all products of more than a few rows, since how
// others leave activations depends on it.
func (c *compiler) measure() error {
	for i, step := range c.plan.Steps {
		op, ok := step.Op.(pass.Gemm)
		if !ok || op.Batch*op.Rows <= fewRows {
			continue
		}
		if err := c.plan.Param(op.W).(*linearParam).measure(c.ctx); err != nil {
			return fmt.Errorf("op %d: %s: %w", i, op.Name(), err)
		}
	}
	return nil
}

// wideRange emits a product by weights of a wide range, as they were loaded. Activations are
// not prepared.
func (c *compiler) wideRange(m linearProduct, cost pass.Cost) error {
	k := c.call("linear_range_" + typeName(m.p.typ))
	args := m.few(k)
	return c.runRange(k, args, cost)
}

// rangeNote says for Dump why a product is made so.
const rangeNote = "the range of the weights is too wide for F16"

// runRange emits the launch of such a product.
func (c *compiler) runRange(k *call, a kernels.Few, cost pass.Cost) error {
	blocks := ceilDiv(int(a.Rows), kernels.RangeTile) * ceilDiv(int(a.Columns), kernels.RangeTile)
	return run(k.says(rangeNote), a, grid{blocks, 1, 1}, kernels.RangeShared(c.d.attributes.capability), cost)
}
