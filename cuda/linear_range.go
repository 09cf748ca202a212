package cuda

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// How much larger than another's the weights of a feature may be, by what operands are: two
// halves, of which an activation 2^16 below the largest of its row lacks nothing, or one, which
// has its bits down to 2^26. Of one far below that, which weights as much larger make up for,
// there would be less and less.
const (
	exactRange = 1 << 16
	fastRange  = 1 << 26
)

// noFeature is how far below the largest weights count as none, as those that have decayed
// do: no activations of networks make up for that.
const noFeature = 0x1p-64

// measure finds out how far the weights of features are apart, in each of the tensors that
// the matrix consists of, before a product first takes them as F16.
func (m *matrix) measure(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.apart > 0 {
		return nil
	}
	const enough = 512 // blocks that keep a large GPU busy
	across := ceilDiv(m.stride, kernels.FeaturesColumns)
	total, parts := 0, make([]int, len(m.tensors))
	for i, rows := range m.tensors {
		parts[i] = min(ceilDiv(enough, across), ceilDiv(rows, 64))
		total += parts[i] * m.stride
	}
	peaks, err := m.d.alloc(m.label+" features", 4*total)
	if err != nil {
		return err
	}
	defer peaks.Free()
	all := make([]float32, total)
	err = m.d.following(ctx, func(c *compiler) error {
		row, at := 0, peaks.at
		for i, rows := range m.tensors {
			err := run(c.call("linear_features_"+typeName(m.typ)), kernels.Features{
				Values: kernels.U32(m.at(row)), BlockScales: kernels.F16(m.scalesAt(row)), Peaks: kernels.F32(at),
				From: int64(m.stride), Rows: uint32(rows), Parts: uint32(parts[i]),
			}, grid{across, parts[i], 1}, 0, pass.Cost{Bytes: float64(rows * m.stride * elementBytes(m.typ))})
			if err != nil {
				return err
			}
			row, at = row+rows, at+driver.Pointer(4*parts[i]*m.stride)
		}
		return nil
	}, func() error { return m.d.fetch(ctx, float32Bytes(all), peaks, 0) })
	if err != nil {
		return fmt.Errorf("features of %s: %w", m.label, err)
	}
	for i := range m.tensors {
		n := parts[i] * m.stride
		m.apart = max(m.apart, apart(largest(all[:n], m.stride)))
		all = all[n:]
	}
	m.d.tellRange(m.label, m.apart)
	return nil
}

// ranging reports whether a product cannot take the weights as F16. They were measured.
func (m *matrix) ranging(fast bool) bool { return m.d.ranging(m.apart, fast) }

// ranging reports whether the range of weights whose features are so far apart is too wide
// for operands of F16.
func (d *device) ranging(apart float32, fast bool) bool {
	if d.choices.takes(asLoaded) {
		return true
	}
	if fast {
		return apart > fastRange
	}
	return apart > exactRange
}

// tellRange says in the log that products in Exact, and maybe in Fast, take weights as they
// are.
func (d *device) tellRange(label string, apart float32) {
	if apart > exactRange {
		d.log.Info("cuda: weights of a wide range", "weights", label, "apart", apart)
	}
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

// apart returns how many times as large as the least of these magnitudes the largest is. Those
// that count as none do not count, and what is NaN.
func apart(features []float32) float32 {
	most := float32(0)
	for _, v := range features {
		if v > most {
			most = v
		}
	}
	least := most
	for _, v := range features {
		if v > most*noFeature && v < least {
			least = v
		}
	}
	if least == 0 {
		return 1
	}
	return most / least
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
	return c.runRange(k, m.few(k), m.batch*m.rows, m.columns.Len(), cost)
}

// rangeNote says for Dump why a product is made so.
const rangeNote = "the range of the weights is too wide for F16"

// runRange emits the launch of such a product.
func (c *compiler) runRange(k *call, a kernels.Few, rows, columns int, cost pass.Cost) error {
	const most = 1<<31 - 1 - kernels.RangeTile
	if rows > most || columns > most {
		return fmt.Errorf("product of %d rows, %d columns: want at most %d of each: %w", rows, columns, most, pass.ErrUnsupported)
	}
	blocks := ceilDiv(rows, kernels.RangeTile) * ceilDiv(columns, kernels.RangeTile)
	return run(k.says(rangeNote), a, grid{blocks, 1, 1}, kernels.RangeShared(c.d.attributes.capability), cost)
}
