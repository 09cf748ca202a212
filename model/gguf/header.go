package gguf

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"slices"

	"github.com/tandem-gpu/tandem/pass"
)

const (
	magic            = "GGUF"
	alignmentKey     = "general.alignment"
	defaultAlignment = 32
	maxAlignment     = 1 << 20
	maxAxes          = 4
)

// Least bytes that a value with its key, and the description of a tensor, take.
const (
	leastValue  = 8 + 4 + 1
	leastTensor = 8 + 4 + 4 + 8
)

// A placed tensor is one with the place of its data.
type placed struct {
	Tensor
	offset uint64 // from the beginning of the data
}

// parse reads and checks the header.
func parse(r io.ReaderAt, size int64) (*File, error) {
	if r == nil {
		return nil, fmt.Errorf("want an input, given nil: %w", pass.ErrInvalid)
	}
	d := newDecoder(r, size)
	version, err := readVersion(d)
	if err != nil {
		return nil, err
	}
	tensors, err := d.count("tensors", leastTensor)
	if err != nil {
		return nil, err
	}
	values, err := d.count("metadata", leastValue)
	if err != nil {
		return nil, err
	}
	f := &File{version: version, metadata: Metadata{}, tensors: map[string]Tensor{}}
	for i := range values {
		if err := f.addValue(d); err != nil {
			return nil, fmt.Errorf("metadata %d of %d: %w", i, values, err)
		}
	}
	alignment, err := f.metadata.alignment()
	if err != nil {
		return nil, err
	}
	var all []placed
	for i := range tensors {
		t, err := readTensor(d)
		if err != nil {
			return nil, fmt.Errorf("tensor %d of %d: %w", i, tensors, err)
		}
		all = append(all, t)
	}
	begin := min(size, (d.at+alignment-1)/alignment*alignment)
	if err := f.place(all, io.NewSectionReader(r, begin, size-begin), alignment); err != nil {
		return nil, err
	}
	f.names = slices.Sorted(maps.Keys(f.tensors))
	return f, nil
}

func readVersion(d *decoder) (int, error) {
	var b [8]byte
	if d.size < int64(len(b)) {
		return 0, fmt.Errorf("%d bytes, want at least %d: %w", d.size, len(b), pass.ErrInvalid)
	}
	if err := d.full(b[:]); err != nil {
		return 0, fmt.Errorf("read the header: %w", err)
	}
	d.at = int64(len(b))
	version := binary.LittleEndian.Uint32(b[4:])
	swapped := bits.ReverseBytes32(version)
	switch m := string(b[:4]); {
	case m == "FUGG", m == magic && swapped >= 1 && swapped <= 3:
		return 0, fmt.Errorf("a big-endian file: want little-endian: %w", pass.ErrUnsupported)
	case m != magic:
		return 0, fmt.Errorf("begins with %q, want %q: no GGUF file: %w", m, magic, pass.ErrInvalid)
	case version != 2 && version != 3:
		return 0, fmt.Errorf("version %d: want 2 or 3: %w", version, pass.ErrUnsupported)
	}
	return int(version), nil
}

// addValue reads a key and its value.
func (f *File) addValue(d *decoder) error {
	key, err := d.text(maxName)
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	if f.metadata.Has(key) {
		return fmt.Errorf("key %.200q comes twice: %w", key, pass.ErrInvalid)
	}
	t, err := d.uint32()
	if err != nil {
		return fmt.Errorf("key %.200q: %w", key, err)
	}
	v, err := d.value(valueType(t), 0)
	if err != nil {
		return fmt.Errorf("key %.200q: %w", key, err)
	}
	f.metadata[key] = v
	return nil
}

// alignment returns the alignment of the tensors.
func (m Metadata) alignment() (int64, error) {
	v, ok := m[alignmentKey]
	if !ok {
		return defaultAlignment, nil
	}
	n, ok := v.(uint32)
	if !ok {
		return 0, fmt.Errorf("key %q: want a uint32, given %s: %w", alignmentKey, typeOf(v), pass.ErrInvalid)
	}
	if bits.OnesCount32(n) != 1 || n > maxAlignment {
		return 0, fmt.Errorf("key %q: want a power of two and at most %d, given %d: %w", alignmentKey, maxAlignment, n, pass.ErrInvalid)
	}
	return int64(n), nil
}

// readTensor reads the description of a tensor.
func readTensor(d *decoder) (placed, error) {
	var t placed
	var err error
	if t.Name, err = d.text(maxName); err != nil {
		return t, fmt.Errorf("name: %w", err)
	}
	bad := func(what string, err error) (placed, error) {
		return placed{}, fmt.Errorf("%.200q: %s: %w", t.Name, what, err)
	}
	axes, err := d.uint32()
	if err != nil {
		return bad("axes", err)
	}
	if axes > maxAxes {
		return bad(fmt.Sprintf("%d axes, want at most %d", axes, maxAxes), pass.ErrInvalid)
	}
	t.Shape = make([]int, axes)
	for i := range t.Shape {
		n, err := d.uint64()
		if err != nil {
			return bad("shape", err)
		}
		if n > 1<<63-1 || int64(int(n)) != int64(n) {
			return bad(fmt.Sprintf("axis of %d", n), pass.ErrInvalid)
		}
		t.Shape[len(t.Shape)-1-i] = int(n)
	}
	typ, err := d.uint32()
	if err != nil {
		return bad("type", err)
	}
	t.Type = Type(typ)
	if t.offset, err = d.uint64(); err != nil {
		return bad("offset", err)
	}
	return t, nil
}

// place checks that the tensors lie within the data, and apart from each other.
func (f *File) place(all []placed, data *io.SectionReader, alignment int64) error {
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.offset, b.offset) })
	end, last := uint64(0), ""
	for _, t := range all {
		n, known := t.bytes()
		switch {
		case n < 0:
			return fmt.Errorf("tensor %.200q: shape %v does not fit type %v: %w", t.Name, t.Shape, t.Type, pass.ErrInvalid)
		case t.offset%uint64(alignment) != 0:
			return fmt.Errorf("tensor %.200q: at %d: want a multiple of the alignment %d: %w", t.Name, t.offset, alignment, pass.ErrInvalid)
		case t.offset > uint64(data.Size()) || n > data.Size()-int64(t.offset):
			return fmt.Errorf("tensor %.200q: %d bytes of %v at %d, where the data have %d: is the file cut? %w", t.Name, n, t.Type, t.offset, data.Size(), pass.ErrInvalid)
		case t.offset < end:
			return fmt.Errorf("tensor %.200q: at %d, before the end of %.200q at %d: %w", t.Name, t.offset, last, end, pass.ErrInvalid)
		}
		if _, ok := f.tensors[t.Name]; ok {
			return fmt.Errorf("tensor %.200q comes twice: %w", t.Name, pass.ErrInvalid)
		}
		if known {
			t.Data = io.NewSectionReader(data, int64(t.offset), n)
		}
		if end = t.offset + uint64(n); n > 0 {
			last = t.Name
		}
		f.tensors[t.Name] = t.Tensor
	}
	return nil
}
