package onnx

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/tandem-gpu/tandem/pass"
)

// The values of TensorProto.DataType that are decoded.
const (
	typeFloat    = 1
	typeFloat16  = 10
	typeBFloat16 = 16
)

var typeNames = [...]string{
	"UNDEFINED", "FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "STRING", "BOOL", "FLOAT16", "DOUBLE",
	"UINT32", "UINT64", "COMPLEX64", "COMPLEX128", "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2",
	"FLOAT8E5M2FNUZ", "UINT4", "INT4", "FLOAT4E2M1",
}

// A tensor is a TensorProto.
type tensor struct {
	name     string
	dataType uint64
	shape    []int
	raw      []byte // raw_data
	hasRaw   bool
	floats   []byte // float_data, as little-endian bytes
	halves   []byte // int32_data of 16-bit types, as little-endian bytes
	external bool   // the values lie in another file
	location string // which one
	sparse   bool
}

// parseTensor reads a TensorProto:
//
//	1 dims · 2 data_type · 4 float_data · 5 int32_data · 8 name · 9 raw_data
//	13 external_data · 14 data_location
func parseTensor(message []byte) (*tensor, error) {
	t := &tensor{}
	var ints []field // decoded once the type is known
	err := each(message, func(f field) error {
		switch f.number {
		case 1:
			return f.varints(func(v uint64) { t.shape = append(t.shape, toInt(v)) })
		case 2:
			t.dataType = f.value
			return f.is(wireVarint)
		case 4:
			b, err := f.fixed4(t.floats)
			t.floats = b
			return err
		case 5:
			ints = append(ints, f)
			return nil
		case 8:
			t.name = string(f.bytes)
			return f.is(wireBytes)
		case 9:
			t.raw, t.hasRaw = f.bytes, true
			return f.is(wireBytes)
		case 13:
			t.external = true
			return t.parseExternal(f)
		case 14:
			t.external = t.external || f.value == 1
			return f.is(wireVarint)
		}
		return nil
	})
	if err == nil && (t.dataType == typeFloat16 || t.dataType == typeBFloat16) {
		for _, f := range ints {
			err = f.varints(func(v uint64) { t.halves = binary.LittleEndian.AppendUint16(t.halves, uint16(v)) })
			if err != nil {
				break
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("tensor %.200q: %w", t.name, err)
	}
	return t, nil
}

// parseExternal reads an entry of external_data, a StringStringEntryProto: 1 key ·
// 2 value.
func (t *tensor) parseExternal(entry field) error {
	if err := entry.is(wireBytes); err != nil {
		return err
	}
	key, value := "", ""
	err := each(entry.bytes, func(f field) error {
		switch f.number {
		case 1:
			key = string(f.bytes)
		case 2:
			value = string(f.bytes)
		}
		return nil
	})
	if key == "location" {
		t.location = value
	}
	return err
}

// typeName returns the name of the element type in the ONNX specification.
func (t *tensor) typeName() string {
	if t.dataType < uint64(len(typeNames)) {
		return typeNames[t.dataType]
	}
	return fmt.Sprintf("type %d", t.dataType)
}

// toPass checks the tensor and returns it in the terms of package pass.
func (t *tensor) toPass() (pass.Tensor, error) {
	switch {
	case t.sparse:
		return pass.Tensor{}, fmt.Errorf("tensor %.200q: sparse: %w", t.name, pass.ErrUnsupported)
	case t.external:
		return pass.Tensor{}, fmt.Errorf("tensor %.200q: its values lie in another file (external data, %.200q), which is not read: %w",
			t.name, t.location, pass.ErrUnsupported)
	}
	p := pass.Tensor{Name: t.name, Shape: append([]int{}, t.shape...)}
	var typed []byte
	switch t.dataType {
	case typeFloat:
		p.Type, typed = pass.F32, t.floats
	case typeFloat16:
		p.Type, typed = pass.F16, t.halves
	case typeBFloat16:
		p.Type, typed = pass.BF16, t.halves
	default:
		return pass.Tensor{}, fmt.Errorf("tensor %.200q: type %s: want FLOAT, FLOAT16 or BFLOAT16: %w", t.name, t.typeName(), pass.ErrUnsupported)
	}
	data := typed
	if t.hasRaw {
		if len(typed) > 0 {
			return pass.Tensor{}, fmt.Errorf("tensor %.200q: values both raw and typed: %w", t.name, pass.ErrInvalid)
		}
		data = t.raw
	}
	shape := t.shape[:min(len(t.shape), 16)] // to print
	switch want := p.Bytes(); {
	case want < 0:
		return pass.Tensor{}, fmt.Errorf("tensor %.200q: shape %v: %w", t.name, shape, pass.ErrInvalid)
	case want != int64(len(data)):
		return pass.Tensor{}, fmt.Errorf("tensor %.200q: %d bytes, want %d for %s and shape %v: %w",
			t.name, len(data), want, t.typeName(), shape, pass.ErrInvalid)
	}
	p.Data = bytes.NewReader(data)
	return p, nil
}
