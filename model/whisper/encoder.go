package whisper

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// An observer is told of intermediate results, n elements from v on.
type observer func(name string, v pass.View, n int)

// encode records the encoder: from features [batch][frames][mels] to rows
// [batch][positions][width]. iota are the numbers of the positions, for each item.
func (m *Model) encode(p pass.Pass, mel pass.View, batch int, iota pass.Buffer, see observer) pass.View {
	c := m.cfg
	d, steps := c.Width, c.AudioPositions
	rows := batch * steps
	first := p.Temp(pass.F32, 2*rows*d).View()
	x := p.Temp(pass.F32, rows*d).View()
	p.Do(
		pass.Conv1D{X: mel, W: m.conv1, Y: first, Batch: batch, In: 2 * steps, PadLeft: 1, PadRight: 1, Epilogue: pass.GELU},
		// The positions are there when the second convolution is added to them.
		pass.Embed{IDs: iota.View(), Table: m.audioPositions, Out: x, Rows: rows},
		pass.Conv1D{X: first, W: m.conv2, Y: x, Batch: batch, In: 2 * steps, Stride: 2, PadLeft: 1, PadRight: 1, Epilogue: pass.GELUResidual},
	)
	see("after_conv", x, rows*d)
	y, qkv, hidden := p.Temp(pass.F32, rows*d).View(), p.Temp(pass.F32, 3*rows*d).View(), p.Temp(pass.F32, rows*c.FFN).View()
	for i, l := range m.encoder {
		p.Do(
			pass.LayerNorm{X: x, W: l.norm, Y: y, Rows: rows, Cols: d},
			pass.Gemm{A: y, W: l.qkv, C: qkv, Rows: rows},
			pass.Attention{
				Q: qkv.Rows(3 * d), K: qkv.At(d).Rows(3 * d), V: qkv.At(2 * d).Rows(3 * d), O: y,
				Batch: batch, Queries: steps, Keys: steps, Heads: c.Heads, HeadDim: d / c.Heads,
			},
			pass.Gemm{A: y, W: l.out, C: x, Rows: rows, Epilogue: pass.Residual(1)},
		)
		mlp(p, l, x, y, hidden, rows, d)
		see(fmt.Sprint("after_layer_", i), x, rows*d)
	}
	p.Do(pass.LayerNorm{X: x, W: m.encoderNorm, Y: y, Rows: rows, Cols: d})
	see("encoder", y, rows*d)
	return y
}

// mlp records the hidden layers: x += fc2(GELU(fc1(norm(x)))).
func mlp(p pass.Pass, l encoderLayer, x, y, hidden pass.View, rows, d int) {
	p.Do(
		pass.LayerNorm{X: x, W: l.ffnNorm, Y: y, Rows: rows, Cols: d},
		pass.Gemm{A: y, W: l.fc1, C: hidden, Rows: rows, Epilogue: pass.GELU},
		pass.Gemm{A: hidden, W: l.fc2, C: x, Rows: rows, Epilogue: pass.Residual(1)},
	)
}
