package parallel

import (
	"runtime"
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
			if times != 1 {
				t.Fatalf("element %d of %d: %d times", i, n, times)
			}
		}
	}
}

// Whichever part panics, the caller does, once no part is at work.
func TestPanicsReachTheCaller(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	const n = 4 * grain
	for _, bad := range []int{0, n / 4, n / 2, n - 1} {
		var at, over atomic.Int32
		require.PanicsWithValue(t, bad, func() {
			For(n, 1, func(from, to int) {
				at.Add(1)
				defer over.Add(1)
				if from <= bad && bad < to {
					panic(bad)
				}
				for at.Load() < 4 { // all parts have begun
					runtime.Gosched()
				}
			})
		})
		require.EqualValues(t, 4, over.Load())
	}
}
