package cuda

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

// mixed is what recordings of 1,000 ops of four kinds need.
type mixed struct {
	t            testing.TB
	linear, conv pass.Param
}

const mixedWidth = 64

func newMixed(t testing.TB, dev pass.Device) mixed {
	m := mixed{t: t}
	w := make([]float32, mixedWidth*mixedWidth*3)
	var err error
	m.linear, err = dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("w", w[:mixedWidth*mixedWidth], mixedWidth, mixedWidth)}})
	require.NoError(t, err)
	m.conv, err = dev.Load(t.Context(), pass.ConvWeights{Weight: pass.Float32s("w", w, mixedWidth, mixedWidth, 3)})
	require.NoError(t, err)
	return m
}

// record records 1,000 ops, each of which writes a temporary that the next one reads.
func (m mixed) record(ctx context.Context, ses pass.Session, rows int) pass.Recording {
	rec, err := ses.Record(ctx, pass.RecordOptions{Math: pass.Fast}, func(p pass.Pass) {
		x := p.Input(pass.F32, rows*mixedWidth).View()
		for i := range 1000 {
			y := p.Temp(pass.F32, rows*mixedWidth).View()
			switch i % 4 {
			case 0:
				p.Do(pass.Gemm{A: x, W: m.linear, C: y, Rows: rows})
			case 1:
				p.Do(pass.Map{X: x, Y: y, Rows: rows, Cols: mixedWidth, Epilogue: pass.SiLU})
			case 2:
				p.Do(pass.Conv1D{X: x, W: m.conv, Y: y, In: rows, PadLeft: 1, PadRight: 1})
			case 3:
				p.Do(pass.Copy{From: x, To: y, Rows: rows, Cols: mixedWidth})
			}
			x = y
		}
		p.Output(x, rows*mixedWidth)
	})
	require.NoError(m.t, err)
	return rec
}
