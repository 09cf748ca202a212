package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/tandem-gpu/tandem/pass"
)

const (
	maxHeader = 512 << 20 // bytes of metadata and descriptions of tensors; vocabularies have some 10 MB
	maxName   = 65535     // bytes of a key or of the name of a tensor, as the format says
	maxDepth  = 8         // of arrays in arrays
	step      = 16 << 10  // elements read at a time, so that a size that lies costs little
)

// A valueType is the type of a value, by its number in files.
type valueType uint32

const (
	typeUint8 valueType = iota
	typeInt8
	typeUint16
	typeInt16
	typeUint32
	typeInt32
	typeFloat32
	typeBool
	typeString
	typeArray
	typeUint64
	typeInt64
	typeFloat64
)

// A decoder reads the header from its begin on. What it is asked for must fit what is
// left.
type decoder struct {
	r    *bufio.Reader
	size int64 // of all that it may read
	at   int64
	word [8]byte
}

func newDecoder(r io.ReaderAt, size int64) *decoder {
	size = min(size, maxHeader)
	return &decoder{r: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 64<<10), size: size}
}

// take accounts for n elements of so many bytes.
func (d *decoder) take(n uint64, bytes int64) error {
	if left := d.size - d.at; n > uint64(left/bytes) {
		if bytes == 1 {
			return fmt.Errorf("%d bytes at %d, where %d are left: %w", n, d.at, left, pass.ErrInvalid)
		}
		return fmt.Errorf("%d × %d bytes at %d, where %d are left: %w", n, bytes, d.at, left, pass.ErrInvalid)
	}
	d.at += int64(n) * bytes
	return nil
}

func (d *decoder) full(b []byte) error {
	if _, err := io.ReadFull(d.r, b); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}

func (d *decoder) uint32() (uint32, error) {
	if err := d.take(1, 4); err != nil {
		return 0, err
	}
	err := d.full(d.word[:4])
	return binary.LittleEndian.Uint32(d.word[:]), err
}

func (d *decoder) uint64() (uint64, error) {
	if err := d.take(1, 8); err != nil {
		return 0, err
	}
	err := d.full(d.word[:8])
	return binary.LittleEndian.Uint64(d.word[:]), err
}

// count reads the number of things that take at least so many bytes each.
func (d *decoder) count(what string, bytes int64) (int, error) {
	n, err := d.uint64()
	if err != nil {
		return 0, fmt.Errorf("number of %s: %w", what, err)
	}
	if left := d.size - d.at; n > uint64(left/bytes) {
		return 0, fmt.Errorf("%d %s, where %d bytes are left: %w", n, what, left, pass.ErrInvalid)
	}
	return int(n), nil
}

// text reads a string of at most the given length.
func (d *decoder) text(longest uint64) (string, error) {
	n, err := d.uint64()
	if err != nil {
		return "", err
	}
	if n > longest {
		return "", fmt.Errorf("string of %d bytes, want at most %d: %w", n, longest, pass.ErrInvalid)
	}
	if err := d.take(n, 1); err != nil {
		return "", fmt.Errorf("string of %w", err)
	}
	if n <= step {
		b := make([]byte, n)
		err := d.full(b)
		return string(b), err
	}
	var b strings.Builder
	if _, err := io.CopyN(&b, d.r, int64(n)); err != nil {
		return "", fmt.Errorf("string of %d bytes: %w", n, io.ErrUnexpectedEOF)
	}
	return b.String(), nil
}

// value reads a value that is no array, or at the given depth of arrays one that is.
func (d *decoder) value(t valueType, depth int) (any, error) {
	switch t {
	case typeString:
		return d.text(maxHeader)
	case typeArray:
		return d.array(depth + 1)
	}
	v, err := d.elements(t, 1, depth)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case []uint8:
		return v[0], nil
	case []int8:
		return v[0], nil
	case []uint16:
		return v[0], nil
	case []int16:
		return v[0], nil
	case []uint32:
		return v[0], nil
	case []int32:
		return v[0], nil
	case []uint64:
		return v[0], nil
	case []int64:
		return v[0], nil
	case []float32:
		return v[0], nil
	case []float64:
		return v[0], nil
	case []bool:
		return v[0], nil
	}
	return nil, fmt.Errorf("value of type %d: %w", t, pass.ErrUnsupported)
}

func (d *decoder) array(depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("arrays within arrays: want at most %d: %w", maxDepth, pass.ErrInvalid)
	}
	t, err := d.uint32()
	if err != nil {
		return nil, err
	}
	n, err := d.count("elements of an array", 1)
	if err != nil {
		return nil, err
	}
	return d.elements(valueType(t), n, depth)
}

// elements reads n elements of a type, as a slice.
func (d *decoder) elements(t valueType, n, depth int) (any, error) {
	switch t {
	case typeUint8:
		return numbers[uint8](d, n)
	case typeInt8:
		return numbers[int8](d, n)
	case typeUint16:
		return numbers[uint16](d, n)
	case typeInt16:
		return numbers[int16](d, n)
	case typeUint32:
		return numbers[uint32](d, n)
	case typeInt32:
		return numbers[int32](d, n)
	case typeUint64:
		return numbers[uint64](d, n)
	case typeInt64:
		return numbers[int64](d, n)
	case typeFloat32:
		return numbers[float32](d, n)
	case typeFloat64:
		return numbers[float64](d, n)
	case typeBool:
		return d.bools(n)
	case typeString:
		return several(d, n, 8, func() (string, error) { return d.text(maxHeader) })
	case typeArray:
		return several(d, n, 12, func() (any, error) { return d.array(depth + 1) })
	}
	return nil, fmt.Errorf("value type %d: want 0 to %d: %w", t, typeFloat64, pass.ErrInvalid)
}

func (d *decoder) bools(n int) (any, error) {
	bytes, err := numbers[uint8](d, n)
	if err != nil {
		return nil, err
	}
	v := make([]bool, n)
	for i, b := range bytes {
		if b > 1 {
			return nil, fmt.Errorf("bool: want 0 or 1, given %d: %w", b, pass.ErrInvalid)
		}
		v[i] = b == 1
	}
	return v, nil
}

type number interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

func numbers[T number](d *decoder, n int) ([]T, error) {
	var zero T
	if err := d.take(uint64(n), int64(binary.Size(zero))); err != nil {
		return nil, err
	}
	all := make([]T, 0, min(n, step))
	for len(all) < n {
		from, k := len(all), min(step, n-len(all))
		all = append(all, make([]T, k)...)
		if err := binary.Read(d.r, binary.LittleEndian, all[from:]); err != nil {
			return nil, io.ErrUnexpectedEOF
		}
	}
	return all, nil
}

// several reads n things of at least so many bytes, one by one.
func several[T any](d *decoder, n int, bytes int64, read func() (T, error)) ([]T, error) {
	if left := d.size - d.at; int64(n) > left/bytes {
		return nil, fmt.Errorf("array of %d, where %d bytes are left: %w", n, left, pass.ErrInvalid)
	}
	all := make([]T, 0, min(n, step))
	for i := range n {
		v, err := read()
		if err != nil {
			return nil, fmt.Errorf("element %d of %d: %w", i, n, err)
		}
		all = append(all, v)
	}
	return all, nil
}
