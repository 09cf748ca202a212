package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// A DType is an element type, by the name it has in files. Files may hold types that
// are not among the constants; those can be listed but not read.
type DType string

// The element types that can be read.
const (
	F64  DType = "F64"
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
	I64  DType = "I64"
	I32  DType = "I32"
	I16  DType = "I16"
	I8   DType = "I8"
	U64  DType = "U64"
	U32  DType = "U32"
	U16  DType = "U16"
	U8   DType = "U8"
	Bool DType = "BOOL" // one byte, 0 or 1
)

// size returns the bytes of an element, or 0 for a type that is not known.
func (t DType) size() int {
	switch t {
	case F64, I64, U64:
		return 8
	case F32, I32, U32:
		return 4
	case F16, BF16, I16, U16:
		return 2
	case I8, U8, Bool:
		return 1
	}
	return 0
}

// pass returns the type's counterpart, if there is one.
func (t DType) pass() (pass.DType, bool) {
	switch t {
	case F32:
		return pass.F32, true
	case F16:
		return pass.F16, true
	case BF16:
		return pass.BF16, true
	case U32:
		return pass.U32, true
	}
	return 0, false
}

// A Tensor is a tensor of a file, or one to be written. It owns nothing.
type Tensor struct {
	Name  string
	DType DType
	Shape []int       // outermost axis first; none for a scalar
	Data  io.ReaderAt // the elements in row-major order, little-endian, from offset 0
}

// Of returns t in the terms of this package.
func Of(t pass.Tensor) Tensor {
	return Tensor{Name: t.Name, DType: DType(t.Type.String()), Shape: t.Shape, Data: t.Data}
}

// Int64s makes a tensor of values, which it copies.
func Int64s(name string, values []int64, shape ...int) Tensor {
	b := make(memory, 0, 8*len(values))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return Tensor{Name: name, DType: I64, Shape: shape, Data: b}
}

// Uint32s makes a tensor of values, which it copies.
func Uint32s(name string, values []uint32, shape ...int) Tensor {
	b := make(memory, 0, 4*len(values))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return Tensor{Name: name, DType: U32, Shape: shape, Data: b}
}

// memory is bytes as an io.ReaderAt.
type memory []byte

func (m memory) ReadAt(b []byte, at int64) (int, error) {
	n := 0
	if at >= 0 && at < int64(len(m)) {
		n = copy(b, m[at:])
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Len returns the number of elements, or -1 if the shape is not usable.
func (t Tensor) Len() int { return pass.Tensor{Shape: t.Shape}.Len() }

// Bytes returns the size of the data, or -1 if the shape is not usable or the type is
// not known.
func (t Tensor) Bytes() int64 {
	n, size := int64(t.Len()), int64(t.DType.size())
	if n < 0 || size == 0 || n > math.MaxInt64/size {
		return -1
	}
	return n * size
}

// Pass returns the tensor in the terms of package pass. Only F32, F16, BF16 and U32
// have such a form.
func (t Tensor) Pass() (pass.Tensor, error) {
	p, err := t.toPass()
	if err != nil {
		return pass.Tensor{}, fmt.Errorf("safetensors: %w", err)
	}
	return p, nil
}

func (t Tensor) toPass() (pass.Tensor, error) {
	d, ok := t.DType.pass()
	if !ok {
		return pass.Tensor{}, fmt.Errorf("tensor %.200q: type %.20q: want F32, F16, BF16 or U32: %w", t.Name, string(t.DType), pass.ErrUnsupported)
	}
	return pass.Tensor{Name: t.Name, Type: d, Shape: t.Shape, Data: t.Data}, nil
}

// Int64s reads a tensor of any integer type or of BOOL. A U64 value beyond the range is
// an error.
func (t Tensor) Int64s() ([]int64, error) {
	v, err := t.readInts()
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return v, nil
}

func (t Tensor) readInts() ([]int64, error) {
	order := binary.LittleEndian
	switch t.DType {
	case I64, I32, I16, I8, U64, U32, U16, U8, Bool:
	default:
		return nil, fmt.Errorf("tensor %.200q: type %.20q: want integers: %w", t.Name, string(t.DType), pass.ErrUnsupported)
	}
	return read(t, func(b []byte) (int64, error) {
		switch t.DType {
		case I64:
			return int64(order.Uint64(b)), nil
		case I32:
			return int64(int32(order.Uint32(b))), nil
		case I16:
			return int64(int16(order.Uint16(b))), nil
		case I8:
			return int64(int8(b[0])), nil
		case U32:
			return int64(order.Uint32(b)), nil
		case U16:
			return int64(order.Uint16(b)), nil
		case U64:
			v := order.Uint64(b)
			if v > math.MaxInt64 {
				return 0, fmt.Errorf("tensor %.200q: value %d does not fit 64 bits with a sign: %w", t.Name, v, pass.ErrInvalid)
			}
			return int64(v), nil
		}
		return int64(b[0]), nil
	})
}

// Float64s reads a tensor of any float type.
func (t Tensor) Float64s() ([]float64, error) {
	v, err := t.readFloats()
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return v, nil
}

func (t Tensor) readFloats() ([]float64, error) {
	switch t.DType {
	case F64:
		return read(t, func(b []byte) (float64, error) {
			return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
		})
	case F32, F16, BF16:
	default:
		return nil, fmt.Errorf("tensor %.200q: type %.20q: want floats: %w", t.Name, string(t.DType), pass.ErrUnsupported)
	}
	p, err := t.toPass()
	if err != nil {
		return nil, err
	}
	narrow, err := p.Float32s()
	if err != nil {
		return nil, err
	}
	values := make([]float64, len(narrow))
	for i, v := range narrow {
		values[i] = float64(v)
	}
	return values, nil
}

// read converts the elements of t one by one.
func read[T any](t Tensor, convert func([]byte) (T, error)) ([]T, error) {
	if t.Bytes() < 0 || t.Data == nil {
		return nil, fmt.Errorf("tensor %.200q: no data of shape %v: %w", t.Name, t.Shape, pass.ErrInvalid)
	}
	size := t.DType.size()
	values := make([]T, t.Len())
	block := make([]byte, min(64<<10, size*len(values)))
	at := int64(0)
	for i := 0; i < len(values); {
		b := block[:min(len(block), size*(len(values)-i))]
		if err := readAt(t, b, at); err != nil {
			return nil, err
		}
		at += int64(len(b))
		for ; len(b) > 0; b, i = b[size:], i+1 {
			v, err := convert(b[:size])
			if err != nil {
				return nil, err
			}
			values[i] = v
		}
	}
	return values, nil
}

// readAt fills b with the bytes of t from the given one on.
func readAt(t Tensor, b []byte, at int64) error {
	n, err := t.Data.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("tensor %.200q: read %d bytes at %d: %w", t.Name, len(b), at, err)
}
