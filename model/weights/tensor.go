package weights

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/tandem-gpu/tandem/pass"
)

// Tensor returns the named tensor, which must have the given shape. Axes of size 1 do not
// count: a point-wise convolution [n][k][1] is a linear layer [n][k]. The result has the
// shape that was asked for. Reading a value of it that is NaN or infinite fails.
func Tensor(src Source, name string, shape ...int) (pass.Tensor, error) {
	t, err := src.Tensor(name)
	if err != nil {
		return pass.Tensor{}, fmt.Errorf("weights: tensor %.200q: want shape %v: %w", name, shape, err)
	}
	if !slices.Equal(squeezed(t.Shape), squeezed(shape)) {
		return pass.Tensor{}, fmt.Errorf("weights: tensor %.200q: want shape %v, given %v: %w", name, shape, t.Shape, pass.ErrInvalid)
	}
	t.Name, t.Shape = name, slices.Clone(shape)
	if err := t.Check(); err != nil {
		return pass.Tensor{}, fmt.Errorf("weights: %w", err)
	}
	t.Data = &finite{t.Data, t.Type, name}
	return t, nil
}

// Values returns the values of the named tensor, which must have the given shape as for
// [Tensor].
func Values(src Source, name string, shape ...int) ([]float32, error) {
	t, err := Tensor(src, name, shape...)
	if err != nil {
		return nil, err
	}
	values, err := t.Float32s()
	if err != nil {
		return nil, fmt.Errorf("weights: %w", err)
	}
	return values, nil
}

func squeezed(shape []int) []int {
	return slices.DeleteFunc(slices.Clone(shape), func(d int) bool { return d == 1 })
}

// finite reads the elements of a tensor, and fails where one is not finite. Devices read
// tensors once, so that they need no second pass over a large file for it.
type finite struct {
	data io.ReaderAt
	t    pass.DType
	name string
}

func (f *finite) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.data.ReadAt(b, at)
	if n <= 0 || at < 0 {
		return n, err
	}
	unit := unitBytes(f.t)
	end := at + int64(n)
	from := (at + unit - 1) / unit * unit // of the first whole unit
	if from < end {
		if i := notFinite(f.t, b[from-at:n]); i >= 0 {
			return 0, f.fail(from/unit + int64(i))
		}
	}
	// What b begins or ends within is read again, as a whole.
	var whole [pass.Q8BlockBytes]byte
	for i, edge := range [2]int64{at, end} {
		from := edge / unit * unit
		if from == edge || i == 1 && from < at {
			continue
		}
		if k, err := f.data.ReadAt(whole[:unit], from); int64(k) < unit {
			return 0, fmt.Errorf("tensor %.200q: read %d bytes at %d: %w", f.name, unit, from, err)
		}
		if notFinite(f.t, whole[:unit]) >= 0 {
			return 0, f.fail(from / unit)
		}
	}
	return n, err
}

func (f *finite) fail(unit int64) error {
	what := "element"
	if f.t == pass.Q8_0 {
		what = "the scale of block"
	}
	return fmt.Errorf("tensor %.200q: want finite values, given NaN or infinity as %s %d: %w", f.name, what, unit, pass.ErrInvalid)
}

// unitBytes returns the bytes from one floating point number of the type to the next.
func unitBytes(t pass.DType) int64 {
	if t == pass.Q8_0 {
		return pass.Q8BlockBytes
	}
	return t.Bytes(1)
}

// notFinite returns the index of the first unit that is NaN or infinite, all ones in the
// exponent, or −1.
func notFinite(t pass.DType, b []byte) int {
	unit, exponent, at := int(unitBytes(t)), uint16(0x7c00), 0 // F16, and the scale of a block
	mask, top := uint64(0x7c007c007c007c00), uint64(0x8000800080008000)
	switch t {
	case pass.F32: // the exponent lies in the upper half
		exponent, at, mask, top = 0x7f80, 2, 0x7f8000007f800000, 0x8000000080000000
	case pass.BF16:
		exponent, mask = 0x7f80, 0x7f807f807f807f80
	}
	from := 0
	if t != pass.Q8_0 {
		// Eight bytes at a time: adding all ones below the top bit of a lane sets that
		// bit, unless the lane is zero because its exponent is all ones.
		fill := ^top
		for ; from+8 <= len(b); from += 8 {
			lanes := binary.LittleEndian.Uint64(b[from:])&mask ^ mask
			if (lanes+fill)&top != top {
				break
			}
		}
	}
	for i := from; i+unit <= len(b); i += unit {
		if binary.LittleEndian.Uint16(b[i+at:])&exponent == exponent {
			return i / unit
		}
	}
	return -1
}
