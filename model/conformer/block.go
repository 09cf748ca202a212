package conformer

import "github.com/tandem-gpu/tandem/pass"

// Do records the block on x, [Items][t][Width], in place. For relative positions, table
// holds the rows t − 1 … −(t − 1) of [Table], as a view; for rotary ones, rotary is a
// table of at least t positions. Rows beyond the length of an item hold numbers without
// meaning afterwards.
func (b *Block) Do(p pass.Pass, in *Batch, x pass.View, t int, table pass.View, rotary pass.Param) {
	d, rows := b.cfg.Width, in.Items*t
	temp := func(n int) pass.View { return p.Temp(pass.F32, n).View() }
	b.feedForward(p, 0, x, rows)

	o := temp(rows * d)
	if b.cfg.Rotary {
		b.rotary(p, in, x, o, t, rotary)
	} else {
		b.relative(p, in, x, o, t, table)
	}
	p.Do(pass.Gemm{A: o, W: b.out, C: x, Rows: rows, Epilogue: pass.Residual(1)})

	normed, gates, y := temp(rows*d), temp(rows*2*d), temp(rows*d)
	p.Do(
		pass.LayerNorm{X: x, W: b.normConv, Y: normed, Rows: rows, Cols: d},
		pass.Gemm{A: normed, W: b.expand, C: gates, Rows: rows},
		pass.ConvGLU{X: gates, W: b.conv, Y: y, Batch: in.Items, Rows: t, Lengths: in.Last()},
		pass.Gemm{A: y, W: b.project, C: x, Rows: rows, Epilogue: pass.Residual(1)},
	)

	b.feedForward(p, 1, x, rows)
	p.Do(pass.LayerNorm{X: x, W: b.normOut, Y: x, Rows: rows, Cols: d})
}

// feedForward adds half of a feed-forward part.
func (b *Block) feedForward(p pass.Pass, i int, x pass.View, rows int) {
	normed, hidden := p.Temp(pass.F32, rows*b.cfg.Width).View(), p.Temp(pass.F32, rows*b.cfg.Hidden).View()
	p.Do(
		pass.LayerNorm{X: x, W: b.ff[i].norm, Y: normed, Rows: rows, Cols: b.cfg.Width},
		pass.Gemm{A: normed, W: b.ff[i].up, C: hidden, Rows: rows, Epilogue: pass.SiLU},
		pass.Gemm{A: hidden, W: b.ff[i].down, C: x, Rows: rows, Epilogue: pass.Residual(0.5)},
	)
}

// relative is attention whose scores depend on how far apart query and key are (Dai et
// al., Transformer-XL, 2019).
func (b *Block) relative(p pass.Pass, in *Batch, x, o pass.View, t int, table pass.View) {
	d, rows := b.cfg.Width, in.Items*t
	normed, qkv := p.Temp(pass.F32, rows*d).View(), p.Temp(pass.F32, rows*4*d).View()
	positions := p.Temp(pass.F32, (2*t-1)*d).View()
	at := func(i int) pass.View { return qkv.At(i * d).Rows(4 * d) }
	p.Do(
		pass.LayerNorm{X: x, W: b.normAttn, Y: normed, Rows: rows, Cols: d},
		pass.Gemm{A: normed, W: b.qkv, C: qkv, Rows: rows},
		pass.Gemm{A: table, W: b.position, C: positions, Rows: 2*t - 1},
		pass.Attention{
			Q: at(0), K: at(1), V: at(2), Q2: at(3), Positions: positions, O: o,
			Batch: in.Items, Queries: t, Keys: t, Heads: b.cfg.Heads, HeadDim: d / b.cfg.Heads,
			Lengths: in.Last(), KeyLengths: in.Last(),
		},
	)
}

// rotary is attention that turns the input of queries and keys by its position (Su et
// al., RoFormer, 2021), before and not after their layers.
func (b *Block) rotary(p pass.Pass, in *Batch, x, o pass.View, t int, table pass.Param) {
	d, rows := b.cfg.Width, in.Items*t
	normed, turned, qkv := p.Temp(pass.F32, rows*d).View(), p.Temp(pass.F32, rows*d).View(), p.Temp(pass.F32, rows*3*d).View()
	at := func(i int) pass.View { return qkv.At(i * d).Rows(3 * d) }
	p.Do(
		pass.LayerNorm{
			X: x, W: b.normAttn, Y: normed, Batch: in.Items, Rows: t, Cols: d,
			Rotated: turned, Table: table, Heads: b.cfg.Heads,
		},
		pass.Gemm{A: turned, W: b.qkv, C: at(0), Rows: rows},
		pass.Gemm{A: normed, W: b.value, C: at(2), Rows: rows},
		pass.Attention{
			Q: at(0), K: at(1), V: at(2), O: o,
			Batch: in.Items, Queries: t, Keys: t, Heads: b.cfg.Heads, HeadDim: d / b.cfg.Heads,
			Lengths: in.Last(), KeyLengths: in.Last(),
		},
	)
}
