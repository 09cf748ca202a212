package cuda

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

func (d *device) loadConv2D(ctx context.Context, w pass.Conv2DWeights, s pass.Conv2DShape) (backend.Memory, error) {
	return d.loadConv(ctx, w.Name, w.Weight, s.Out, s.In, s.Size*s.Size, w.Bias)
}

// conv2d compiles a Conv2D.
func (c *compiler) conv2d(op pass.Conv2D, cost pass.Cost) error {
	height, width := op.Size()
	pixels := op.Out.Len() * width
	if op.Batch == 0 || pixels == 0 {
		return nil
	}
	p := c.plan.Param(op.W).(*convParam)
	const most = 1 << 30
	if rows := op.Batch * pixels; rows > most || op.Height > most || op.Width > most || p.depth() > most {
		return fmt.Errorf("%d output pixels of %d × %d, %d products: want at most 2^30 of each: %w", rows, op.Height, op.Width, p.depth(), pass.ErrUnsupported)
	}
	if p.in == 1 && p.taps == 9 {
		return c.conv2dDirect(op, p, width, "all stores", cost)
	}
	if err := p.measure(c.ctx); err != nil {
		return err
	}
	size, phases := op.W.Shape().(pass.Conv2DShape).Size, op.Stride*op.Stride
	phase := func(tap int) int { return tap/size%op.Stride*op.Stride + tap%size%op.Stride }
	if c.d.ranging(p.apart(phases, phase), c.fast) {
		return c.conv2dDirect(op, p, width, rangeNote, cost)
	}
	l := stepLayout(p.in, p.taps)
	rule, ways := convWays(height*width, l.depth(), p.out)
	images := imageWays(c.imageShapes(op, p), imageTiles(op), p.out)
	// One launch, with no operand in memory: that pays much earlier. Channels are
	// multiplied 32 at a time.
	if p.in < 16 || float64(height*width)*float64(l.depth())*float64(p.out) < 2<<20 {
		ways = slices.Concat([]string{"direct", "tiles"}, imageNames(images))
	} else {
		ways = slices.Concat(imageNames(images), ways)
	}
	way, why := c.choose(fmt.Sprintf("conv2d %s %d×%d×%dto%d k%ds%d %v", c.mathName(), height, width, p.in, p.out, p.taps, op.Stride, p.typ), rule, ways...)
	switch way {
	case "direct":
		return c.conv2dDirect(op, p, width, why, cost)
	case "tiles":
		return c.conv2dTiles(op, p, l, width, cost)
	}
	return c.conv2dImage(op, p, l, images[slices.Index(imageNames(images), way)], why, cost)
}

// imageShapes returns the kernels that compute a Conv2D from the image as it is. Of exact
// weights they want both parts, which those that are stored as halves do not have.
func (c *compiler) imageShapes(op pass.Conv2D, p *convParam) []kernels.ConvImageShape {
	products := 3
	if c.fast {
		products = 1
	}
	size := op.W.Shape().(pass.Conv2DShape).Size
	return slices.DeleteFunc(kernels.ConvImageShapes(), func(s kernels.ConvImageShape) bool {
		return s.Size != size || s.Stride != op.Stride || s.Products != products || !c.fast && p.typ != pass.F32 || !c.has(s.Name())
	})
}

// imageWays sorts kernels by the rule's choice: those of the most channels in a block that
// leave enough blocks come first. All give the same bits.
func imageWays(shapes []kernels.ConvImageShape, tiles, channels int) []kernels.ConvImageShape {
	rank := func(s kernels.ConvImageShape) int {
		enough := 120 // blocks that keep a large GPU busy
		if s.Columns > 64 {
			enough = 500 // large blocks waste more where they do not come out even
		}
		if s.Columns > 32 && (s.Columns >= 2*channels || tiles*ceilDiv(channels, s.Columns) < enough) {
			return s.Columns
		}
		return -s.Columns
	}
	// Where there are few blocks, each does better with more warps.
	few := func(s kernels.ConvImageShape) int {
		if tiles*ceilDiv(channels, s.Columns) < 264 {
			return -s.Warps
		}
		return s.Warps
	}
	slices.SortFunc(shapes, func(a, b kernels.ConvImageShape) int { return cmp.Or(rank(a)-rank(b), few(a)-few(b)) })
	return shapes
}

// imageNames names ways.
func imageNames(shapes []kernels.ConvImageShape) []string {
	var names []string
	for _, s := range shapes {
		name := fmt.Sprintf("image of %d channels", s.Columns)
		if s.Warps > 4 {
			name += fmt.Sprintf(", %d warps", s.Warps)
		}
		names = append(names, name)
	}
	return names
}

// imageTiles returns how many tiles the wanted output lines have, of all items.
func imageTiles(op pass.Conv2D) int {
	_, width := op.Size()
	return op.Batch * imageDown(op) * ceilDiv(width, kernels.ConvImageWidth)
}

// imageDown returns how many tiles of an item lie below each other.
func imageDown(op pass.Conv2D) int {
	return (op.Out.To-1)/kernels.ConvImageLines - op.Out.From/kernels.ConvImageLines + 1
}

