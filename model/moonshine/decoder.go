package moonshine

import (
	"github.com/tandem-gpu/tandem/model/internal/greedy"
	"github.com/tandem-gpu/tandem/pass"
)

// caches are the keys and values of a decoder layer: of the text before, and of the
// encoder's rows.
type caches struct{ self, cross pass.Cache }

// remember records keys and values of all cross-attention, of rows
// [batch][frames][width] of the encoder.
func (m *Model) remember(p pass.Pass, x pass.View, batch, frames int, to []caches) {
	d := m.cfg.Width
	kv := p.Temp(pass.F32, 2*batch*frames*d).View()
	for i, w := range m.decoder {
		p.Do(
			pass.Gemm{A: x, W: w.kv, C: kv, Rows: batch * frames},
			pass.Append{K: kv.Rows(2 * d), V: kv.At(d).Rows(2 * d), Cache: to[i].cross, Batch: batch, Rows: frames},
		)
	}
}

// decode records the decoder, up to its last norm. frames are those of each item.
func (m *Model) decode(p pass.Pass, r greedy.Rows, in []caches, frames pass.Index) pass.View {
	c := m.cfg
	d, rows := c.Width, r.Batch*r.Rows
	x, y := p.Temp(pass.F32, rows*d).View(), p.Temp(pass.F32, rows*d).View()
	qkv := p.Temp(pass.F32, 3*rows*d).View()
	wide, hidden := p.Temp(pass.F32, 2*rows*c.DecoderFFN).View(), p.Temp(pass.F32, rows*c.DecoderFFN).View()
	p.Do(pass.Embed{IDs: r.IDs, IDRow: r.Pos, IDRows: r.IDRows, Table: m.tokens, Out: x, Batch: r.Batch, Rows: r.Rows})
	for i, w := range m.decoder {
		q := qkv.Rows(3 * d)
		p.Do(
			pass.LayerNorm{X: x, W: w.norm, Y: y, Rows: rows, Cols: d},
			pass.Gemm{A: y, W: w.qkv, C: qkv, Rows: rows},
			pass.Rope{
				X: q, Table: m.decoderTurns, Batch: r.Batch, Rows: r.Rows, Heads: 2 * c.DecoderHeads, HeadDim: d / c.DecoderHeads,
				Pos: r.Pos, Style: pass.RopeInterleaved,
			},
			pass.Append{K: q.At(d), V: q.At(2 * d), Cache: in[i].self, Batch: r.Batch, Rows: r.Rows, At: r.Pos},
			pass.Attend{Q: q, O: y, Cache: in[i].self, Batch: r.Batch, Queries: r.Rows, Keys: r.Pos.Plus(r.Rows), Causal: true},
			pass.Gemm{A: y, W: w.out, C: x, Rows: rows, Epilogue: pass.Residual(1)},

			pass.LayerNorm{X: x, W: w.crossNorm, Y: y, Rows: rows, Cols: d},
			pass.Gemm{A: y, W: w.q, C: qkv, Rows: rows},
			pass.Attend{Q: qkv, O: y, Cache: in[i].cross, Batch: r.Batch, Queries: r.Rows, Keys: frames},
			pass.Gemm{A: y, W: w.crossOut, C: x, Rows: rows, Epilogue: pass.Residual(1)},

			pass.LayerNorm{X: x, W: w.ffnNorm, Y: y, Rows: rows, Cols: d},
			pass.Gemm{A: y, W: w.fc1, C: wide, Rows: rows},
			pass.SwiGLU{X: wide, Y: hidden, Rows: rows, Cols: c.DecoderFFN},
			pass.Gemm{A: hidden, W: w.fc2, C: x, Rows: rows, Epilogue: pass.Residual(1)},
		)
	}
	p.Do(pass.LayerNorm{X: x, W: m.decoderNorm, Y: y, Rows: rows, Cols: d})
	return y
}
