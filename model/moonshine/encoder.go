package moonshine

import (
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// steps returns how long so many samples are after each convolution; the last are the
// frames of the encoder.
func steps(samples int) (n [len(stem)]int) {
	for i, c := range stem {
		if samples < c.kernel {
			break
		}
		samples = (samples-c.kernel)/c.stride + 1
		n[i] = samples
	}
	return n
}

// MinSamples is the length of the shortest utterance: one frame of the encoder.
const MinSamples = 895

// lengths are the numbers of samples of the items, and of steps after each convolution,
// in a U32 buffer [4][batch].
type lengths struct {
	view  pass.View
	batch int
}

func (l lengths) after(convolutions int) pass.Items {
	return pass.ItemsIn(l.view.At(convolutions * l.batch))
}

// An observer is told of intermediate results, n elements from v on.
type observer func(name string, v pass.View, n int)

// encode records the encoder: from samples [batch][samples] to rows
// [batch][frames][width], which mean nothing beyond an item's length.
func (m *Model) encode(p pass.Pass, x pass.View, batch, samples int, l lengths, see observer) pass.View {
	c := m.cfg
	d, n := c.Width, steps(samples)
	a, b := p.Temp(pass.F32, batch*n[0]*d).View(), p.Temp(pass.F32, batch*n[1]*2*d).View()
	frames := n[2]
	rows := batch * frames
	h, y := p.Temp(pass.F32, rows*d).View(), p.Temp(pass.F32, rows*d).View()
	p.Do(
		pass.Conv1D{X: x, W: m.stem[0], Y: a, Batch: batch, In: samples, Stride: stem[0].stride, Lengths: l.after(0), Epilogue: pass.Tanh},
		pass.GroupNorm{X: a, W: m.groupNorm, Y: a, Batch: batch, Rows: n[0], Cols: d, Lengths: l.after(1)},
		pass.Conv1D{X: a, W: m.stem[1], Y: b, Batch: batch, In: n[0], Stride: stem[1].stride, Lengths: l.after(1), Epilogue: pass.GELU},
		pass.Conv1D{X: b, W: m.stem[2], Y: h, Batch: batch, In: n[1], Stride: stem[2].stride, Lengths: l.after(2), Epilogue: pass.GELU},
	)
	see("stem", h, rows*d)
	qkv, hidden := p.Temp(pass.F32, 3*rows*d).View(), p.Temp(pass.F32, rows*c.FFN).View()
	q := qkv.Rows(3 * d)
	for i, w := range m.encoder {
		p.Do(
			pass.LayerNorm{X: h, W: w.norm, Y: y, Rows: rows, Cols: d},
			pass.Gemm{A: y, W: w.qkv, C: qkv, Rows: rows},
			// Queries and keys are turned, which lie side by side.
			pass.Rope{X: q, Table: m.turns, Batch: batch, Rows: frames, Heads: 2 * c.Heads, HeadDim: d / c.Heads, Style: pass.RopeInterleaved},
			pass.Attention{
				Q: q, K: q.At(d), V: q.At(2 * d), O: y, Batch: batch, Queries: frames, Keys: frames,
				Heads: c.Heads, HeadDim: d / c.Heads, Lengths: l.after(3), KeyLengths: l.after(3),
			},
			pass.Gemm{A: y, W: w.out, C: h, Rows: rows, Epilogue: pass.Residual(1)},
			pass.LayerNorm{X: h, W: w.ffnNorm, Y: y, Rows: rows, Cols: d},
			pass.Gemm{A: y, W: w.fc1, C: hidden, Rows: rows, Epilogue: pass.GELU},
			pass.Gemm{A: hidden, W: w.fc2, C: h, Rows: rows, Epilogue: pass.Residual(1)},
		)
		see(fmt.Sprint("after_layer_", i), h, rows*d)
	}
	p.Do(pass.LayerNorm{X: h, W: m.encoderNorm, Y: y, Rows: rows, Cols: d})
	see("encoder", y, rows*d)
	return y
}
