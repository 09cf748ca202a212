package cuda

import (
	"math"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// fill compiles a Fill.
func (c *compiler) fill(op pass.Fill, cost pass.Cost) error {
	f := field{op.Batch, op.Rows, op.Cols}.flat(op.To)
	if f.empty() {
		return nil
	}
	k := c.call("move_fill")
	args := kernels.Fill{
		Y:     k.writeWords(op.To, op.Batch, op.Rows, op.Cols),
		Value: op.Word | math.Float32bits(op.Value), // one of them is zero
	}
	var g grid
	args.Units, args.Cols, args.Quads, args.Rows, g = k.units(f)
	args.Vectors = wordVectors(kernels.VectorY, args.Y, f)
	return run(k, args, g, 0, cost)
}

// copy compiles a Copy. Constant rows are part of the views.
func (c *compiler) copy(op pass.Copy, cost pass.Cost) error {
	f := field{op.Batch, op.Rows, op.Cols}
	if f.empty() {
		return nil
	}
	k := c.call("move_copy")
	x, fromRow, fromRows := chosen(op.From, op.FromRow, op.FromRows, op.Rows)
	y, toRow, toRows := chosen(op.To, op.ToRow, op.ToRows, op.Rows)
	args := kernels.Copy{
		X: k.readWords(x, op.Batch, fromRows, op.Cols), Y: k.writeWords(y, op.Batch, toRows, op.Cols),
		FromRow: k.index(fromRow, op.Batch, op.Rows, fromRows), ToRow: k.index(toRow, op.Batch, op.Rows, toRows),
	}
	choices := field{op.Batch, max(fromRows, toRows), op.Cols}
	if args.FromRow.P == 0 && args.ToRow.P == 0 {
		f = f.flat(x, y)
		choices = f
	}
	var g grid
	args.Units, args.Cols, args.Quads, args.Rows, g = k.units(f)
	args.Vectors = wordVectors(kernels.VectorX, args.X, choices) | wordVectors(kernels.VectorY, args.Y, choices)
	return run(k, args, g, 0, cost)
}

// chosen resolves a constant row of one side of a copy: the view then begins there, and
// has no more rows than are moved.
func chosen(v pass.View, x pass.Index, rows, moved int) (pass.View, pass.Index, int) {
	if n, ok := x.Const(); ok {
		return v.At(n * v.RowStride), pass.Index{}, moved
	}
	return v, x, rows
}

// narrow is a side of a transposed tile that would be mostly empty.
const narrow = 8

// permute compiles a Permute. Where the last axis stays last, or is short, elements are
// gathered; else tiles of it and of the last one of X are transposed.
func (c *compiler) permute(op pass.Permute, cost pass.Cost) error {
	d, e := op.Dims, op.Out()
	f := field{e[0], e[1] * e[2], e[3]}
	if f.empty() {
		return nil
	}
	given := [4]int{op.X.BatchStride, d[2] * op.X.RowStride, op.X.RowStride, 1}
	var from [4]int64 // strides of X, in the order of Y
	for i, axis := range op.Order {
		from[i] = int64(given[axis])
	}
	if op.Order[3] != 3 && e[3] >= narrow && d[3] >= narrow {
		return c.transpose(op, from, cost)
	}
	k := c.call("move_gather")
	args := kernels.Permute{
		X: k.readWords(op.X, d[0], d[1]*d[2], d[3]), Y: k.writeWords(op.Y, f.batch, f.rows, f.cols),
		From: from, Inner: k.count(e[2]),
	}
	var g grid
	args.Units, args.Cols, args.Quads, args.Rows, g = k.units(f)
	args.Vectors = wordVectors(kernels.VectorY, args.Y, f)
	if op.Order[3] == 3 {
		args.Vectors |= wordVectors(kernels.VectorX, args.X, field{d[0], d[1] * d[2], d[3]})
	}
	return run(k, args, g, 0, cost)
}

// transpose compiles a Permute whose last axis was another one.
func (c *compiler) transpose(op pass.Permute, from [4]int64, cost pass.Cost) error {
	d, e := op.Dims, op.Out()
	to := [4]int64{int64(op.Y.BatchStride), int64(e[2] * op.Y.RowStride), int64(op.Y.RowStride), 1}
	outer, inner, across := -1, 0, 0 // across is the last axis of X; the others are those left
	for i, axis := range op.Order[:3] {
		switch {
		case axis == 3:
			across = i
		case outer < 0:
			outer = i
		default:
			inner = i
		}
	}
	k := c.call("move_transpose")
	alongTiles, acrossTiles := ceilDiv(e[3], 32), ceilDiv(e[across], 32)
	return run(k, kernels.Transpose{
		X: k.readWords(op.X, d[0], d[1]*d[2], d[3]), Y: k.writeWords(op.Y, e[0], e[1]*e[2], e[3]),
		XOuter: from[outer], XInner: from[inner], XAlong: from[3],
		YOuter: to[outer], YInner: to[inner], YAcross: to[across],
		Along: k.count(e[3]), Across: k.count(e[across]), TilesAlong: uint32(alongTiles), TilesAcross: uint32(acrossTiles),
		Inner: k.count(e[inner]),
	}, grid{e[outer] * e[inner] * alongTiles * acrossTiles, 1, 1}, 0, cost)
}

// advance compiles an Advance.
func (c *compiler) advance(op pass.Advance, cost pass.Cost) error {
	k := c.call("move_advance")
	args := kernels.Advance{
		Index:  k.writeWords(op.Index, 1, op.Batch, 1),
		Status: k.status(),
		Batch:  k.count(op.Batch), By: k.count(op.By), Plus: k.count(op.Plus),
		Stops: uint32(len(op.Stop)),
	}
	copy(args.Stop[:], op.Stop)
	if !op.Done.IsZero() {
		args.Done = k.writeWords(op.Done, 1, op.Batch, 1)
	}
	if !op.IDs.IsZero() {
		args.IDs, args.IDRows = k.readWords(op.IDs, op.Batch, op.IDRows, 1), k.count(op.IDRows)
	}
	const threads = 128
	return run(k, args, grid{ceilDiv(op.Batch, threads), 1, 1}, 0, cost)
}
