package greedy

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/cpu"
)

const classes = 40

// counter is a network without layers: the hidden row of id i points at class i + 1, and,
// a little less, at i + 2.
func counter(t *testing.T, batch, positions int, masked bool, stop ...uint32) *Loop {
	dev, err := cpu.Open(cpu.Config{Threads: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	load := func(f func(row, column int) float32) pass.Param {
		values := make([]float32, classes*classes)
		for i := range values {
			values[i] = f(i/classes, i%classes)
		}
		p, err := dev.Load(t.Context(), pass.LinearWeights{Parts: []pass.Tensor{pass.Float32s("w", values, classes, classes)}})
		require.NoError(t, err)
		return p
	}
	table := load(func(r, c int) float32 {
		if r == c {
			return 1
		}
		return 0
	})
	head := load(func(class, id int) float32 {
		switch class {
		case id + 1:
			return 3
		case id + 2:
			return 2
		}
		return 0
	})
	ses, err := dev.NewSession(pass.SessionConfig{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ses.Close()) })
	l, err := New(ses, Network{
		Hidden: func(p pass.Pass, r Rows) pass.View {
			out := p.Temp(pass.F32, r.Batch*r.Rows*classes).View()
			p.Do(pass.Embed{IDs: r.IDs, IDRow: r.Pos, IDRows: r.IDRows, Table: table, Out: out, Batch: r.Batch, Rows: r.Rows})
			return out
		},
		Head: head, Positions: positions, Stop: stop, Masked: masked,
	}, batch, pass.RecordOptions{})
	require.NoError(t, err)
	return l
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	l := counter(t, 3, 30, false, 20, 25)
	require.NoError(t, l.Start(ctx, [][]uint32{{1, 2, 3}, {7, 8, 17}}))
	require.NoError(t, l.Feed(ctx, 2))
	ids, logprobs, err := l.Generate(ctx, 28)
	require.NoError(t, err)
	require.Equal(t, [][]uint32{{4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, {18, 19, 20}}, ids)
	for i := range ids {
		require.Len(t, logprobs[i], len(ids[i]))
		for _, v := range logprobs[i] {
			require.InDelta(t, 3-math.Log(math.Exp(3)+math.Exp(2)+classes-2), v, 1e-5)
		}
	}
	// As many steps as there are positions, then as asked.
	require.NoError(t, l.Start(ctx, [][]uint32{{26}}))
	for _, n := range []int{0, 1, 5, 13} {
		require.NoError(t, l.Seek(ctx, 0))
		ids, _, err = l.Generate(ctx, n)
		require.NoError(t, err)
		require.Len(t, ids, 1)
		require.Len(t, ids[0], n)
	}
	require.LessOrEqual(t, len(l.recordings), 4)
	_, _, err = l.Generate(ctx, 31)
	require.ErrorIs(t, err, pass.ErrInvalid)
}

// The first mask holds in the first step, the other in those after it.
func TestMask(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	l := counter(t, 1, 40, true)
	first, rest := make([]float32, classes), make([]float32, classes)
	first[2], rest[6], rest[15] = -100, -100, -100
	require.NoError(t, l.Mask(ctx, first, rest))
	require.NoError(t, l.Start(ctx, [][]uint32{{1}}))
	ids, _, err := l.Generate(ctx, 14)
	require.NoError(t, err)
	require.Equal(t, []uint32{3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 18}, ids[0])
}

func TestStepAndForced(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	l := counter(t, 2, 20, false)
	prompt := make([]uint32, 20)
	for i := range prompt {
		prompt[i] = uint32(i)
	}
	require.NoError(t, l.Start(ctx, [][]uint32{prompt}))
	require.NoError(t, l.Feed(ctx, 3))
	hidden, logits, err := l.Forced(ctx, 13)
	require.NoError(t, err)
	require.Len(t, hidden, 1)
	require.Len(t, logits[0], 13*classes)
	for i := range 13 {
		require.Equal(t, float32(1), hidden[0][i*classes+3+i])
		require.Equal(t, float32(3), logits[0][i*classes+4+i])
	}
	for row := 16; row < 20; row++ {
		next, err := l.Step(ctx, []uint32{uint32(row + 5)})
		require.NoError(t, err)
		require.Len(t, next, 1)
		require.Equal(t, float32(3), next[0][row+6])
	}
	_, err = l.Step(ctx, []uint32{1})
	require.ErrorIs(t, err, pass.ErrInvalid, "beyond the last position")
	_, err = l.Step(ctx, []uint32{1, 2})
	require.ErrorIs(t, err, pass.ErrInvalid)
	require.NoError(t, l.Seek(ctx, 19))
	require.ErrorIs(t, l.Feed(ctx, 2), pass.ErrInvalid)
	for _, row := range []int{-1, 21} {
		require.ErrorIs(t, l.Seek(ctx, row), pass.ErrInvalid)
	}
	for _, prompts := range [][][]uint32{{}, {{1}, {2}, {3}}, {{}}, {{1}, {1, 2}}, {make([]uint32, 21)}} {
		require.ErrorIs(t, l.Start(ctx, prompts), pass.ErrInvalid)
	}
	_, err = New(l.session, Network{Head: l.net.Head}, 1, pass.RecordOptions{})
	require.ErrorIs(t, err, pass.ErrInvalid)
}
