package cuda

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// A stretchPlan is how a Conv1D is computed from the samples as they are; see
// kernels.ConvStretch.
type stretchPlan struct {
	kernels.ConvStretchShape
	span          int // elements from a window to the next
	depth, padded int
	pieces, rows  int // of a tile; outputs of a piece
	first, tiles  int // of an item
	grain, spaced int
	piece, copy   int // elements
	weights       int // elements from a row of weights to the next in shared memory
	shared        int // bytes
}

// String returns the name of the plan for the tune file.
func (s stretchPlan) String() string { return fmt.Sprintf("stretches, %d channels", s.Columns) }

// planStretches returns the plans of a Conv1D, that of the fewest channels that are none
// first. What a block needs must fit its shared memory. Of exact weights it wants both parts,
// which those that are stored as halves do not have.
func (c *compiler) planStretches(op pass.Conv1D, p *convParam) (plans []stretchPlan) {
	const most = 1 << 16 // elements: far more than fit, and few enough to count with
	heavy := !slices.Contains([]pass.EpilogueKind{pass.KindNone, pass.KindReLU, pass.KindLeaky}, op.Epilogue.Kind())
	if op.Epilogue.InPlace() || heavy && op.Pool > 1 { // what is heavy is applied to what has been stored
		return nil
	}
	if op.Pool != 1 && op.Pool != 3 || op.Stride*p.in > most || p.depth() > most || !c.tilesConv1D(op) || !c.fast && p.typ != pass.F32 {
		return nil
	}
	products := 3
	if c.fast {
		products = 1
	}
	for _, k := range kernels.ConvStretchShapes {
		if k.Products != products || !c.has(k.Name()) {
			continue
		}
		if s := planStretch(op, p, k, c.d.attributes.sms); s.shared <= c.d.attributes.sharedMemory {
			plans = append(plans, s)
		}
	}
	slices.SortStableFunc(plans, func(a, b stretchPlan) int {
		return cmp.Or(roundUp(p.out, a.Columns)-roundUp(p.out, b.Columns), b.Columns-a.Columns)
	})
	return plans
}

// planStretch plans a Conv1D for a kernel. How many items a tile has makes no difference to
// the results: as few as keep all multiprocessors busy.
func planStretch(op pass.Conv1D, p *convParam, k kernels.ConvStretchShape, sms int) stretchPlan {
	s := stretchPlan{ConvStretchShape: k, span: op.Stride * p.in, depth: p.depth(), padded: roundUp(p.depth(), 16), pieces: 1}
	for s.grain = 8; s.span%s.grain != 0; s.grain /= 2 {
	}
	s.spaced = int(flag(s.span%16 == 0))
	s.weights = s.padded + 8 // an odd number of eights: rows lie in different banks

	outs, all := kernels.ConvStretchSteps/op.Pool, op.Steps(op.In)
	if all > outs { // tiles begin at multiples of their size, whatever is wanted
		s.first, s.tiles = op.Out.From/outs, (op.Out.To-1)/outs-op.Out.From/outs+1
		s.lay(outs, op.Pool)
	} else {
		const half = 110 << 10 // of the shared memory of large devices, which two blocks share
		s.tiles, s.pieces = 1, min(outs/all, max(ceilDiv(op.Batch*ceilDiv(p.out, k.Columns), sms), 1))
		for s.lay(all, op.Pool); s.pieces > 1 && s.shared > half; s.lay(all, op.Pool) {
			s.pieces--
		}
	}
	return s
}

// lay lays out pieces of so many outputs in shared memory.
func (s *stretchPlan) lay(rows, pool int) {
	s.rows = rows
	elements := roundUp((rows*pool-1)*s.span+s.padded, 8) + 8
	s.piece = elements + s.spaced*8*ceilDiv(elements, s.span)
	s.copy = s.pieces * s.piece
	if s.grain < 8 { // two eights beyond whole lines of banks: copies are read side by side
		s.copy = roundUp(s.copy-16, 64) + 16
	}
	parts := 1
	if s.Products == 3 {
		parts = 2
	}
	s.shared = 2*parts*(s.Columns*s.weights+8/s.grain*s.copy) + 4*(2*s.Columns+s.pieces)
}

