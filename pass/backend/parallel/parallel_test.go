package parallel

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A panic in a goroutine of its own is that of whoever waits for it.
func TestBegin(t *testing.T) {
	t.Parallel()
	end := Begin(func() int { panic("here") })
	require.PanicsWithValue(t, "here", func() { end() })
	require.Equal(t, 3, Begin(func() int { return 3 })())
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

// Neither do large copies, on several processors: testing.AllocsPerRun knows one only.
func TestCopiesAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector lets pools forget")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for _, n := range []int{grain / 2, 4 * grain} {
		src, dst := make([]float32, n), make([]float32, n)
		copies := func() (allocs uint64) {
			const runs = 100
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range runs {
				Copy(dst, src)
			}
			runtime.ReadMemStats(&after)
			return (after.Mallocs - before.Mallocs) / runs
		}
		copies() // the first fill a pool, and leave goroutines to be used again
		allocs := uint64(1)
		for i := 0; i < 5 && allocs > 0; i++ { // the runtime allocates now and then, too
			allocs = copies()
		}
		require.Zero(t, allocs, n)
	}
}

func BenchmarkCopy(b *testing.B) {
	src, dst := make([]float32, 5<<20), make([]float32, 5<<20)
	b.SetBytes(int64(4 * len(src)))
	for b.Loop() {
		Copy(dst, src)
	}
}
