package backend

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

// Room for a recording is that of the one before, if it is as large; a small one does not
// keep that of a large one, and a large one after it is whole.
func TestRecordingsAfterOthers(t *testing.T) {
	t.Parallel()
	_, ses := open(t, newFake(), pass.SessionConfig{})
	record := func(ops int) *Plan {
		rec, err := ses.Record(t.Context(), pass.RecordOptions{}, func(p pass.Pass) {
			x := p.Temp(pass.F32, 4).View()
			p.Do(pass.Fill{To: x, Rows: 1, Cols: 4})
			for range ops - 1 {
				y := p.Temp(pass.F32, 4).View()
				p.Do(pass.Copy{From: x, To: y, Rows: 1, Cols: 4})
				x = y
			}
			p.Output(x, 4)
		})
		require.NoError(t, err)
		defer rec.Close()
		plan := rec.(*recording).plan
		require.Len(t, plan.Steps, ops)
		require.Len(t, plan.Temps, ops)
		for i, temp := range plan.Temps {
			require.Equal(t, Temp{Type: pass.F32, Len: 4, First: i, Last: i + 1}, temp)
		}
		return plan
	}
	record(100)
	same := record(100)
	require.Equal(t, 100, cap(same.Steps))
	require.Equal(t, 100, cap(same.Temps))
	small := record(3)
	require.LessOrEqual(t, cap(small.Steps), 6)
	require.LessOrEqual(t, cap(small.Temps), 6)
	record(101)
}
