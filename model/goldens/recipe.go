package goldens

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// Values fills dst with the values that the recipe gives to a name, from element 0 on:
// splitmix64 from the FNV-1a hash of the name and the seed, 24 bits for each value v in
// [−1, 1), then v·scale + offset with two roundings to float32.
func Values(dst []float32, name string, seed uint64, scale, offset float32) {
	r := newRecipe(name, seed, len(dst), scale, offset)
	for i := range dst {
		dst[i] = r.value(i)
	}
}

// A recipe is an array that is made when it is read: little-endian float32.
type recipe struct {
	base          uint64
	n             int
	scale, offset float32
}

const golden = 0x9E3779B97F4A7C15 // 2⁶⁴ divided by the golden ratio

func newRecipe(name string, seed uint64, n int, scale, offset float32) recipe {
	hash := uint64(0xCBF29CE484222325)
	for i := range len(name) {
		hash = (hash ^ uint64(name[i])) * 0x100000001B3
	}
	return recipe{hash ^ seed*golden, n, scale, offset}
}

// value returns element i.
func (r recipe) value(i int) float32 {
	z := r.base + uint64(i+1)*golden
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	z ^= z >> 31
	v := float32(z>>40)/(1<<23) - 1
	return float32(v*r.scale) + r.offset // the conversion forbids a fused multiply-add
}

// ReadAt implements io.ReaderAt.
func (r recipe) ReadAt(b []byte, at int64) (int, error) {
	if at < 0 {
		return 0, fmt.Errorf("negative offset %d: %w", at, pass.ErrInvalid)
	}
	var word [4]byte
	n := 0
	for size := 4 * int64(r.n); n < len(b) && at < size; {
		binary.LittleEndian.PutUint32(word[:], math.Float32bits(r.value(int(at/4))))
		k := copy(b[n:], word[at%4:])
		n, at = n+k, at+int64(k)
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}