// stretchWays puts plans among other ways. They are one launch, with neither an operand in
// memory nor the steps before the pooling, so that they pay earlier than tiles; but of many
// channels those waste less, and of long items of which there are few tiles, more of a large
// GPU works on theirs.
func stretchWays(others []string, plans []stretchPlan, op pass.Conv1D, p *convParam) []string {
	const few, worth, enough = 8, 2 << 20, 64
	var names []string
	for _, s := range plans {
		names = append(names, s.String())
	}
	steps := op.Steps(op.In) * op.Pool
	if len(plans) > 0 && (p.in < few || op.Pool > 1) && float64(steps)*float64(p.depth())*float64(p.out) >= worth {
		// Of a few steps there are items enough, or it is no matter. What is pooled saves the
		// way of all steps through memory.
		tiles, bands := ceilDiv(steps, kernels.ConvStretchSteps), ceilDiv(p.out, plans[0].Columns)
		if op.Pool > 1 || tiles == 1 || tiles*bands >= enough {
			return slices.Concat(names, others)
		}
	}
	return slices.Concat(others, names)
}

// conv1dStretch emits a Conv1D as one launch on tensor cores.
func (c *compiler) conv1dStretch(op pass.Conv1D, p *convParam, s stretchPlan, why string, cost pass.Cost) error {
	// The weights of a window follow each other: one group of all its steps.
	w, err := p.rows(c.ctx, convLayout{p.taps, p.taps, 1, roundUp(s.depth, 8)}, !c.fast)
	if err != nil {
		return err
	}
	k := c.call(s.Name())
	args := kernels.ConvStretch{
		X:    k.read(op.X, op.Batch, op.In, p.in),
		Y:    k.write(op.Y, op.Batch, op.Out.Len(), p.out),
		High: kernels.F16(w.high), Low: kernels.F16(w.low), Scales: kernels.F32(w.scales), Bias: p.biasAt(),
		Lengths:    k.items(op.Lengths, op.Batch, op.In),
		WeightsRow: int64(w.stride), PadLeft: int64(op.PadLeft), PadRight: int64(op.PadRight),
		Total: uint32(op.Steps(op.In)), From: uint32(op.Out.From), To: uint32(op.Out.To),
		Items: uint32(op.Batch), Columns: uint32(p.out), In: uint32(p.in), Kernel: uint32(p.taps),
		Stride: uint32(op.Stride), Pool: uint32(op.Pool), Depth: uint32(s.depth), Padded: uint32(s.padded),
		Pieces: uint32(s.pieces), PieceRows: uint32(s.rows), FirstTile: uint32(s.first), Tiles: uint32(s.tiles),
		PieceLength: uint32(s.piece), CopyPitch: uint32(s.copy), WeightsPitch: uint32(s.weights),
		Grain: uint32(s.grain), Spaced: uint32(s.spaced),
		Reflect: flag(op.Padding == pass.PadReflect && max(op.PadLeft, op.PadRight) > 0), Abs: flag(op.Abs),
		Epilogue: epilogue(op.Epilogue),
	}
	args.Linear = flag(args.X.Row == int64(p.in))
	args.Pairs = flag(p.out%2 == 0 && inPairs(args.Y))
	bands, tiles := ceilDiv(p.out, s.Columns), ceilDiv(op.Batch*s.tiles, s.pieces)
	// Blocks stay, since each takes the weights of its channels.
	resident := s.Resident()
	if 2*(s.shared+2048) > c.d.attributes.sharedMemory {
		resident = 1
	}
	blocks := bands * min(tiles, max(resident*c.d.attributes.sms/bands, 1))
	return run(k.because("%d tiles, %d pieces of %d outputs in each; %s", tiles, s.pieces, s.rows, why), args, grid{blocks, 1, 1}, s.shared, cost)
}
