package cpu

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/tandem-gpu/tandem/pass"
)

func TestFromHalf(t *testing.T) {
	t.Parallel()
	for h := range 1 << 16 {
		want, got := float16.Frombits(uint16(h)).Float32(), fromHalf(uint16(h))
		if want != want {
			require.True(t, got != got, "%#x", h)
			continue
		}
		require.Equal(t, math.Float32bits(want), math.Float32bits(got), "%#x", h)
	}
}

func TestCacheReturnsItsBytes(t *testing.T) {
	t.Parallel()
	for _, typ := range []pass.DType{pass.F32, pass.F16} {
		l := &ledger{limit: 1 << 30}
		c, err := newCache(l, pass.CacheConfig{Heads: 3, HeadDim: 12, Capacity: 9, Batch: 2, Type: typ})
		require.NoError(t, err)
		// Two panels of positions, two of dimensions.
		require.Equal(t, typ.Bytes(8)*6*(2*12+2*9), l.held.Load())
		c.Free()
		require.Zero(t, l.held.Load())
	}
}
