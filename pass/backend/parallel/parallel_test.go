package parallel

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFor(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 7, grain/4 + 3, 9*grain + 5} {
		seen := make([]int32, n)
		For(n, 4, func(from, to int) {
			for i := from; i < to; i++ {
				atomic.AddInt32(&seen[i], 1)
			}
		})
		for i, times := range seen {
			require.EqualValues(t, 1, times, "element %d of %d", i, n)
		}
	}
}

func TestCopy(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 5, grain, 3*grain + 1} {
		src := make([]uint32, n)
		for i := range src {
			src[i] = uint32(i)
		}
		dst := make([]uint32, n+1)
		Copy(dst, src)
		require.Equal(t, src, dst[:n])
		require.Zero(t, dst[n])
	}
}

func TestCopiesAllocateNothing(t *testing.T) {
	for _, n := range []int{grain / 2, 4 * grain} {
		src, dst := make([]float32, n), make([]float32, n)
		Copy(dst, src) // the first fills a pool
		require.Less(t, testing.AllocsPerRun(20, func() { Copy(dst, src) }), 1.0)
	}
}

func BenchmarkCopy(b *testing.B) {
	src, dst := make([]float32, 5<<20), make([]float32, 5<<20)
	b.SetBytes(int64(4 * len(src)))
	for b.Loop() {
		Copy(dst, src)
	}
}
