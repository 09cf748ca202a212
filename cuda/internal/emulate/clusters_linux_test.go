package emulate_test

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestClusters(t *testing.T) {
	lib := library(t)
	y := floats(t, 8*4)
	a := args{y: unsafe.Pointer(&y[0])}
	require.NoError(t, launch(lib, "ranks", a, 8, 64, 128))
	for block := range 8 {
		for i := range 4 {
			from := block/4*4 + i
			require.Equal(t, float32(10*from+block%4), y[4*block+i])
		}
	}
	a.wrong = 1
	require.ErrorContains(t, launch(lib, "ranks", a, 8, 64, 128), "the block ends while a copy is on its way to byte ")
	require.True(t, math.IsNaN(float64(y[0])), "what was not waited for is not there")
}

// A block that ends before others have reached it would fault on a device, now and then.
func TestArrivalsAtBlocks(t *testing.T) {
	lib := library(t)
	require.NoError(t, launch(lib, "visits", args{}, 8, 32, 64))
	require.ErrorContains(t, launch(lib, "visits", args{wrong: 1}, 8, 32, 64), "the block ends while arrivals may be on their way to the barrier at byte 0")
}

func TestBlocksThatHaveEnded(t *testing.T) {
	lib := library(t)
	y := floats(t, 1)
	for n := range uint32(4) {
		require.ErrorContains(t, launch(lib, "late", args{y: unsafe.Pointer(&y[0]), n: n}, 4, 32, 256), "block 0 of the cluster has ended", "way %d", n)
	}
}

func TestCopiesWithinClusters(t *testing.T) {
	lib := library(t)
	y := floats(t, 8*32)
	a := args{y: unsafe.Pointer(&y[0])}
	require.NoError(t, launch(lib, "handed", a, 8, 32, 512))
	for block := range 8 {
		for i := range 32 {
			from := block/4*4 + (block+3)%4
			require.Equal(t, float32(100*from+i), y[32*block+i])
		}
	}
	a.n = 1
	require.ErrorContains(t, launch(lib, "handed", a, 8, 32, 512), "the block ends while a copy ")
	require.True(t, math.IsNaN(float64(y[0])), "what was not waited for is not there")
	a.n, a.wrong = 0, 1
	require.ErrorContains(t, launch(lib, "handed", a, 8, 32, 512), "want multiples of 16")
}
