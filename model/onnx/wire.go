package onnx

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// The wire types of the protocol-buffer encoding. 3 and 4, groups, are obsolete and do
// not occur in ONNX.
const (
	wireVarint = 0
	wireFixed8 = 1
	wireBytes  = 2
	wireFixed4 = 5
)

// A field is one field of a message.
type field struct {
	number int
	wire   int
	value  uint64 // of a varint, or the little-endian bits of a fixed-size field
	bytes  []byte // of a wireBytes field: part of the input, not a copy
}

// each calls f with every field of a message, until f fails.
func each(message []byte, f func(field) error) error {
	for b := message; len(b) > 0; {
		at := len(message) - len(b)
		x, n, err := next(b)
		if err != nil {
			return fmt.Errorf("byte %d of %d: %w", at, len(message), err)
		}
		if err := f(x); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// next decodes the first field of b and returns its size.
func next(b []byte) (field, int, error) {
	key, n, err := varint(b)
	if err != nil {
		return field{}, 0, fmt.Errorf("key: %w", err)
	}
	if number := key >> 3; number == 0 || number > 1<<29-1 {
		return field{}, 0, fmt.Errorf("field number %d: %w", number, pass.ErrInvalid)
	}
	f := field{number: int(key >> 3), wire: int(key & 7)}
	b = b[n:]
	short := func(want uint64) error {
		return fmt.Errorf("field %d: %d bytes, want %d: %w", f.number, len(b), want, pass.ErrInvalid)
	}
	switch f.wire {
	case wireVarint:
		v, k, err := varint(b)
		if err != nil {
			return field{}, 0, fmt.Errorf("field %d: %w", f.number, err)
		}
		f.value, n = v, n+k
	case wireFixed8:
		if len(b) < 8 {
			return field{}, 0, short(8)
		}
		f.value, n = binary.LittleEndian.Uint64(b), n+8
	case wireFixed4:
		if len(b) < 4 {
			return field{}, 0, short(4)
		}
		f.value, n = uint64(binary.LittleEndian.Uint32(b)), n+4
	case wireBytes:
		size, k, err := varint(b)
		if err != nil {
			return field{}, 0, fmt.Errorf("field %d: %w", f.number, err)
		}
		b = b[k:]
		if size > uint64(len(b)) {
			return field{}, 0, short(size)
		}
		f.bytes, n = b[:size:size], n+k+int(size)
	default:
		return field{}, 0, fmt.Errorf("field %d: wire type %d: %w", f.number, f.wire, pass.ErrInvalid)
	}
	return f, n, nil
}

// varint decodes a number of 7 bits a byte, the lowest first.
func varint(b []byte) (uint64, int, error) {
	v, n := binary.Uvarint(b)
	switch {
	case n == 0:
		return 0, 0, fmt.Errorf("ends within a number: %w", pass.ErrInvalid)
	case n < 0:
		return 0, 0, fmt.Errorf("number beyond 64 bits: %w", pass.ErrInvalid)
	}
	return v, n, nil
}

// is checks the wire type of a field of which the meaning is known.
func (f field) is(wire int) error {
	if f.wire != wire {
		return fmt.Errorf("field %d: wire type %d, want %d: %w", f.number, f.wire, wire, pass.ErrInvalid)
	}
	return nil
}

// varints calls put with the elements of a repeated integer field, packed or not.
func (f field) varints(put func(uint64)) error {
	if f.wire == wireVarint {
		put(f.value)
		return nil
	}
	if err := f.is(wireBytes); err != nil {
		return err
	}
	for b := f.bytes; len(b) > 0; {
		v, n, err := varint(b)
		if err != nil {
			return fmt.Errorf("field %d: %w", f.number, err)
		}
		put(v)
		b = b[n:]
	}
	return nil
}

// fixed4 appends the elements of a repeated float field, packed or not, to b. Where b is
// empty it may return part of the input.
func (f field) fixed4(b []byte) ([]byte, error) {
	if f.wire == wireFixed4 {
		return binary.LittleEndian.AppendUint32(b, uint32(f.value)), nil
	}
	if err := f.is(wireBytes); err != nil {
		return nil, err
	}
	if len(f.bytes)%4 != 0 {
		return nil, fmt.Errorf("field %d: %d bytes are not whole floats: %w", f.number, len(f.bytes), pass.ErrInvalid)
	}
	if len(b) == 0 {
		return f.bytes, nil // appending to it copies: its capacity is its length
	}
	return append(b, f.bytes...), nil
}

// toInt returns v as an int, or -1 if it is none or negative.
func toInt(v uint64) int {
	if v > math.MaxInt {
		return -1
	}
	return int(v)
}
