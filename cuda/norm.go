package cuda

import (
	"context"
	"math"
	"math/bits"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// normParam is a loaded [pass.NormWeights]: gains, and biases if there are any, each
// filled up with zeros to whole vectors.
type normParam struct {
	*memory
	biases driver.Pointer // 0: none
}

// loadNorm lays out the weights of a norm.
func (d *device) loadNorm(ctx context.Context, w pass.NormWeights) (backend.Memory, error) {
	stride := roundUp(len(w.Gain), 4)
	words := make([]uint32, stride, 2*stride)
	for i, v := range w.Gain {
		words[i] = math.Float32bits(v)
	}
	if w.Bias != nil {
		words = words[:2*stride]
		for i, v := range w.Bias {
			words[stride+i] = math.Float32bits(v)
		}
	}
	m, err := d.upload(ctx, "norm weights "+w.Name, bytesOf(words))
	if err != nil {
		return nil, err
	}
	p := &normParam{memory: m}
	if w.Bias != nil {
		p.biases = m.at + driver.Pointer(4*stride)
	}
	return p, nil
}

func (p *normParam) gain() kernels.F32 { return kernels.F32(p.at) }
func (p *normParam) bias() kernels.F32 { return kernels.F32(p.biases) }

// layernorm compiles a LayerNorm.
func (c *compiler) layernorm(op pass.LayerNorm, cost pass.Cost) error {
	if op.Rows == 0 || op.Batch == 0 {
		return nil
	}
	name, each := "norm_layer_384", byWarps
	switch {
	case op.Cols > 4096:
		name, each = "norm_layer_long", byBlock
	case op.Cols > 1280:
		name, each = "norm_layer_4096", byBlock
	case op.Cols > 768:
		name = "norm_layer_1280"
	case op.Cols > 384:
		name = "norm_layer_768"
	}
	y := pass.Arg{View: op.Y, Batch: op.Batch, Rows: op.Rows, Cols: op.Cols}
	var next future
	if op.Cols <= 4096 {
		if next = c.future(y); len(next.products) > 0 {
			name += "_halves"
		}
	}
	k := c.call(name)
	f := field{op.Batch, op.Rows, op.Cols}
	p := c.plan.Param(op.W).(*normParam)
	args := kernels.LayerNorm{
		X:    k.read(op.X, op.Batch, op.Rows, op.Cols),
		Gain: p.gain(), Bias: p.bias(),
		Count: k.count(op.Batch * op.Rows), Rows: k.count(op.Rows), Cols: k.count(op.Cols), Eps: op.Eps,
	}
	var note string
	args.Y, args.Halves, note = k.results(y, next, true, !op.Rotated.IsZero())
	k.because("rows of %d columns%s", op.Cols, note)
	args.Vectors = vectors(kernels.VectorX, args.X, f) | vectors(kernels.VectorY, args.Y, f)
	if !op.Rotated.IsZero() {
		t := c.plan.Param(op.Table).(*ropeParam)
		args.Rotated = k.write(op.Rotated, op.Batch, op.Rows, op.Cols)
		args.Table = kernels.F32(t.at)
		args.Pos = k.index(op.Pos, op.Batch, op.Rows, t.positions)
		args.Head, args.Half = k.count(op.Cols/op.Heads), uint32(t.rot/2)
		if args.Vectors&kernels.VectorY != 0 && args.Head%4 == 0 && args.Half%4 == 0 {
			args.Vectors |= vectors(kernels.VectorB, args.Rotated, f)
		}
	}
	return run(k, args, rowGrid(op.Batch*op.Rows, each), 0, cost)
}

// l2norm compiles an L2Norm.
func (c *compiler) l2norm(op pass.L2Norm, cost pass.Cost) error {
	if op.Rows == 0 || op.Batch == 0 {
		return nil
	}
	name, each := "norm_length_512", byWarps
	switch {
	case op.Cols > 4096:
		name, each = "norm_length_long", byBlock
	case op.Cols > 512:
		name, each = "norm_length_4096", byBlock
	}
	k := c.call(name).because("rows of %d columns", op.Cols)
	f := field{op.Batch, op.Rows, op.Cols}
	args := kernels.L2Norm{
		X: k.read(op.X, op.Batch, op.Rows, op.Cols), Y: k.write(op.Y, op.Batch, op.Rows, op.Cols),
		Count: k.count(op.Batch * op.Rows), Rows: k.count(op.Rows), Cols: k.count(op.Cols), Eps: op.Eps,
	}
	args.Vectors = vectors(kernels.VectorX, args.X, f) | vectors(kernels.VectorY, args.Y, f)
	return run(k, args, rowGrid(op.Batch*op.Rows, each), 0, cost)
}

// Where the norms over time cut it: about as many elements a block, but no more parts
// than the blocks of the second kernel merge in no time. Where chunks are depends on
// shapes alone.
const (
	groupElements = 4096
	groupChunks   = 1024
	poolThreads   = 256
	poolRowsEach  = 16
	poolChunks    = 256
	momentsBytes  = 16
)

// groupChunk returns how many rows of a GroupNorm a block takes.
func groupChunk(rows, cols int) int {
	return max(groupElements/4/ceilDiv(cols, 4), ceilDiv(rows, groupChunks), 1)
}

// poolChunk returns how many channels of a PoolNorm a block takes side by side, and how
// many pooled rows.
func poolChunk(pooled, cols int) (across, rows int) {
	across = min(1<<bits.Len(uint(cols-1)), 32)
	group := poolThreads / across * poolRowsEach
	return across, roundUp(max(ceilDiv(pooled, poolChunks), 1), group)
}

// groupnorm compiles a GroupNorm: the moments of chunks of rows, then the result, by the
// same chunks.
func (c *compiler) groupnorm(op pass.GroupNorm, cost pass.Cost) error {
	if op.Rows == 0 || op.Batch == 0 {
		return nil
	}
	f := field{op.Batch, op.Rows, op.Cols}
	chunk := groupChunk(op.Rows, op.Cols)
	chunks := ceilDiv(op.Rows, chunk)
	p := c.plan.Param(op.W).(*normParam)
	parts := c.temporary(momentsBytes * op.Batch * chunks)
	for _, name := range []string{"norm_group_moments", "norm_group_apply"} {
		k := c.call(name).because("%d chunks of %d rows", chunks, chunk)
		args := kernels.GroupNorm{
			X:    k.read(op.X, op.Batch, op.Rows, op.Cols),
			Gain: p.gain(), Bias: p.bias(),
			Lengths: k.items(op.Lengths, op.Batch, op.Rows),
			Rows:    k.count(op.Rows), Cols: k.count(op.Cols), Chunk: k.count(chunk), Chunks: k.count(chunks), Eps: op.Eps,
		}
		args.Vectors = vectors(kernels.VectorX, args.X, f)
		if name == "norm_group_apply" {
			args.Parts = kernels.F32(k.from(parts))
			args.Y = k.write(op.Y, op.Batch, op.Rows, op.Cols)
			args.Vectors |= vectors(kernels.VectorY, args.Y, f)
		} else {
			args.Parts = kernels.F32(k.to(parts))
		}
		if err := run(k, args, grid{op.Batch * chunks, 1, 1}, 0, part(cost, 1, 2)); err != nil {
			return err
		}
	}
	return nil
}

// poolnorm compiles a PoolNorm: the moments of chunks of time for each channel, then the
// result, by the same chunks.
func (c *compiler) poolnorm(op pass.PoolNorm, cost pass.Cost) error {
	pooled := op.Rows / op.Pool
	if pooled == 0 || op.Batch == 0 {
		return nil
	}
	across, chunk := poolChunk(pooled, op.Cols)
	chunks, columns := ceilDiv(pooled, chunk), ceilDiv(op.Cols, across)
	window := map[int]string{1: "_1", 3: "_3"}[op.Pool]
	if window == "" {
		window = "_any"
	}
	p := c.plan.Param(op.W).(*normParam)
	parts := c.temporary(momentsBytes * op.Batch * chunks * op.Cols)
	for _, name := range []string{"norm_pool_moments", "norm_pool_apply"} {
		k := c.call(name+window).because("%d chunks of %d rows, %d channels a block", chunks, chunk, across)
		args := kernels.PoolNorm{
			X:    k.read(op.X, op.Batch, op.Rows, op.Cols),
			Gain: p.gain(), Bias: p.bias(),
			Lengths: k.items(op.Lengths, op.Batch, op.Rows),
			Rows:    k.count(op.Rows), Pooled: k.count(pooled), Pool: k.count(op.Pool),
			Cols: k.count(op.Cols), Across: uint32(across), Blocks: k.count(columns), Chunk: k.count(chunk), Chunks: k.count(chunks),
			Eps: op.Eps, Alpha: 1,
		}
		if op.Abs {
			args.Abs = 1
		}
		if op.Epilogue.Kind() == pass.KindLeaky {
			args.Alpha = op.Epilogue.Alpha()
		}
		if name == "norm_pool_apply" {
			args.Parts = kernels.F32(k.from(parts))
			args.Y = k.write(op.Y, op.Batch, pooled, op.Cols)
		} else {
			args.Parts = kernels.F32(k.to(parts))
		}
		if err := run(k, args, grid{op.Batch * chunks * columns, 1, 1}, 0, part(cost, 1, 2)); err != nil {
			return err
		}
	}
	return nil
}
