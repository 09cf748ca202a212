package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/cuda/internal/drivertest"
	"github.com/tandem-gpu/tandem/pass"
)

// Large inputs go to the device in pieces, with what lies before and between them.
func TestLargeInputs(t *testing.T) {
	t.Parallel()
	dev := emulated(t, drivertest.Hopper(), Config{})
	defer dev.Close()
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	sizes := []int{5, pieceBytes/4 + 7, 3, pieceBytes / 2, pieceBytes / 4}
	var in [5]pass.Input
	var out [5]pass.Output
	rec, err := ses.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
		for i, n := range sizes {
			in[i] = p.Input(pass.U32, n)
			p.Do(pass.Copy{From: in[i].View(), To: p.Temp(pass.U32, 1).View(), Rows: 1, Cols: 1})
			out[i] = p.Output(in[i].View(), n)
		}
	})
	require.NoError(t, err)
	for round := range uint32(2) {
		var binds []pass.Bind
		var data [5][]uint32
		for i, n := range sizes {
			data[i] = make([]uint32, n)
			for j := range data[i] {
				data[i][j] = uint32(j)*7 + uint32(i) + round<<30
			}
			binds = append(binds, in[i].U32(data[i]))
		}
		run, err := rec.Run(t.Context(), binds...)
		require.NoError(t, err)
		for i, n := range sizes {
			got := make([]uint32, n)
			require.NoError(t, run.ReadU32(out[i], got))
			require.Equal(t, data[i], got)
		}
		run.Close()
	}
}
