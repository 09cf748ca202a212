package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tandem-gpu/tandem/pass"
)

// Write writes tensors and metadata as one file. The same content gives the same bytes:
// metadata are sorted by key, tensors by the size of their elements, largest first, and
// then by name, so that all data are aligned to their type. Names must be different
// from each other and valid UTF-8. The tensors' Data are read once, in pieces. Q8_0 has
// no form in this format: that is an error wrapping pass.ErrUnsupported.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	if err := write(w, tensors, metadata); err != nil {
		return fmt.Errorf("safetensors: write: %w", err)
	}
	return nil
}

func write(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	if w == nil {
		return fmt.Errorf("want an output, given nil: %w", pass.ErrInvalid)
	}
	tensors = slices.Clone(tensors)
	slices.SortStableFunc(tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(b.DType.size(), a.DType.size()), strings.Compare(a.Name, b.Name))
	})
	header, err := encodeHeader(tensors, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	block := make([]byte, 64<<10)
	for _, t := range tensors {
		for at, size := int64(0), t.Bytes(); at < size; {
			b := block[:min(int64(len(block)), size-at)]
			if err := readAt(t, b, at); err != nil {
				return err
			}
			if _, err := w.Write(b); err != nil {
				return err
			}
			at += int64(len(b))
		}
	}
	return nil
}

func encodeHeader(tensors []Tensor, metadata map[string]string) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	comma := "{"
	put := func(key string, value any) error {
		k, err := json.Marshal(key)
		if err != nil {
			return err
		}
		v, err := json.Marshal(value)
		if err != nil {
			return err
		}
		b.WriteString(comma)
		b.Write(k)
		b.WriteByte(':')
		b.Write(v)
		comma = ","
		return nil
	}
	if len(metadata) > 0 {
		for k, v := range metadata {
			if !utf8.ValidString(k) || !utf8.ValidString(v) {
				return nil, fmt.Errorf("metadata %.200q is not UTF-8: %w", k, pass.ErrInvalid)
			}
		}
		if err := put(metadataKey, metadata); err != nil {
			return nil, err
		}
	}
	seen := map[string]bool{}
	at := int64(0)
	for _, t := range tensors {
		size := t.Bytes()
		switch {
		case t.DType.size() == 0:
			return nil, fmt.Errorf("tensor %.200q: type %.20q: %w", t.Name, string(t.DType), pass.ErrUnsupported)
		case size < 0 || at+size < at:
			return nil, fmt.Errorf("tensor %.200q: shape %v: %w", t.Name, shape(t.Shape), pass.ErrInvalid)
		case t.Data == nil:
			return nil, fmt.Errorf("tensor %.200q: no data: %w", t.Name, pass.ErrInvalid)
		case !utf8.ValidString(t.Name) || t.Name == metadataKey:
			return nil, fmt.Errorf("tensor %.200q: name is reserved or not UTF-8: %w", t.Name, pass.ErrInvalid)
		case seen[t.Name]:
			return nil, fmt.Errorf("tensor %.200q comes twice: %w", t.Name, pass.ErrInvalid)
		}
		seen[t.Name] = true
		e := entry{DType: t.DType, Shape: t.Shape, Offsets: []int64{at, at + size}}
		if e.Shape == nil {
			e.Shape = []int{}
		}
		if err := put(t.Name, e); err != nil {
			return nil, err
		}
		at += size
	}
	if comma == "{" {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	header := b.Bytes()
	n := len(header) - 8
	if n > maxHeader {
		return nil, fmt.Errorf("header of %d bytes, want at most %d: %w", n, maxHeader, pass.ErrInvalid)
	}
	binary.LittleEndian.PutUint64(header, uint64(n))
	return header, nil
}
