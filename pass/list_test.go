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
	check := func(op Op) (checked Checked, err error) {
		defer c.reset()
		err = c.check(op, &checked)
		return checked, err
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
		var want Checked
		var alone checker
		require.NoError(t, alone.check(op, &want))
		require.Equal(t, want, got[i])
	}
}

// A check allocates the op that it returns, and memory for several in one.
func TestCheckAllocates(t *testing.T) {
	x, y := buffer(F32, 1000), buffer(F32, 1000)
	var op Op = Gemm{A: x.View(), W: linear(4, 5), C: y.View(), Rows: 6}
	var c checker
	require.Less(t, testing.AllocsPerRun(1000, func() {
		var checked Checked
		if err := c.check(op, &checked); err != nil {
			t.Error(err)
		}
		c.reset()
	}), 1.5) // 1.1
}

// A Checker returns what Check does, values and pointers alike, in memory that is the same
// after Reset; a clone is in none of it.
func TestCheckerUsesMemoryAgain(t *testing.T) {
	x, y, w := buffer(F32, 1000), buffer(F32, 1000), linear(4, 5)
	var ops []Op
	for i := range 3 * roomFor {
		ops = append(ops,
			Gemm{A: x.At(i), W: w, C: y.View(), Rows: 6},
			&Gemm{A: x.At(i + 1), W: w, C: y.View(), Rows: 6},
			Add{A: x.At(i), B: x.At(i + 1), Y: y.View(), Rows: 1, Cols: 4})
	}
	var c Checker
	check := func() (all []Checked) {
		for _, op := range ops {
			var checked, none Checked
			require.NoError(t, c.Check(op, &checked))
			all = append(all, checked)
			require.ErrorIs(t, c.Check(Gemm{A: x.View(), W: w, C: x.View(), Rows: 6}, &none), ErrInvalid)
			require.Zero(t, none)
		}
		return all
	}
	same := func(all []Checked) {
		t.Helper()
		for i, op := range ops {
			want, err := Check(op)
			require.NoError(t, err)
			require.Equal(t, want, all[i])
		}
	}
	same(check())
	c.Reset() // in pieces
	first := check()
	same(first)
	arg := &first[0].Args[0]
	var clones []Checked
	for _, checked := range first {
		clones = append(clones, checked.Clone())
	}
	c.Reset()
	second := check()
	same(second)
	require.Same(t, arg, &second[0].Args[0])
	c.Reset()
	var other Checked
	for range ops {
		require.NoError(t, c.Check(Gemm{A: y.View(), W: w, C: x.View(), Rows: 1}, &other))
		require.NoError(t, c.Check(Add{A: y.View(), B: y.View(), Y: x.View(), Rows: 1, Cols: 1}, &other))
	}
	require.NotEqual(t, clones[0], second[0], "whose memory others have")
	same(clones)
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() {
		c.Reset()
		for _, op := range ops {
			if err := c.Check(op, &other); err != nil {
				t.Error(err)
			}
		}
	}), float64(len(ops)), "the op itself")
}
