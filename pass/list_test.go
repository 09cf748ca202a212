package pass

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Ops that are checked one after another share memory, of which each has its own part: also
// after a mistake, of an op that has more arguments than are left, and when something is
// appended to what one was given.
func TestCheckedOpsAreApart(t *testing.T) {
	x, w := buffer(F32, 1000), linear(4, 5)
	ids, y := buffer(U32, 1000), buffer(F32, 1000)
	var c checker
	check := func(op Op) (Checked, error) {
		defer c.reset()
		return c.check(op)
	}
	var ops []Op
	var got []Checked
	for i := range 3 * roomFor {
		ops = append(ops,
			Gemm{A: x.At(i), W: w, C: y.View(), Rows: 6},
			Embed{IDs: ids.At(i), Table: w, Positions: w, Out: y.View(), Rows: 2},
			Add{A: x.At(i), B: x.At(i + 1), Y: y.View(), Rows: 1, Cols: 4})
	}
	for i, op := range ops {
		checked, err := check(op)
		require.NoError(t, err)
		got = append(got, checked)
		if i%7 == 0 {
			_, err := check(Gemm{A: x.View(), W: w, C: x.View(), Rows: 6})
			require.ErrorIs(t, err, ErrInvalid)
		}
	}
	for i := range got {
		_ = append(got[i].Args, Arg{Name: "none"})
		_ = append(got[i].Params, ParamUse{Name: "none"})
	}
	for i, op := range ops {
		var alone checker
		want, err := alone.check(op)
		require.NoError(t, err)
		require.Equal(t, want, got[i])
	}
}

// A check allocates the op that it returns, and memory for several in one.
func TestCheckAllocates(t *testing.T) {
	x, y := buffer(F32, 1000), buffer(F32, 1000)
	var op Op = Gemm{A: x.View(), W: linear(4, 5), C: y.View(), Rows: 6}
	var c checker
	require.Less(t, testing.AllocsPerRun(1000, func() {
		_, err := c.check(op)
		if err != nil {
			t.Error(err)
		}
		c.reset()
	}), 1.5) // 1.1
}