// conv2dImage emits a Conv2D as one launch on tensor cores.
func (c *compiler) conv2dImage(op pass.Conv2D, p *convParam, l convLayout, shape kernels.ConvImageShape, why string, cost pass.Cost) error {
	w, err := p.rows(c.ctx, l, !c.fast)
	if err != nil {
		return err
	}
	_, width := op.Size()
	pixels := op.Out.Len() * width
	k := c.call(shape.Name())
	args := kernels.ConvImage{
		X:        k.read(op.X, op.Batch, op.Height*op.Width, p.in),
		Residual: k.read(op.Residual, op.Batch, pixels, p.out),
		Y:        k.write(op.Y, op.Batch, pixels, p.out),
		High:     kernels.F16(w.high), Low: kernels.F16(w.low), Scales: kernels.F32(w.scales), Bias: p.biasAt(), WeightsRow: int64(w.stride),
		Height: uint32(op.Height), Width: uint32(op.Width), OutWidth: uint32(width), From: uint32(op.Out.From), To: uint32(op.Out.To), Down: uint32(imageDown(op)),
		Columns: uint32(p.out), In: uint32(p.in), Padded: uint32(l.width), ReLU: flag(op.ReLU),
	}
	args.Vectors = flag(inQuads(args.X)) | flag(inPairs(args.Y, args.Residual))<<1
	blocks := imageTiles(op) * ceilDiv(p.out, shape.Columns)
	return run(k.because("%d blocks; %s", blocks, why), args, grid{blocks, 1, 1}, shape.Shared(), cost)
}

// conv2dTiles emits a Conv2D as a product on tensor cores, whose rows are windows that
// overlap in the prepared image: of three pixels in each of three lines, or one pixel.
func (c *compiler) conv2dTiles(op pass.Conv2D, p *convParam, l convLayout, width int, cost pass.Cost) error {
	w, err := p.rows(c.ctx, l, !c.fast)
	if err != nil {
		return err
	}
	size := op.W.Shape().(pass.Conv2DShape).Size
	border, lines := size/2, op.Out.Len()
	height, _ := op.Size()
	a, err := c.prepare(preparation{
		x:     func(k *call) kernels.View { return k.read(op.X, op.Batch, op.Height*op.Width, p.in) },
		items: op.Batch, inLines: op.Height, inWidth: op.Width,
		lines: (lines-1)*op.Stride + size, width: op.Width + 2*border, top: op.Out.From*op.Stride - border, left: -border,
		channels: p.in, overlap: true,
	})
	if err != nil {
		return err
	}
	line := (op.Width + 2*border) * l.width
	w.segment = size * l.width
	v := product{
		a: a, items: op.Batch, lines: lines, width: width, whole: height * width, line: op.Stride * line, step: op.Stride * l.width, segment: line,
		w: w, columns: pass.Span{To: p.out}, segments: size, depth: size * l.width,
		bias: driver.Pointer(p.biasAt()),
		out:  func(k *call) kernels.View { return k.write(op.Y, op.Batch, lines*width, p.out) },
	}
	if size == 1 && op.Stride == 1 { // pixels follow each other beyond their lines
		v.lines, v.width, v.line = 1, lines*width, 0
	}
	if !op.Residual.IsZero() {
		v.residual = func(k *call) kernels.View { return k.read(op.Residual, op.Batch, lines*width, p.out) }
	}
	if op.ReLU {
		v.epilogue = pass.ReLU
	}
	return c.tile(v, cost)
}

// conv2dDirect emits a Conv2D as one launch in FP32.
func (c *compiler) conv2dDirect(op pass.Conv2D, p *convParam, width int, why string, cost pass.Cost) error {
	size := op.W.Shape().(pass.Conv2DShape).Size
	pixels := op.Out.Len() * width
	rows := op.Batch * pixels
	t := chooseDirect(rows, p.out)
	blocks := t.grid(rows, p.out)
	if units := op.Batch * op.Out.Len() * ceilDiv(width, kernels.ConvLine) * ceilDiv(p.out, 4); p.in == 1 && size == 3 && units < 1<<31 {
		t.name, t.why, blocks = "single", "one channel", grid{ceilDiv(units, 256), 1, 1}
	}
	k := c.call("conv2d_" + t.name)
	args := kernels.Conv2D{
		X:        k.read(op.X, op.Batch, op.Height*op.Width, p.in),
		Residual: k.read(op.Residual, op.Batch, pixels, p.out),
		Y:        k.write(op.Y, op.Batch, pixels, p.out),
		Weights:  kernels.F32(p.direct.at), Bias: p.biasAt(), WeightsRow: int64(p.stride),
		Height: uint32(op.Height), Width: uint32(op.Width), OutWidth: uint32(width), From: uint32(op.Out.From),
		Rows: uint32(rows), ItemRows: uint32(pixels), Columns: uint32(p.out),
		In: uint32(p.in), Size: uint32(size), Stride: uint32(op.Stride), ReLU: flag(op.ReLU),
	}
	args.Vectors = flag(inQuads(args.Y))
	return run(k.because("%s; %s", t.why, why), args, blocks, 0, cost)
}
