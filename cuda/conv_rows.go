package cuda

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// A convLayout says how the windows of a convolution lie in memory for tensor cores: as
// groups of width elements, a multiple of eight. A group holds steps input steps (or
// pixels) and the next begins group steps later; in a window the first group steps of each
// group count, and all steps of the last.
//
// Usually a group is one step, whose channels are filled up. Of few channels that would
// leave most of a group empty; then a group is as many steps as a window moves on, together
// with those that the window has beyond whole groups, so that it ends where a group ends.
// Nothing that lies in a window's groups, but not in the window itself, is ever multiplied,
// not even with zero: it may be NaN.
type convLayout struct {
	group, steps, groups, width int
}

// depth returns how many products a window has.
func (l convLayout) depth() int { return l.groups * l.width }

// stepLayout is the layout of one step in a group.
func stepLayout(in, taps int) convLayout { return convLayout{1, 1, taps, roundUp(in, 8)} }

// layWindows chooses the layout of windows along time: that of fewer products.
func layWindows(in, taps, stride int) convLayout {
	single := stepLayout(in, taps)
	g := convLayout{group: stride, groups: max(taps/stride, 1)}
	g.steps = taps - (g.groups-1)*stride
	g.width = roundUp(g.steps*in, 8)
	if in%8 == 0 || g.depth() >= single.depth() {
		return single
	}
	return g
}

// rows returns the weights as rows of a layout, which are made when first needed.
func (p *convParam) rows(ctx context.Context, l convLayout, exact bool) (halves, error) {
	m, err := p.form(ctx, l)
	if err != nil {
		return halves{}, fmt.Errorf("conv weights %q as rows: %w", p.name, err)
	}
	return m.halves(ctx, exact)
}

func (p *convParam) form(ctx context.Context, l convLayout) (*matrix, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.forms[l]; m != nil {
		return m, nil
	}
	typ := p.typ
	if typ == pass.Q8_0 {
		typ = pass.F32 // a block's scale is that of taps, not of rows
	}
	m, err := p.d.newMatrix(p.name+" as rows", typ, p.out, l.depth())
	if err != nil {
		return nil, err
	}
	err = p.d.immediately(ctx, func(c *compiler) error {
		return run(c.call("conv1d_rows"), kernels.ConvRows{
			Matrix: kernels.F32(p.direct.at), Rows: kernels.U32(m.values.at),
			MatrixStride: int64(p.stride), Stride: int64(m.stride),
			Type: uint32(typ), In: uint32(p.in), Taps: uint32(p.taps),
			Group: uint32(l.group), Steps: uint32(l.steps), Groups: uint32(l.groups), Width: uint32(l.width),
		}, grid{p.out, 1, 1}, 0, pass.Cost{})
	})
	if err != nil {
		m.Free()
		return nil, err
	}
	if p.forms == nil {
		p.forms = map[convLayout]*matrix{}
	}
	p.forms[l] = m
	return m, nil
}

// overlapping reports whether the driver makes tensor maps whose rows overlap. CUDA's
// documentation has rows that lie apart; the hardware computes addresses and does not care.
func (c *compiler) overlapping(m *memory) bool {
	_, err := c.tensorMap(keyOf(driver.TensorMap{
		Type: driver.TensorF16, Address: m.at, Size: []uint64{64, 4, 2}, Stride: []uint64{32, 5 * 32},
		Box: []uint32{64, 2, 1}, Swizzle: driver.Swizzle128, Promote: 256,
	}))
	return err == nil
}

// convWays lists the ways to compute a convolution, the rule's first: on tensor cores once
// there are so many products that what they save outweighs the launches that prepare the
// input. Rows are those of a whole item, so that an op in parts has the same bits.
func convWays(rows, depth, columns int) (rule string, ways []string) {
	const worth = 64 << 20
	products := float64(rows) * float64(depth) * float64(columns)
	rule = fmt.Sprintf("%.3g products", products)
	if products < worth {
		return rule, []string{"direct", "tiles"}
	}
	return rule, []string{"tiles", "direct"}
}

// mathName names the math of a step.
func (c *compiler) mathName() string {
	if c.fast {
		return "fast"
	}
	return "exact"
}

// peaks emits the launch that finds the largest magnitudes of parts of each item, which
// the scales of a layout in groups follow from, and returns them with the number of parts.
func (c *compiler) peaks(p preparation) (peaks region, parts int, err error) {
	parts = min(max(ceilDiv(p.inLines*p.inWidth*p.channels, 16384), 1), 128)
	peaks = c.temporary(4 * p.items * parts)
	k := c.call("tile_peaks")
	args := kernels.Prepare{
		X: p.x(k), Lengths: p.lengths(k), Peaks: kernels.F32(k.to(peaks)),
		InLines: uint32(p.inLines), InWidth: uint32(p.inWidth), Items: uint32(p.items), Columns: uint32(p.channels), Parts: uint32(parts),
	}
	return peaks, parts, run(k, args, grid{p.items * parts, 1, 1}, 0, pass.Cost{Bytes: 4 * float64(p.items*p.inLines*p.inWidth) * float64(p.channels)})
}
