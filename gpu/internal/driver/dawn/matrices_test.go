package dawn

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
)

func TestDecodeMatrices(t *testing.T) {
	t.Parallel()
	list := func(words ...uint32) func(int) []byte {
		var data []byte
		for _, w := range words {
			data = binary.NativeEndian.AppendUint32(data, w)
		}
		return func(n int) []byte { return data[:n] }
	}
	f16 := driver.MatrixConfig{Component: driver.F16, Result: driver.F32, M: 16, N: 8, K: 32, MinSubgroup: 16, MaxSubgroup: 32}
	i8 := driver.MatrixConfig{Component: driver.I8, Result: driver.I32, M: 8, N: 8, K: 8, MinSubgroup: 16, MaxSubgroup: 32}

	got, stride, err := decodeMatrices(2, list(2, 1, 16, 8, 32, 6, 4, 8, 8, 8), 16, 32)
	require.NoError(t, err)
	require.Equal(t, 20, stride)
	require.Equal(t, []driver.MatrixConfig{f16, i8}, got)

	got, stride, err = decodeMatrices(2, list(2, 1, 16, 8, 32, 16, 32, 6, 4, 8, 8, 8, 32, 32), 16, 32)
	require.NoError(t, err)
	require.Equal(t, 28, stride)
	i8.MinSubgroup = 32
	require.Equal(t, []driver.MatrixConfig{f16, i8}, got)

	got, _, err = decodeMatrices(0, list(), 16, 32)
	require.NoError(t, err)
	require.Empty(t, got)

	for name, words := range map[string][]uint32{
		"component":     {7, 1, 16, 8, 32, 16, 32},
		"result":        {2, 0, 16, 8, 32, 16, 32},
		"a side of 3":   {2, 1, 3, 8, 32, 16, 32},
		"a side of 512": {2, 1, 16, 8, 512, 16, 32},
		"a side of 24":  {2, 1, 16, 24, 16, 16, 32},
	} {
		_, _, err := decodeMatrices(1, list(words...), 16, 32)
		require.ErrorContains(t, err, "unknown form", name)
	}
	_, _, err = decodeMatrices(2, list(2, 1, 16, 8, 32, 16, 32, 2, 1, 8, 8, 8, 64, 64), 16, 32)
	require.ErrorContains(t, err, "unknown form", "subgroups that the adapter does not have")
	_, _, err = decodeMatrices(1000, nil, 16, 32)
	require.ErrorContains(t, err, "at most 64")
}
