package pass

import "fmt"

// A DType is the type of the elements of a buffer or of a weight tensor.
type DType uint8

// The element types. Activations are F32; ids, indices and lengths are U32; weights
// are F32, F16, BF16 or Q8_0.
const (
	F32  DType = iota + 1 // IEEE 754 binary32
	F16                   // IEEE 754 binary16
	BF16                  // the upper half of binary32
	U32                   // unsigned 32-bit integer
	Q8_0                  // blocks of 32 along the last axis: one F16 scale, then 32 int8
)

// Geometry of a Q8_0 block: value i is scale·int8[i].
const (
	Q8Block      = 32 // values in a block
	Q8BlockBytes = 34 // bytes of a block
)

// String returns the name of the type as written in this package.
func (t DType) String() string {
	switch t {
	case F32:
		return "F32"
	case F16:
		return "F16"
	case BF16:
		return "BF16"
	case U32:
		return "U32"
	case Q8_0:
		return "Q8_0"
	}
	return fmt.Sprintf("DType(%d)", uint8(t))
}

// ParseDType returns the type of the given name, as [DType.String] writes it.
func ParseDType(s string) (DType, error) {
	for _, t := range []DType{F32, F16, BF16, U32, Q8_0} {
		if t.String() == s {
			return t, nil
		}
	}
	return 0, fmt.Errorf("pass: element type %q: want F32, F16, BF16, U32 or Q8_0: %w", s, ErrInvalid)
}

// Bytes returns the size of n elements, or -1 if n is negative, n elements do not
// fill whole blocks of the type, or the size does not fit an int64.
func (t DType) Bytes(n int) int64 {
	const most = 1<<63 - 1
	if n < 0 {
		return -1
	}
	switch t {
	case F32, U32:
		if int64(n) > most/4 {
			return -1
		}
		return 4 * int64(n)
	case F16, BF16:
		if int64(n) > most/2 {
			return -1
		}
		return 2 * int64(n)
	case Q8_0:
		if n%Q8Block != 0 || int64(n)/Q8Block > most/Q8BlockBytes {
			return -1
		}
		return int64(n) / Q8Block * Q8BlockBytes
	}
	return -1
}
