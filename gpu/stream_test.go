package gpu

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/pass"
)

// sequence returns n words that count from first on.
func sequence(n int, first uint32) []uint32 {
	words := make([]uint32, n)
	for i := range words {
		words[i] = first + uint32(i)
	}
	return words
}

func TestStateIsWrittenAndRead(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		s, err := r.NewSession(pass.SessionConfig{})
		require.NoError(t, err)
		const n = 1<<20 + 77 // more than a slot of the staging ring
		b, err := s.Alloc(pass.U32, n)
		require.NoError(t, err)
		got := make([]uint32, n)
		require.NoError(t, s.Read(ctx, b.View(), got))
		require.NoError(t, equal(make([]uint32, n), got), "new state is zero")
		want := sequence(n, 1000)
		require.NoError(t, s.Write(ctx, b.View(), want))
		require.NoError(t, s.Write(ctx, b.At(5), []uint32{1, 2, 3}))
		copy(want[5:], []uint32{1, 2, 3})
		require.NoError(t, s.Read(ctx, b.View(), got))
		require.NoError(t, equal(want, got))
		part := make([]uint32, 2)
		require.NoError(t, s.Read(ctx, b.At(7), part))
		require.Equal(t, want[7:9], part)
	})
}

func TestInputsAndOutputs(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 100, transferWords + 3} { // the last goes through the staging ring
		onEach(t, func(t *testing.T, r *rig) {
			ctx := context.Background()
			s, err := r.NewSession(pass.SessionConfig{})
			require.NoError(t, err)
			state, err := s.Alloc(pass.U32, n+9)
			require.NoError(t, err)
			var a, b, none pass.Input
			var sum, all pass.Output
			rec, err := s.Record(ctx, pass.RecordOptions{}, func(p pass.Pass) {
				a, b, none = p.Input(pass.U32, n), p.Input(pass.U32, 3), p.Input(pass.U32, 0)
				x := p.Temp(pass.U32, n+5)
				p.Do(fillWith(x.View(), n+5, 7), dense(a.View(), x.At(1), n), dense(x.View(), state.At(4), n+5), dense(b.View(), state.At(2), 3))
				sum, all = p.Output(x.At(1), n), p.Output(state.View(), n+9)
			})
			require.NoError(t, err)
			for i := range uint32(4) {
				run, err := rec.Run(ctx, a.U32(sequence(n, i)), b.U32([]uint32{90 + i, 91, 92}), none.U32(nil))
				require.NoError(t, err)
				got := make([]uint32, n)
				require.NoError(t, run.ReadU32(sum, got))
				require.NoError(t, equal(sequence(n, i), got))
				got = make([]uint32, n+9)
				require.NoError(t, run.ReadU32(all, got))
				want := append([]uint32{0, 0, 90 + i, 91, 92}, sequence(n, i)...)
				require.NoError(t, equal(append(want, 7, 7, 7, 7), got))
				run.Close()
			}
		})
	}
}
