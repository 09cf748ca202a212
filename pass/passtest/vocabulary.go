package passtest

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// A vocabulary makes ops on real buffers, params and a cache of 2 × 5 positions, 2 heads
// of 4.
type vocabulary struct {
	buffer func(n int) pass.View
	words  pass.Buffer
	load   func(pass.Weights) pass.Param
	zeros  func(shape ...int) pass.Tensor
	cache  pass.Cache
}

// rules returns ops that break the rules of the vocabulary beyond the first ops, and the
// right ops that they come from.
func (v *vocabulary) rules() (broken []brokenRule, right []pass.Op) {
	norm := v.load(pass.NormWeights{Gain: make([]float32, 4)})
	rope := v.load(pass.RopeWeights{Positions: 6, Rot: 4, Base: 10})
	table := v.load(pass.LinearWeights{Parts: []pass.Tensor{v.zeros(5, 4)}})
	biased := v.load(pass.LinearWeights{Parts: []pass.Tensor{v.zeros(5, 4)}, Bias: make([]float32, 5)})
	wide := v.load(pass.LinearWeights{Parts: []pass.Tensor{v.zeros(5, 3)}})
	mel := pass.MelWeights{Window: make([]float32, 8), FFT: 8, Hop: 2, Mels: 2, Bank: make([]float32, 10), PadLeft: 4, PadRight: 4, Padding: pass.PadReflect}

	layer := pass.LayerNorm{X: v.buffer(64), W: norm, Y: v.buffer(64), Rows: 3, Cols: 4, Rotated: v.buffer(64), Table: rope, Heads: 1}
	pool := pass.PoolNorm{X: v.buffer(64), W: norm, Y: v.buffer(64), Batch: 2, Rows: 6, Cols: 4, Pool: 2}
	length := pass.L2Norm{X: v.buffer(64), Y: v.buffer(64), Rows: 3, Cols: 4}
	soft := pass.Softmax{X: v.buffer(64), Y: v.buffer(64), Rows: 3, Cols: 4}
	best := pass.Argmax{X: v.buffer(64), IDs: v.words.View(), Rows: 3, Cols: 4}
	turn := pass.Rope{X: v.buffer(64), Table: rope, Rows: 3, Heads: 2, HeadDim: 5}
	sum := pass.Add{A: v.buffer(64), B: v.buffer(64), Y: v.buffer(64), Rows: 3, Cols: 4}
	gate := pass.SwiGLU{X: v.buffer(64), Y: v.buffer(64), Rows: 3, Cols: 4}
	look := pass.Embed{IDs: v.words.View(), Table: table, Positions: table, Out: v.buffer(64), Rows: 3}
	mix := pass.Attention{Q: v.buffer(64), K: v.buffer(64), V: v.buffer(64), O: v.buffer(64), Batch: 2, Queries: 3, Keys: 3, Heads: 2, HeadDim: 4}
	store := pass.Append{K: v.buffer(64), V: v.buffer(64), Cache: v.cache, Batch: 2, Rows: 3}
	attend := pass.Attend{Q: v.buffer(64), O: v.buffer(64), Cache: v.cache, Batch: 2, Queries: 3, Keys: pass.Const(5)}
	conv := pass.Conv1D{X: v.buffer(64), W: v.load(pass.ConvWeights{Weight: v.zeros(3, 2, 3)}), Y: v.buffer(64), In: 9, Pool: 2}
	glu := pass.ConvGLU{X: v.buffer(64), W: v.load(pass.ConvGLUWeights{Weight: v.zeros(3, 3), Gain: make([]float32, 3), Shift: make([]float32, 3)}), Y: v.buffer(64), Rows: 5}
	image := pass.Conv2D{X: v.buffer(64), W: v.load(pass.Conv2DWeights{Weight: v.zeros(2, 2, 3, 3)}), Y: v.buffer(64), Height: 4, Width: 5}
	deep := pass.DepthwiseConv2D{X: v.buffer(128), W: v.load(pass.DepthwiseWeights{Weight: v.zeros(2, 3, 3)}), Y: v.buffer(64), Time: 12, Frequency: 4}
	ear := pass.LogMel{X: v.buffer(64), W: v.load(mel), Y: v.buffer(64), Batch: 2, Samples: 20}
	stats := pass.StatsPool{X: v.buffer(64), Masks: v.buffer(64), Y: v.buffer(64), Height: 2, Width: 3, Channels: 2, Count: 2, Frames: 4}
	order := pass.Permute{X: v.buffer(64), Y: v.buffer(64), Dims: [4]int{1, 2, 3, 4}, Order: [4]int{0, 2, 1, 3}}
	next := pass.Advance{Index: v.words.View(), By: 1}
	right = []pass.Op{layer, pool, length, soft, best, turn, sum, gate, look, mix, store, attend, conv, glu, image, deep, ear, stats, order, next}

	inf := float32(math.Inf(1))
	return []brokenRule{
		{"gain for other columns", with(layer, func(l *pass.LayerNorm) { l.Cols = 5 }), "W"},
		{"negative eps", with(layer, func(l *pass.LayerNorm) { l.Eps = -1 }), "Eps"},
		{"eps that is no number", with(layer, func(l *pass.LayerNorm) { l.Eps = float32(math.NaN()) }), "Eps"},
		{"positions beyond the table", with(layer, func(l *pass.LayerNorm) { l.Pos = pass.Const(4) }), "Pos"},
		{"heads that do not divide", with(layer, func(l *pass.LayerNorm) { l.Heads = 3 }), "Heads"},
		{"heads narrower than the rotation", with(layer, func(l *pass.LayerNorm) { l.Heads = 2 }), "Heads"},
		{"no table", with(layer, func(l *pass.LayerNorm) { l.Table = pass.Param{} }), "Table"},
		{"epilogue that is not leaky", with(pool, func(p *pass.PoolNorm) { p.Epilogue = pass.GELU }), "Epilogue"},
		{"in place", with(pool, func(p *pass.PoolNorm) { p.Y = p.X }), "Y"},
		{"length over Rows", with(pool, func(p *pass.PoolNorm) { p.Lengths = pass.Fixed(6, 7) }), "Lengths"},
		{"infinite eps", with(length, func(l *pass.L2Norm) { l.Eps = inf }), "Eps"},
		{"no columns", with(soft, func(s *pass.Softmax) { s.Cols = 0 }), "Cols"},
		{"in place", with(soft, func(s *pass.Softmax) { s.Y = s.X }), "Y"},
		{"too few rows of ids", with(best, func(a *pass.Argmax) { a.IDRows = 2 }), "ToRow"},
		{"index without rows", with(best, func(a *pass.Argmax) { a.ToRow = pass.IndexIn(v.words.At(9)) }), "IDRows"},
		{"index in the buffer of the ids", with(best, func(a *pass.Argmax) { a.ToRow, a.IDRows = pass.IndexIn(v.words.At(9)), 3 }), "ToRow"},
		{"negative addend", with(best, func(a *pass.Argmax) { a.ToRow, a.IDRows = pass.IndexIn(v.words.At(9)).Plus(-1), 3 }), "ToRow"},
		{"style that is none", with(turn, func(r *pass.Rope) { r.Style = 2 }), "Style"},
		{"head narrower than the rotation", with(turn, func(r *pass.Rope) { r.HeadDim = 3 }), "HeadDim"},
		{"positions beyond the table", with(turn, func(r *pass.Rope) { r.Pos = pass.Const(4) }), "Pos"},
		{"second summand in place", with(sum, func(a *pass.Add) { a.Y = a.B }), "Y"},
		{"second half in place", with(gate, func(s *pass.SwiGLU) { s.X = s.X.Rows(8); s.Y = s.X.At(4) }), "Y"},
		{"dense rows in place", with(gate, func(s *pass.SwiGLU) { s.Y = s.X }), "Y"},
		{"table with a bias", with(look, func(e *pass.Embed) { e.Table = biased }), "Table"},
		{"positions of another width", with(look, func(e *pass.Embed) { e.Positions = wide }), "Positions"},
		{"positions beyond the table", with(look, func(e *pass.Embed) { e.Pos = pass.Const(3) }), "Pos"},
		{"too few ids", with(look, func(e *pass.Embed) { e.IDRow, e.IDRows = pass.Const(2), 4 }), "IDRow"},
		{"head of 6", with(mix, func(a *pass.Attention) { a.HeadDim = 6 }), "HeadDim"},
		{"head of 260", with(mix, func(a *pass.Attention) { a.HeadDim = 260 }), "HeadDim"},
		{"second queries without positions", with(mix, func(a *pass.Attention) { a.Q2 = v.buffer(64) }), "Positions"},
		{"positions without second queries", with(mix, func(a *pass.Attention) { a.Positions = v.buffer(64) }), "Q2"},
		{"relative positions of other keys", with(mix, func(a *pass.Attention) { a.Q2, a.Positions, a.Keys = v.buffer(64), v.buffer(64), 4 }), "Queries"},
		{"too few positions", with(mix, func(a *pass.Attention) { a.Q2, a.Positions = v.buffer(64), v.buffer(39) }), "Positions"},
		{"band to the wrong side", with(mix, func(a *pass.Attention) { a.Mask = pass.Band(0, -1) }), "Mask"},
		{"infinite scale", with(mix, func(a *pass.Attention) { a.Scale = inf }), "Scale"},
		{"length over Queries", with(mix, func(a *pass.Attention) { a.Lengths = pass.Fixed(3, 4) }), "Lengths"},
		{"length over Keys", with(mix, func(a *pass.Attention) { a.KeyLengths = pass.Fixed(4, 3) }), "KeyLengths"},
		{"output over a query", with(mix, func(a *pass.Attention) { a.O = a.Q }), "O"},
		{"beyond the capacity", with(store, func(a *pass.Append) { a.At = pass.Const(3) }), "At"},
		{"more items than the cache", with(store, func(a *pass.Append) { a.Batch = 3 }), "Cache"},
		{"more keys than the capacity", with(attend, func(a *pass.Attend) { a.Keys = pass.Const(6) }), "Keys"},
		{"more items than the cache", with(attend, func(a *pass.Attend) { a.Batch = 3 }), "Cache"},
		{"output over the queries", with(attend, func(a *pass.Attend) { a.O = a.Q }), "O"},
		{"pool in place", with(conv, func(c *pass.Conv1D) { c.Epilogue = pass.Residual(1) }), "Epilogue"},
		{"absolute values in place", with(conv, func(c *pass.Conv1D) { c.Pool, c.Abs, c.Epilogue = 0, true, pass.GELUResidual }), "Epilogue"},
		{"steps beyond the pooled", with(conv, func(c *pass.Conv1D) { c.Out = pass.Span{To: 4} }), "Out"},
		{"rows beyond the end", with(glu, func(g *pass.ConvGLU) { g.Out = pass.Span{From: 3, To: 6} }), "Out"},
		{"in place", with(glu, func(g *pass.ConvGLU) { g.Y = g.X }), "Y"},
		{"stride of 3", with(image, func(c *pass.Conv2D) { c.Stride = 3 }), "Stride"},
		{"lines beyond the end", with(image, func(c *pass.Conv2D) { c.Out = pass.Span{From: 2, To: 5} }), "Out"},
		{"residual in place", with(image, func(c *pass.Conv2D) { c.Residual = c.Y }), "Residual"},
		{"rows that are not held", with(deep, func(d *pass.DepthwiseConv2D) { d.Held, d.Out = pass.Span{From: 2, To: 7}, pass.Span{From: 1, To: 3} }), "Held"},
		{"rows beyond the image", with(deep, func(d *pass.DepthwiseConv2D) { d.Held = pass.Span{From: 2, To: 13} }), "Held"},
		{"clip shorter than its reflection", with(ear, func(m *pass.LogMel) { m.Samples = 4 }), "Samples"},
		{"length shorter than its reflection", with(ear, func(m *pass.LogMel) { m.Lengths = pass.Fixed(20, 3) }), "Lengths"},
		{"no columns", with(stats, func(s *pass.StatsPool) { s.Width = 0 }), "Width"},
		{"no frames", with(stats, func(s *pass.StatsPool) { s.Frames = 0 }), "Frames"},
		{"axis twice", with(order, func(p *pass.Permute) { p.Order[1] = 0 }), "Order"},
		{"axis that is none", with(order, func(p *pass.Permute) { p.Order[1] = 4 }), "Order"},
		{"negative dimension", with(order, func(p *pass.Permute) { p.Dims[1] = -1 }), "Dims"},
		{"dimensions that overflow", with(order, func(p *pass.Permute) { p.Dims[1], p.Dims[2] = math.MaxInt/2, 3 }), "Dims"},
		{"stop without ids", with(next, func(a *pass.Advance) { a.Stop = []uint32{1} }), "Stop"},
		{"too many stops", with(next, func(a *pass.Advance) { a.Stop = make([]uint32, pass.MaxStop+1) }), "Stop"},
		{"step that overflows", with(next, func(a *pass.Advance) { a.By = 1 << 40 }), "By"},
		{"flags in the buffer of the counters", with(next, func(a *pass.Advance) { a.Done = v.words.At(9) }), "Done"},
	}, right
}
