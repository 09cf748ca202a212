package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tandem-gpu/tandem/pass"
)

// maxHeader is the largest header, as in other implementations.
const maxHeader = 100 << 20

// metadataKey is the key in the header that is no tensor.
const metadataKey = "__metadata__"

// An entry is what the header says about a tensor.
type entry struct {
	DType   DType   `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// readHeader checks the file in r and returns its tensors, in order of their data, and
// its metadata.
func readHeader(r io.ReaderAt, size int64) ([]Tensor, map[string]string, error) {
	if r == nil {
		return nil, nil, fmt.Errorf("want an input, given nil: %w", pass.ErrInvalid)
	}
	if size < 8 {
		return nil, nil, fmt.Errorf("%d bytes, want at least 8: %w", size, pass.ErrInvalid)
	}
	var b [8]byte
	if n, err := r.ReadAt(b[:], 0); n < len(b) {
		return nil, nil, fmt.Errorf("read the length of the header: %w", unexpected(err))
	}
	n := binary.LittleEndian.Uint64(b[:])
	switch {
	case n > maxHeader:
		return nil, nil, fmt.Errorf("header of %d bytes, want at most %d: no safetensors file? %w", n, maxHeader, pass.ErrInvalid)
	case int64(n) > size-8:
		return nil, nil, fmt.Errorf("header of %d bytes in a file of %d: %w", n, size, pass.ErrInvalid)
	}
	// ReadAll grows with what arrives, so that a size that lies costs nothing.
	text, err := io.ReadAll(io.NewSectionReader(r, 8, int64(n)))
	if err == nil && uint64(len(text)) < n {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the header: %w", err)
	}
	names, entries, metadata, err := parseHeader(text)
	if err != nil {
		return nil, nil, err
	}
	tensors, err := place(io.NewSectionReader(r, 8+int64(n), size-8-int64(n)), names, entries)
	return tensors, metadata, err
}

func unexpected(err error) error {
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// parseHeader goes through the JSON by hand at the outer level, where the name of a
// tensor must not come twice.
func parseHeader(text []byte) (names []string, entries []entry, metadata map[string]string, err error) {
	if len(text) == 0 || text[0] != '{' {
		return nil, nil, nil, fmt.Errorf("header does not begin with {: %w", pass.ErrInvalid)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	bad := func(what string, err error) error {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("header: %s: %w: %w", what, err, pass.ErrInvalid)
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, nil, bad("begin", err)
	}
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, nil, nil, bad("name of a tensor", err)
		}
		if seen[name] {
			return nil, nil, nil, fmt.Errorf("header: %.200q comes twice: %w", name, pass.ErrInvalid)
		}
		seen[name] = true
		if name == metadataKey {
			if err := d.Decode(&metadata); err != nil {
				return nil, nil, nil, bad("metadata", err)
			}
			continue
		}
		var e entry
		if err := d.Decode(&e); err != nil {
			return nil, nil, nil, bad(fmt.Sprintf("tensor %.200q", name), err)
		}
		if e.DType == "" || e.Shape == nil || len(e.Offsets) != 2 {
			return nil, nil, nil, fmt.Errorf("header: tensor %.200q: want dtype, shape and two data_offsets: %w", name, pass.ErrInvalid)
		}
		names, entries = append(names, name), append(entries, e)
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, nil, bad("end", err)
	}
	if rest := text[d.InputOffset():]; len(bytes.Trim(rest, " \t\r\n\x00")) > 0 {
		return nil, nil, nil, fmt.Errorf("header: %.20q after its end: %w", rest, pass.ErrInvalid)
	}
	return names, entries, metadata, nil
}

// place checks that the tensors cover the data exactly.
func place(data *io.SectionReader, names []string, entries []entry) ([]Tensor, error) {
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := entries[a].Offsets, entries[b].Offsets
		return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]), strings.Compare(names[a], names[b]))
	})
	tensors := make([]Tensor, 0, len(names))
	at := int64(0)
	for _, i := range order {
		name, e := names[i], entries[i]
		begin, end := e.Offsets[0], e.Offsets[1]
		t := Tensor{Name: name, DType: e.DType, Shape: e.Shape}
		switch {
		case begin < 0 || end < begin || end > data.Size():
			return nil, fmt.Errorf("tensor %.200q: bytes %d to %d of %d: %w", name, begin, end, data.Size(), pass.ErrInvalid)
		case begin < at:
			return nil, fmt.Errorf("tensor %.200q: overlaps the one before: bytes from %d, want %d: %w", name, begin, at, pass.ErrInvalid)
		case begin > at:
			return nil, fmt.Errorf("tensor %.200q: gap before: bytes from %d, want %d: %w", name, begin, at, pass.ErrInvalid)
		case t.Len() < 0:
			return nil, fmt.Errorf("tensor %.200q: shape %v: %w", name, shape(e.Shape), pass.ErrInvalid)
		case e.DType.size() != 0 && t.Bytes() != end-begin:
			return nil, fmt.Errorf("tensor %.200q: %d bytes, want %d for %s and shape %v: %w",
				name, end-begin, t.Bytes(), e.DType, shape(e.Shape), pass.ErrInvalid)
		}
		at = end
		t.Data = io.NewSectionReader(data, begin, end-begin)
		tensors = append(tensors, t)
	}
	if at != data.Size() {
		return nil, fmt.Errorf("%d bytes after the last tensor: %w", data.Size()-at, pass.ErrInvalid)
	}
	return tensors, nil
}

// shape bounds what is printed of a shape.
func shape(s []int) []int { return s[:min(len(s), 16)] }
