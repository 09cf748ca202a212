package gguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/tandem-gpu/tandem/pass"
)

// Write writes tensors and metadata as one file of version 3. The same content gives the
// same bytes: metadata are sorted by key, tensors stand in the order given. The values
// must be of the types that [Metadata] names; general.alignment, a uint32, is followed
// if it is there. The tensors must be of types that can be loaded. Their Data are read
// once, in pieces.
func Write(w io.Writer, tensors []Tensor, metadata Metadata) error {
	if err := write(w, tensors, metadata); err != nil {
		return fmt.Errorf("gguf: write: %w", err)
	}
	return nil
}

func write(w io.Writer, tensors []Tensor, metadata Metadata) error {
	if w == nil {
		return fmt.Errorf("want an output, given nil: %w", pass.ErrInvalid)
	}
	alignment, err := metadata.alignment()
	if err != nil {
		return err
	}
	var e encoder
	e.WriteString(magic)
	e.put(uint32(3), uint64(len(tensors)), uint64(len(metadata)))
	for _, key := range metadata.Keys() {
		v := metadata[key]
		t, err := typeNumber(v)
		if err != nil {
			return fmt.Errorf("key %.200q: %w", key, err)
		}
		if len(key) > maxName {
			return fmt.Errorf("key of %d bytes, want at most %d: %w", len(key), maxName, pass.ErrInvalid)
		}
		e.text(key)
		e.put(t)
		if err := e.value(v, 0); err != nil {
			return fmt.Errorf("key %.200q: %w", key, err)
		}
	}
	if err := e.tensors(tensors, alignment); err != nil {
		return err
	}
	e.Write(make([]byte, padding(int64(e.Len()), alignment)))
	if _, err := w.Write(e.Bytes()); err != nil {
		return err
	}
	for _, t := range tensors {
		if err := copyData(w, t, alignment); err != nil {
			return err
		}
	}
	return nil
}

func padding(n, alignment int64) int64 { return (alignment - n%alignment) % alignment }

// copyData writes the data of a tensor, and zeros up to the next one.
func copyData(w io.Writer, t Tensor, alignment int64) error {
	size, _ := t.bytes()
	n, err := io.Copy(w, io.NewSectionReader(t.Data, 0, size))
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("tensor %.200q: byte %d of %d: %w", t.Name, n, size, err)
	}
	_, err = w.Write(make([]byte, padding(size, alignment)))
	return err
}

// An encoder holds the header.
type encoder struct{ bytes.Buffer }

// put appends numbers. A Buffer never fails.
func (e *encoder) put(numbers ...any) {
	for _, v := range numbers {
		binary.Write(&e.Buffer, binary.LittleEndian, v)
	}
}

func (e *encoder) text(s string) {
	e.put(uint64(len(s)))
	e.WriteString(s)
}

// typeNumber returns the type of a value, arrays included.
func typeNumber(v any) (valueType, error) {
	switch v.(type) {
	case uint8:
		return typeUint8, nil
	case int8:
		return typeInt8, nil
	case uint16:
		return typeUint16, nil
	case int16:
		return typeInt16, nil
	case uint32:
		return typeUint32, nil
	case int32:
		return typeInt32, nil
	case uint64:
		return typeUint64, nil
	case int64:
		return typeInt64, nil
	case float32:
		return typeFloat32, nil
	case float64:
		return typeFloat64, nil
	case bool:
		return typeBool, nil
	case string:
		return typeString, nil
	}
	if _, _, ok := elementType(v); ok {
		return typeArray, nil
	}
	return 0, fmt.Errorf("value of type %T: %w", v, pass.ErrUnsupported)
}

// elementType returns the type of the elements of an array, and how many it has.
func elementType(v any) (valueType, int, bool) {
	switch v := v.(type) {
	case []uint8:
		return typeUint8, len(v), true
	case []int8:
		return typeInt8, len(v), true
	case []uint16:
		return typeUint16, len(v), true
	case []int16:
		return typeInt16, len(v), true
	case []uint32:
		return typeUint32, len(v), true
	case []int32:
		return typeInt32, len(v), true
	case []uint64:
		return typeUint64, len(v), true
	case []int64:
		return typeInt64, len(v), true
	case []float32:
		return typeFloat32, len(v), true
	case []float64:
		return typeFloat64, len(v), true
	case []bool:
		return typeBool, len(v), true
	case []string:
		return typeString, len(v), true
	case []any:
		return typeArray, len(v), true
	}
	return 0, 0, false
}

// value appends a value of one of the types, at the given depth of arrays.
func (e *encoder) value(v any, depth int) error {
	if s, ok := v.(string); ok {
		e.text(s)
		return nil
	}
	t, n, ok := elementType(v)
	if !ok {
		e.put(v)
		return nil
	}
	if depth++; depth > maxDepth {
		return fmt.Errorf("arrays within arrays: want at most %d: %w", maxDepth, pass.ErrInvalid)
	}
	e.put(t, uint64(n))
	switch v := v.(type) {
	case []string:
		for _, s := range v {
			e.text(s)
		}
	case []any:
		for i, a := range v {
			if _, _, ok := elementType(a); !ok {
				return fmt.Errorf("element %d of an array of arrays: value of type %T: %w", i, a, pass.ErrUnsupported)
			}
			if err := e.value(a, depth); err != nil {
				return err
			}
		}
	default:
		e.put(v)
	}
	return nil
}

// tensors appends the descriptions.
func (e *encoder) tensors(tensors []Tensor, alignment int64) error {
	seen := map[string]bool{}
	at := int64(0)
	for _, t := range tensors {
		size, known := t.bytes()
		switch {
		case !known:
			return fmt.Errorf("tensor %.200q: type %v: %w", t.Name, t.Type, pass.ErrUnsupported)
		case size < 0 || len(t.Shape) > maxAxes:
			return fmt.Errorf("tensor %.200q: shape %v does not fit type %v: %w", t.Name, t.Shape, t.Type, pass.ErrInvalid)
		case t.Data == nil || len(t.Name) > maxName || seen[t.Name]:
			return fmt.Errorf("tensor %.200q: want data and a name that comes once: %w", t.Name, pass.ErrInvalid)
		}
		seen[t.Name] = true
		e.text(t.Name)
		e.put(uint32(len(t.Shape)))
		for i := len(t.Shape) - 1; i >= 0; i-- {
			e.put(uint64(t.Shape[i]))
		}
		e.put(t.Type, uint64(at))
		if at += size; at < 0 || at+padding(at, alignment) < 0 {
			return fmt.Errorf("tensor %.200q: no place for %d bytes: %w", t.Name, size, pass.ErrInvalid)
		}
		at += padding(at, alignment)
	}
	return nil
}
