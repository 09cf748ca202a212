package pyannote

import "github.com/tandem-gpu/tandem/pass"

// segment records the network: from samples [n][samples] to [n][frames][classes].
// lengths are the samples of each window, then its steps after each convolution. The
// convolutions need none, since they have no padding: what lies beyond a window's steps
// is left out by the normalisation.
func (m *Model) segment(p pass.Pass, x, lengths pass.View, n, samples int, see func(string, pass.View, int)) pass.View {
	most := steps(samples)
	of := func(stage int) pass.Items { return pass.ItemsIn(lengths.At(stage * n)) }
	temp := func(n int) pass.View { return p.Temp(pass.F32, n).View() }
	y := temp(n * samples)
	p.Do(pass.PoolNorm{X: x, W: m.waveNorm, Y: y, Batch: n, Rows: samples, Cols: 1, Lengths: of(0)})
	for i := range stages {
		conv := pass.Conv1D{X: y, W: m.conv[i], Batch: n, In: most[i], Pool: pool}
		if i == 0 {
			conv.Stride, conv.Abs = stride, true
		}
		elements := n * most[i+1] * width(i)
		conv.Y, y = temp(elements), temp(elements)
		p.Do(conv, pass.PoolNorm{
			X: conv.Y, W: m.norm[i], Y: y, Batch: n, Rows: most[i+1], Cols: width(i), Lengths: of(i + 1), Epilogue: pass.Leaky(0.01),
		})
	}
	frames := most[stages]
	rows := n * frames
	see("sincnet", y, rows*channels)
	in := 2 * m.cfg.Hidden
	h := temp(rows * in)
	p.Do(pass.LSTM{X: y, W: m.lstm, Y: h, Batch: n, Time: frames, Lengths: of(stages)})
	see("lstm", h, rows*in)
	for i, out := range m.cfg.Linear {
		y := temp(rows * out)
		p.Do(pass.Gemm{A: h, W: m.linear[i], C: y, Rows: rows, Epilogue: pass.Leaky(0.01)})
		h = y
	}
	logits, result := temp(rows*m.cfg.Classes), temp(rows*m.cfg.Classes)
	p.Do(
		pass.Gemm{A: h, W: m.classifier, C: logits, Rows: rows},
		pass.LogSoftmax{X: logits, Y: result, Rows: rows, Cols: m.cfg.Classes},
	)
	return result
}
