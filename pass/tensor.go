package pass

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/x448/float16"
)

// A Tensor is a named array in a file or in memory, in row-major order and
// little-endian bytes: where weights come from. It owns nothing; Data must stay
// readable until the call that it is handed to returns.
type Tensor struct {
	Name  string      // for error messages
	Type  DType       // F32, F16, BF16 or Q8_0
	Shape []int       // outermost axis first
	Data  io.ReaderAt // exactly Bytes() bytes from offset 0
}

// Float32s wraps values in memory as a tensor. The values are not copied.
func Float32s(name string, values []float32, shape ...int) Tensor {
	return Tensor{Name: name, Type: F32, Shape: shape, Data: float32Reader(values)}
}

// maxElements is more than any device holds, and leaves room to count bytes.
const maxElements = 1 << 40

// Len returns the number of elements, or -1 if an axis is negative or the product
// does not fit an int.
func (t Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		if d < 0 || (d > 0 && n > math.MaxInt/d) {
			return -1
		}
		n *= d
	}
	return n
}

// Bytes returns the size of the data, or -1 if the shape or type is not usable.
func (t Tensor) Bytes() int64 {
	n := t.Len()
	if n < 0 {
		return -1
	}
	if t.Type == Q8_0 && (len(t.Shape) == 0 || t.Shape[len(t.Shape)-1]%Q8Block != 0) {
		return -1
	}
	return t.Type.Bytes(n)
}

// Check returns an error wrapping ErrInvalid unless the tensor has a type of
// weights, a usable shape of at most 2^40 elements, and data.
func (t Tensor) Check() error {
	switch t.Type {
	case F32, F16, BF16, Q8_0:
	default:
		return fmt.Errorf("pass: tensor %q: type %v: want F32, F16, BF16 or Q8_0: %w", t.Name, t.Type, ErrInvalid)
	}
	if t.Bytes() < 0 {
		return fmt.Errorf("pass: tensor %q: shape %v does not fit type %v: %w", t.Name, t.Shape, t.Type, ErrInvalid)
	}
	if int64(t.Len()) > maxElements {
		return fmt.Errorf("pass: tensor %q: %d elements, want at most %d: %w", t.Name, t.Len(), int64(maxElements), ErrInvalid)
	}
	if t.Data == nil {
		return fmt.Errorf("pass: tensor %q: no data: %w", t.Name, ErrInvalid)
	}
	return nil
}

// Float32s decodes the whole tensor. Nothing is allocated unless its data are there.
func (t Tensor) Float32s() ([]float32, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	// A shape that lies should cost nothing: first see whether the data are there.
	if size := t.Bytes(); size > 0 {
		if err := readFull(t.Data, make([]byte, 1), size-1); err != nil {
			return nil, fmt.Errorf("pass: tensor %q: %w", t.Name, err)
		}
	}
	values := make([]float32, t.Len())
	if err := t.Decode(values, 0); err != nil {
		return nil, err
	}
	return values, nil
}

// Decode fills dst with the elements from the given one on. For Q8_0 both from and
// len(dst) must be multiples of [Q8Block].
func (t Tensor) Decode(dst []float32, from int) error {
	if err := t.Check(); err != nil {
		return err
	}
	n := t.Len()
	if from < 0 || from > n || len(dst) > n-from {
		return fmt.Errorf("pass: tensor %q: elements %d to %d of %d: %w", t.Name, from, from+len(dst), n, ErrInvalid)
	}
	if t.Type == Q8_0 && (from%Q8Block != 0 || len(dst)%Q8Block != 0) {
		return fmt.Errorf("pass: tensor %q: elements %d to %d are not whole Q8_0 blocks: %w", t.Name, from, from+len(dst), ErrInvalid)
	}
	const step = 32 << 10 // elements decoded at a time
	raw := make([]byte, t.Type.Bytes(min(step, (len(dst)+Q8Block-1)/Q8Block*Q8Block)))
	for len(dst) > 0 {
		k := min(step, len(dst))
		b := raw[:t.Type.Bytes(k)]
		if err := readFull(t.Data, b, t.Type.Bytes(from)); err != nil {
			return fmt.Errorf("pass: tensor %q: %w", t.Name, err)
		}
		decode(dst[:k], b, t.Type)
		dst, from = dst[k:], from+k
	}
	return nil
}

func readFull(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read %d bytes at %d: %w", len(b), at, err)
}

func decode(dst []float32, b []byte, t DType) {
	switch t {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case F16:
		for i := range dst {
			dst[i] = float16.Frombits(binary.LittleEndian.Uint16(b[2*i:])).Float32()
		}
	case BF16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16)
		}
	case Q8_0:
		for ; len(dst) > 0; dst, b = dst[Q8Block:], b[Q8BlockBytes:] {
			scale := float16.Frombits(binary.LittleEndian.Uint16(b)).Float32()
			for i := range Q8Block {
				dst[i] = scale * float32(int8(b[2+i]))
			}
		}
	}
}

// float32Reader serves float32 values as little-endian bytes on any host.
type float32Reader []float32

func (r float32Reader) ReadAt(b []byte, at int64) (int, error) {
	if at < 0 {
		return 0, fmt.Errorf("negative offset %d: %w", at, ErrInvalid)
	}
	size := 4 * int64(len(r))
	n := 0
	var word [4]byte
	for n < len(b) && at < size {
		binary.LittleEndian.PutUint32(word[:], math.Float32bits(r[at/4]))
		k := copy(b[n:], word[at%4:])
		n, at = n+k, at+int64(k)
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}
