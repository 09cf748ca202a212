package silero

import "github.com/tandem-gpu/tandem/pass"

// A state is the LSTM state of some rows of audio, in a session.
type state struct{ h, c pass.Buffer }

func newState(s pass.Session, rows int) (st state, err error) {
	if st.h, err = s.Alloc(pass.F32, rows*features); err != nil {
		return st, err
	}
	st.c, err = s.Alloc(pass.F32, rows*features)
	return st, err
}

// encode records what has no state: from items of 576 samples (64 of the chunk before,
// 512 new ones), [items][576], to features, [items][128].
func (m *Model) encode(p pass.Pass, x pass.View, items int) pass.Buffer {
	spectrum := p.Temp(pass.F32, items*frames*2*bins)
	y := p.Temp(pass.F32, items*frames*bins)
	p.Do(
		pass.Conv1D{
			X: x, W: m.stft, Y: spectrum.View(), Batch: items, In: itemSamples,
			Stride: hop, PadRight: contextSamples, Padding: pass.PadReflect,
		},
		pass.Magnitude{X: spectrum.View(), Y: y.View(), Rows: items * frames, Cols: bins},
	)
	steps := frames
	for i, layer := range encoder {
		conv := pass.Conv1D{
			X: y.View(), W: m.conv[i], Batch: items, In: steps,
			Stride: layer.stride, PadLeft: 1, PadRight: 1, Epilogue: pass.ReLU,
		}
		steps = conv.Steps(steps)
		y = p.Temp(pass.F32, items*steps*layer.out)
		conv.Y = y.View()
		p.Do(conv)
	}
	return y
}

// decide records the last layers: from the LSTM's rows, [rows][128], to probabilities.
func (m *Model) decide(p pass.Pass, h pass.Buffer, rows int) pass.Output {
	positive, probability := p.Temp(pass.F32, rows*features), p.Temp(pass.F32, rows)
	p.Do(
		pass.Map{X: h.View(), Y: positive.View(), Rows: rows, Cols: features, Epilogue: pass.ReLU},
		pass.Gemm{A: positive.View(), W: m.head, C: probability.View(), Rows: rows, Epilogue: pass.Sigmoid},
	)
	return p.Output(probability.View(), rows)
}
