package cuda

import (
	"context"
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// A channelParam is weights with a value for each channel: rows of channels, each filled up
// with zeros to a multiple of four.
type channelParam struct {
	values *memory
	stride int
}

// Free implements backend.Memory.
func (p *channelParam) Free() { p.values.Free() }

// uploadChannels makes a channelParam of rows, of which those that are nil are zeros.
func (d *device) uploadChannels(ctx context.Context, label string, channels int, rows [][]float32) (backend.Memory, error) {
	p := &channelParam{stride: roundUp(channels, 4)}
	all := make([]float32, len(rows)*p.stride)
	for i, row := range rows {
		copy(all[i*p.stride:], row)
	}
	var err error
	if p.values, err = d.upload(ctx, label, float32Bytes(all)); err != nil {
		return nil, err
	}
	return p, nil
}

// turned returns a tensor [channels][taps] tap by tap.
func turned(t pass.Tensor, channels, taps int) ([][]float32, error) {
	all, err := t.Float32s() // allocates nothing for a shape without data
	if err != nil {
		return nil, err
	}
	rows := make([][]float32, taps)
	for tap := range rows {
		rows[tap] = make([]float32, channels)
		for c := range channels {
			rows[tap][c] = all[c*taps+tap]
		}
	}
	return rows, nil
}

// loadConvGLU lays out taps, bias, gain and shift.
func (d *device) loadConvGLU(ctx context.Context, w pass.ConvGLUWeights, s pass.ConvGLUShape) (backend.Memory, error) {
	rows, err := turned(w.Weight, s.Channels, s.Kernel)
	if err != nil {
		return nil, err
	}
	return d.uploadChannels(ctx, w.Name, s.Channels, append(rows, w.Bias, w.Gain, w.Shift))
}

// loadDepthwise lays out nine taps and a bias, then those of the convolution before.
func (d *device) loadDepthwise(ctx context.Context, w pass.DepthwiseWeights, s pass.DepthwiseShape) (backend.Memory, error) {
	rows, err := turned(w.Weight, s.Channels, 9)
	if err != nil {
		return nil, err
	}
	rows = append(rows, w.Bias)
	if s.First {
		first, err := turned(w.First, s.Channels, 9)
		if err != nil {
			return nil, err
		}
		rows = append(append(rows, first...), w.FirstBias)
	}
	return d.uploadChannels(ctx, w.Name, s.Channels, rows)
}

// A gluChoice is the tile of a ConvGLU.
type gluChoice struct {
	name           string
	rows, channels int // of a block
	why            string
}

// gluWays lists the tiles that can compute a ConvGLU, the rule's first. Blocks that
// normalise hold whole rows; many rows in a block save what neighbours would gate twice,
// few rows keep more blocks busy. The bits do not depend on the number of rows: the order of
// a sum over channels follows from threads and channels of a block.
func gluWays(s pass.ConvGLUShape, rows int) []gluChoice {
	const many = 400 // rows that give blocks of twelve to a quarter of a large GPU
	switch {
	case s.Normalised && s.Channels > 1024:
		return []gluChoice{{"wide", 1, s.Channels, fmt.Sprintf("%d channels are too many for registers", s.Channels)}}
	case s.Channels <= 256 || !s.Normalised && s.Channels <= 512:
		return []gluChoice{{"128", 4, 256, fmt.Sprintf("%d channels", s.Channels)}}
	}
	why := fmt.Sprintf("%d rows", rows)
	general := gluChoice{"512", 4, 1024, why}
	if s.Kernel != 9 && s.Kernel != 5 {
		return []gluChoice{general}
	}
	many12, few := gluChoice{fmt.Sprintf("512_k%d", s.Kernel), 12, 1024, why}, gluChoice{fmt.Sprintf("512_k%d_few", s.Kernel), 4, 1024, why}
	if rows < many {
		return []gluChoice{few, many12, general}
	}
	return []gluChoice{many12, few, general}
}

// convGLU compiles a ConvGLU.
func (c *compiler) convGLU(op pass.ConvGLU, cost pass.Cost) error {
	p := c.plan.Param(op.W).(*channelParam)
	s := op.W.Shape().(pass.ConvGLUShape)
	rows := op.Out.Len()
	if op.Batch == 0 || rows == 0 {
		return nil
	}
	if most := 1 << 30; op.Rows > most || s.Kernel > most {
		return fmt.Errorf("%d rows, kernel %d: want at most 2^30 of each: %w", op.Rows, s.Kernel, pass.ErrUnsupported)
	}
	ways := gluWays(s, op.Batch*rows)
	names := make([]string, len(ways))
	for i, w := range ways {
		names[i] = w.name
	}
	way, why := c.choose(fmt.Sprintf("convglu %d×%d k%d", op.Batch*rows, s.Channels, s.Kernel), ways[0].why, names...)
	t := ways[slices.Index(names, way)]
	rowTiles, columnTiles := ceilDiv(rows, t.rows), ceilDiv(s.Channels, t.channels)
	y := pass.Arg{View: op.Y, Batch: op.Batch, Rows: rows, Cols: s.Channels}
	kernel := "conformer_convglu_" + t.name
	var next future
	if columnTiles == 1 && t.name != "wide" {
		if next = c.future(y); len(next.products) > 0 {
			kernel += "_halves"
		}
	}
	k := c.call(kernel)
	args := kernels.ConvGLU{
		X:       k.read(op.X, op.Batch, op.Rows, 2*s.Channels),
		Weights: kernels.F32(p.values.at), WeightsRow: uint32(p.stride),
		Lengths: k.items(op.Lengths, op.Batch, op.Rows),
		Rows:    uint32(rows), From: uint32(op.Out.From), RowTiles: uint32(rowTiles), ColumnTiles: uint32(columnTiles),
		Channels: uint32(s.Channels), Kernel: uint32(s.Kernel), Eps: s.Eps, Normalised: flag(s.Normalised),
	}
	var note string
	args.Y, args.Halves, note = k.results(y, next, false, false)
	args.Vectors = flag(s.Channels%2 == 0 && inPairs(args.X, args.Y))
	return run(k.because("%s%s", why, note), args, grid{op.Batch * rowTiles * columnTiles, 1, 1}, 0, cost)
}

// depthwiseWalk is how many output columns a thread takes at most.
const depthwiseWalk = 8

// depthwise compiles a DepthwiseConv2D.
func (c *compiler) depthwise(op pass.DepthwiseConv2D, cost pass.Cost) error {
	p := c.plan.Param(op.W).(*channelParam)
	s := op.W.Shape().(pass.DepthwiseShape)
	_, width := op.Size()
	rows := op.Out.Len()
	if op.Batch == 0 || rows == 0 || width == 0 {
		return nil
	}
	name, in, group, shared := "conformer_depthwise", s.Channels, 4, 0
	if s.First {
		in, group = 1, 2
		strip := 7 * 4 * (4*width + 8) // bytes of the input rows of an output row
		ways := []string{"conformer_depthwise_strip", "conformer_depthwise_first"}
		if strip > 32<<10 {
			ways = ways[1:]
		}
		name, _ = c.choose(fmt.Sprintf("depthwise first %d×%d×%d", op.Time, op.Frequency, s.Channels), fmt.Sprintf("%d bytes of input rows", strip), ways...)
		if name == ways[0] && len(ways) > 1 {
			shared = strip
		}
	}
	k := c.call(name)
	args := kernels.Depthwise{
		X: k.read(op.X, op.Batch, op.Held.Len(), op.Frequency*in), Y: k.write(op.Y, op.Batch, rows, width*s.Channels),
		Weights: kernels.F32(p.values.at), WeightsRow: uint32(p.stride),
		Lengths: k.items(op.Lengths, op.Batch, op.Time),
		Groups:  uint32(ceilDiv(s.Channels, group)), Walks: uint32(ceilDiv(width, depthwiseWalk)),
		Rows: uint32(rows), From: uint32(op.Out.From), Held: uint32(op.Held.From),
		Frequency: uint32(op.Frequency), Width: uint32(width), Channels: uint32(s.Channels),
	}
	args.Units = int64(op.Batch) * int64(rows) * int64(args.Walks) * int64(args.Groups)
	if s.First {
		args.Vectors = flag(s.Channels%2 == 0 && inPairs(args.Y))
	} else {
		args.Vectors = flag(s.Channels%4 == 0 && inQuads(args.X, args.Y))
	}
	blocks := ceilDiv(int(args.Units), 128)
	if shared > 0 {
		blocks = op.Batch * rows * ceilDiv(int(args.Walks)*int(args.Groups), 128)
	}
	return run(k, args, grid{blocks, 1, 1}, shared, cost)
}

// inPairs reports whether the rows of views are aligned to two elements.
func inPairs(views ...kernels.View) bool {
	for _, v := range views {
		if v.P%8 != 0 || v.Row%2 != 0 || v.Batch%2 != 0 {
			return false
		}
	}
	return true
}
