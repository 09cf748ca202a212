package cuda

import (
	"context"
	"fmt"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

func (d *device) loadConv1D(ctx context.Context, w pass.ConvWeights, s pass.ConvShape) (backend.Memory, error) {
	return d.loadConv(ctx, w.Name, w.Weight, s.Out, s.In, s.Kernel, w.Bias)
}

// conv1d compiles a Conv1D.
func (c *compiler) conv1d(op pass.Conv1D, cost pass.Cost) error {
	if op.Batch == 0 || op.Out.Len() == 0 {
		return nil
	}
	p := c.plan.Param(op.W).(*convParam)
	if err := c.checkConv1D(op, p); err != nil {
		return err
	}
	if c.tilesConv1D(op) {
		if err := p.measure(c.ctx); err != nil {
			return err
		}
	}
	l := layWindows(p.in, p.taps, op.Stride)
	switch d := c.decideConv1D(op, p, l); {
	case d.way == "direct":
		return c.conv1dDirect(op, p, d.direct, cost)
	case d.stretch != nil:
		return c.conv1dStretch(op, p, *d.stretch, d.why, cost)
	}
	return c.conv1dTiles(op, p, l, cost)
}

// A convAsked is all of a Conv1D that decides how it is computed.
type convAsked struct {
	p                       *convParam
	fast, abs, lengths      bool
	epilogue                pass.Epilogue
	padding                 pass.Padding
	out                     pass.Span
	batch, in, stride, pool int
	padLeft, padRight       int
}

// A convDecision is the way that was chosen for a Conv1D, and why. A recording has few kinds.
type convDecision struct {
	way, why string
	direct   directChoice // if that is the way
	stretch  *stretchPlan // nil: another way
}

// decideConv1D chooses how to compute a Conv1D.
func (c *compiler) decideConv1D(op pass.Conv1D, p *convParam, l convLayout) convDecision {
	asked := convAsked{
		p, c.fast, op.Abs, !op.Lengths.View().IsZero(), op.Epilogue, op.Padding, op.Out, op.Batch, op.In, op.Stride, op.Pool,
		op.PadLeft, op.PadRight,
	}
	if was, ok := c.convs[asked]; ok {
		return was
	}
	phase := func(tap int) int { return tap % op.Stride }
	if c.tilesConv1D(op) && c.d.ranging(p.apart(min(op.Stride, p.taps), phase), c.fast) {
		d := convDecision{way: "direct", direct: chooseDirect(op.Batch*op.Out.Len(), p.out)}
		d.direct.why += "; " + rangeNote
		return d
	}
	rule, ways := convWays(op.Steps(op.In)*op.Pool, l.depth(), p.out)
	if !c.tilesConv1D(op) {
		ways = []string{"direct"}
	}
	stretches := c.planStretches(op, p)
	ways = stretchWays(ways, stretches, op, p)
	var d convDecision
	d.way, d.why = c.choose(fmt.Sprintf("conv1d %s %d×%dto%d k%ds%d %v", c.mathName(), op.Steps(op.In)*op.Pool, p.in, p.out, p.taps, op.Stride, p.typ), rule, ways...)
	for i := range stretches {
		if d.way == stretches[i].String() {
			d.stretch = &stretches[i]
			break
		}
	}
	if d.way == "direct" {
		d.direct = chooseDirect(op.Batch*op.Out.Len(), p.out)
		d.direct.why += "; " + d.why
	}
	if c.convs == nil {
		c.convs = map[convAsked]convDecision{}
	}
	c.convs[asked] = d
	return d
}

// tilesConv1D reports whether a Conv1D can go to tensor cores. Only the kernels in FP32
// check numbers on the device that are too small to be mirrored, and pads have limits.
func (c *compiler) tilesConv1D(op pass.Conv1D) bool {
	const most = 1 << 30
	mirrored := op.Padding == pass.PadReflect && max(op.PadLeft, op.PadRight) > 0
	return op.PadLeft+op.PadRight < most && !(mirrored && !op.Lengths.View().IsZero())
}

// checkConv1D refuses what kernels cannot count.
func (c *compiler) checkConv1D(op pass.Conv1D, p *convParam) error {
	const most = 1<<31 - 1
	if rows := op.Batch * op.Out.Len() * op.Pool; rows > most/2 || 2*op.In > most-p.taps || p.depth() > most || op.Stride > most {
		return fmt.Errorf("%d output steps of %d input steps, %d × %d products, stride %d: want less than 2^30 of each: %w",
			rows, op.In, p.taps, p.in, op.Stride, pass.ErrUnsupported)
	}
	return nil
}

// conv1dDirect emits a Conv1D as one launch in FP32.
func (c *compiler) conv1dDirect(op pass.Conv1D, p *convParam, t directChoice, cost pass.Cost) error {
	rows := op.Batch * op.Out.Len()
	k := c.call("conv1d_" + t.name)
	args := kernels.Conv1D{
		X:       k.read(op.X, op.Batch, op.In, p.in),
		Y:       k.write(op.Y, op.Batch, op.Out.Len(), p.out),
		Weights: kernels.F32(p.direct.at), Bias: p.biasAt(), WeightsRow: int64(p.stride),
		Lengths: k.items(op.Lengths, op.Batch, op.In),
		PadLeft: int64(op.PadLeft), PadRight: int64(op.PadRight), From: int64(op.Out.From),
		Rows: uint32(rows), ItemRows: uint32(op.Out.Len()), Columns: uint32(p.out), In: uint32(p.in), Kernel: uint32(p.taps),
		Stride: uint32(op.Stride), Pool: uint32(op.Pool),
		Reflect: flag(op.Padding == pass.PadReflect && max(op.PadLeft, op.PadRight) > 0), Abs: flag(op.Abs),
		Epilogue: epilogue(op.Epilogue),
	}
	args.Vectors = flag(inQuads(args.Y))
	return run(k.says(t.why), args, t.grid(rows, p.out), 0, cost)
}

// conv1dTiles emits a Conv1D as a product on tensor cores, whose rows are windows that
// overlap in the prepared input. What is pooled passes through scratch.
func (c *compiler) conv1dTiles(op pass.Conv1D, p *convParam, l convLayout, cost pass.Cost) error {
	w, err := p.rows(c.ctx, l, !c.fast)
	if err != nil {
		return err
	}
	steps := op.Out.Len() * op.Pool // of an item
	lengths := func(k *call) kernels.Items { return k.items(op.Lengths, op.Batch, op.In) }
	a, err := c.prepareWindows(op, p, l, steps)
	if err != nil {
		return err
	}
	v := product{
		a: a, items: op.Batch, lines: 1, width: steps, whole: op.Steps(op.In) * op.Pool, step: op.Stride / l.group * l.width,
		w: w, columns: pass.Span{To: p.out}, segments: 1, depth: l.depth(),
		bias: driver.Pointer(p.biasAt()), epilogue: op.Epilogue,
	}
	v.plain = v.step < v.depth && !c.overlapping(p.direct)
	if !op.Abs && op.Pool == 1 {
		v.out = func(k *call) kernels.View { return k.write(op.Y, op.Batch, steps, p.out) }
		if !op.Lengths.IsZero() { // else every step counts, and results can go the quick way
			v.lengths, v.lengthAdd, v.lengthStride, v.lengthFrom = lengths, op.PadLeft+op.PadRight-p.taps, op.Stride, op.Out.From
		}
		return c.tile(v, cost)
	}
	all := c.temporary(4 * op.Batch * steps * p.out)
	v.out = func(k *call) kernels.View {
		return kernels.View{P: kernels.F32(k.to(all)), Row: int64(p.out), Batch: int64(steps) * int64(p.out)}
	}
	if err := c.tile(v, cost); err != nil {
		return err
	}
	k := c.call("conv1d_pool")
	args := kernels.Conv1D{
		X:       kernels.View{P: kernels.F32(k.from(all)), Row: int64(p.out)},
		Y:       k.write(op.Y, op.Batch, op.Out.Len(), p.out),
		Lengths: lengths(k),
		PadLeft: int64(op.PadLeft), PadRight: int64(op.PadRight), From: int64(op.Out.From),
		Rows: uint32(op.Batch * op.Out.Len()), ItemRows: uint32(op.Out.Len()), Columns: uint32(p.out), In: uint32(p.in), Kernel: uint32(p.taps),
		Stride: uint32(op.Stride), Pool: uint32(op.Pool), Abs: flag(op.Abs),
	}
	args.Vectors = flag(inQuads(args.Y))
	threads := int(args.Rows) * ceilDiv(p.out, 4)
	return run(k, args, grid{ceilDiv(threads, 256), 1, 1}, 0, pass.Cost{Bytes: 4 * float64(p.out) * float64(op.Batch) * float64(steps+op.Out.Len())})
}

// prepareWindows emits the launches that prepare the input of so many steps of each item.
func (c *compiler) prepareWindows(op pass.Conv1D, p *convParam, l convLayout, steps int) (prepared, error) {
	first := op.Out.From*op.Pool*op.Stride - op.PadLeft
	all := preparation{
		x:     func(k *call) kernels.View { return k.read(op.X, op.Batch, op.In, p.in) },
		items: op.Batch, inLines: op.In, inWidth: 1, width: 1, top: first,
		lines:    roundUp((steps-1)*op.Stride+p.taps, op.Stride), // whole strides, as tensor maps want it
		channels: p.in, reflect: op.Padding == pass.PadReflect, overlap: true,
		lengths: func(k *call) kernels.Items { return k.items(op.Lengths, op.Batch, op.In) },
	}
	if l.group == 1 && l.steps == 1 {
		return c.prepare(all)
	}
	out := prepared{rows: steps - 1 + l.groups, stride: l.width, shared: true, scales: c.temporary(4 * op.Batch)}
	peaks, parts, err := c.peaks(all)
	if err != nil {
		return out, err
	}
	bytes := 2 * op.Batch * out.rows * out.stride
	k := c.call("conv1d_groups")
	args := kernels.ConvGroups{
		X: all.x(k), Lengths: all.lengths(k), Scales: kernels.F32(k.to(out.scales)), Peaks: kernels.F32(k.from(peaks)),
		First: int64(first), Groups: uint32(out.rows), Width: uint32(l.width), Group: uint32(l.group), Steps: uint32(l.steps),
		Items: uint32(op.Batch), Columns: uint32(p.in), Parts: uint32(parts), Reflect: flag(all.reflect),
	}
	out.high = c.temporary(bytes)
	args.High = kernels.F16(k.to(out.high))
	if !c.fast {
		out.low = c.temporary(bytes)
		args.Low = kernels.F16(k.to(out.low))
	}
	blocks := ceilDiv(out.rows*out.stride/8, 1024)
	return out, run(k, args, grid{op.Batch * blocks, 1, 1}, 0, pass.Cost{Bytes: float64(bytes)})
}

// A directChoice is the tile of a convolution in FP32.
type directChoice struct {
	name          string
	rows, columns int
	why           string
}

// chooseDirect decides by the shape alone: tiles of many outputs use what they load most
// often, but where those are too few to keep a large GPU busy, smaller ones are faster,
// whose warps share the sum.
func chooseDirect(rows, columns int) directChoice {
	const enough = 64
	t := directChoice{name: "tile", rows: 64, columns: 64}
	tiles := ceilDiv(rows, t.rows) * ceilDiv(columns, t.columns)
	t.why = fmt.Sprintf("%d tiles in FP32", tiles)
	if tiles < enough {
		t = directChoice{"few", 8, 32, fmt.Sprintf("%d large tiles in FP32 are too few", tiles)}
	}
	return t
}

func (t directChoice) grid(rows, columns int) grid {
	return grid{ceilDiv(rows, t.rows) * ceilDiv(columns, t.columns), 1, 1}
}
