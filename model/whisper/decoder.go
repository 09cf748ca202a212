package whisper

import (
	"github.com/tandem-gpu/tandem/model/internal/greedy"
	"github.com/tandem-gpu/tandem/pass"
)

// caches are the keys and values of a decoder layer: of the text before, and of the
// encoder's rows.
type caches struct{ self, cross pass.Cache }

// remember records keys and values of all cross-attention, of rows
// [batch][positions][width] of the encoder.
func (m *Model) remember(p pass.Pass, x pass.View, batch int, to []caches) {
	d, steps := m.cfg.Width, m.cfg.AudioPositions
	kv := p.Temp(pass.F32, 2*batch*steps*d).View()
	for i, l := range m.decoder {
		p.Do(
			pass.Gemm{A: x, W: l.kv, C: kv, Rows: batch * steps},
			pass.Append{K: kv.Rows(2 * d), V: kv.At(d).Rows(2 * d), Cache: to[i].cross, Batch: batch, Rows: steps},
		)
	}
}

// decode records the decoder, up to its last norm.
func (m *Model) decode(p pass.Pass, r greedy.Rows, in []caches) pass.View {
	c := m.cfg
	d, rows := c.Width, r.Batch*r.Rows
	x, y := p.Temp(pass.F32, rows*d).View(), p.Temp(pass.F32, rows*d).View()
	qkv, hidden := p.Temp(pass.F32, 3*rows*d).View(), p.Temp(pass.F32, rows*c.DecoderFFN).View()
	p.Do(pass.Embed{
		IDs: r.IDs, IDRow: r.Pos, IDRows: r.IDRows, Table: m.tokens, Positions: m.textPositions, Pos: r.Pos,
		Out: x, Batch: r.Batch, Rows: r.Rows,
	})
	for i, l := range m.decoder {
		q := qkv.Rows(3 * d)
		p.Do(
			pass.LayerNorm{X: x, W: l.norm, Y: y, Rows: rows, Cols: d},
			pass.Gemm{A: y, W: l.qkv, C: qkv, Rows: rows},
			pass.Append{K: q.At(d), V: q.At(2 * d), Cache: in[i].self, Batch: r.Batch, Rows: r.Rows, At: r.Pos},
			pass.Attend{Q: q, O: y, Cache: in[i].self, Batch: r.Batch, Queries: r.Rows, Keys: r.Pos.Plus(r.Rows), Causal: true},
			pass.Gemm{A: y, W: l.out, C: x, Rows: rows, Epilogue: pass.Residual(1)},

			pass.LayerNorm{X: x, W: l.crossNorm, Y: y, Rows: rows, Cols: d},
			pass.Gemm{A: y, W: l.q, C: qkv, Rows: rows},
			pass.Attend{Q: qkv, O: y, Cache: in[i].cross, Batch: r.Batch, Queries: r.Rows, Keys: pass.Const(c.AudioPositions)},
			pass.Gemm{A: y, W: l.crossOut, C: x, Rows: rows, Epilogue: pass.Residual(1)},
		)
		mlp(p, l.encoderLayer, x, y, hidden, rows, d)
	}
	p.Do(pass.LayerNorm{X: x, W: m.decoderNorm, Y: y, Rows: rows, Cols: d})
	return y
}
