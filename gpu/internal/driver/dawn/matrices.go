package dawn

import (
	"encoding/binary"
	"fmt"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
)

// The sizes that an entry of the list of matrix shapes has had: component, result, M, N
// and K, from September 2026 on followed by the least and the largest subgroup.
var matrixStrides = [...]int{20, 28}

const maxMatrices = 64

// componentNames are the components by their number in the library.
var componentNames = [...]driver.Component{1: driver.F32, 2: driver.F16, 3: driver.U32, 4: driver.I32, 5: driver.U8, 6: driver.I8}

// decodeMatrices reads the library's list of count shapes. What an entry's size is, the
// library does not say: it is the first one with which all entries make sense. read
// returns the first bytes of the list; no more than an entry size's worth of each entry
// is asked for. low and high bound the adapter's subgroups.
func decodeMatrices(count int, read func(int) []byte, low, high uint32) ([]driver.MatrixConfig, int, error) {
	if count > maxMatrices {
		return nil, 0, fmt.Errorf("%d matrix shapes, want at most %d", count, maxMatrices)
	}
	for _, stride := range matrixStrides {
		data := read(count * stride)
		list := make([]driver.MatrixConfig, 0, count)
		for len(data) > 0 {
			c, ok := decodeMatrix(data[:stride], low, high)
			if !ok {
				break
			}
			list, data = append(list, c), data[stride:]
		}
		if len(list) == count {
			return list, stride, nil
		}
	}
	return nil, 0, fmt.Errorf("%d matrix shapes in an unknown form", count)
}

func decodeMatrix(entry []byte, low, high uint32) (driver.MatrixConfig, bool) {
	word := func(i int) uint32 { return binary.NativeEndian.Uint32(entry[4*i:]) }
	component, result := word(0), word(1)
	c := driver.MatrixConfig{M: word(2), N: word(3), K: word(4), MinSubgroup: low, MaxSubgroup: high}
	if component < 1 || component > 6 || result < 1 || result > 6 || !size(c.M) || !size(c.N) || !size(c.K) {
		return c, false
	}
	c.Component, c.Result = componentNames[component], componentNames[result]
	if len(entry) > 20 {
		c.MinSubgroup, c.MaxSubgroup = word(5), word(6)
	}
	return c, c.MinSubgroup >= low && c.MinSubgroup <= c.MaxSubgroup && c.MaxSubgroup <= high
}

// size reports whether matrix units have sides of n elements.
func size(n uint32) bool { return n >= 4 && n <= 256 && n&(n-1) == 0 }
