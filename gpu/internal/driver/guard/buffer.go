package guard

import (
	"fmt"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

const (
	mapUsages     = driver.MapRead | driver.MapWrite
	copyAlignment = 4
)

// String names the buffer in messages.
func (o *Buffer[B]) String() string {
	return fmt.Sprintf("buffer %#x %q of %d bytes (%v)", uint64(o.id), o.Label, o.Size, o.Usage)
}

// CheckBuffer says whether such a buffer can be made now.
func (b *Book[B, P, G, Q]) CheckBuffer(d driver.BufferDesc) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("driver: create buffer %q: %w", d.Label, invalid(format, args...))
	}
	maps := d.Usage & mapUsages
	switch {
	case d.Size == 0:
		return fail("size is 0")
	case d.Size%copyAlignment != 0:
		return fail("size: wanted a multiple of %d, given %d", copyAlignment, d.Size)
	case d.Size > b.limits.MaxBufferSize:
		return fail("size: wanted at most %d (limit MaxBufferSize), given %d", b.limits.MaxBufferSize, d.Size)
	case d.Usage == 0 || d.Usage&^driver.AllUsages != 0:
		return fail("usage %#x", uint32(d.Usage))
	case maps == 0 || b.features&driver.FeatureMappedStorage != 0:
	case d.Usage&^(driver.MapRead|driver.CopyDst) != 0 && d.Usage&^(driver.MapWrite|driver.CopySrc) != 0:
		return fail("usage %v: wanted map-read with copy-dst alone, or map-write with copy-src alone", d.Usage)
	}
	if err := checkText("label", d.Label); err != nil {
		return fmt.Errorf("driver: create buffer: %w", err)
	}
	if b.budget != 0 && d.Size > b.budget-min(b.bytes, b.budget) {
		return fmt.Errorf("driver: create buffer %q: wanted %d bytes, %d of the budget of %d are in use: %w",
			d.Label, d.Size, b.bytes, b.budget, pass.ErrOutOfMemory)
	}
	return nil
}

// AddBuffer enters a buffer that CheckBuffer has passed.
func (b *Book[B, P, G, Q]) AddBuffer(d driver.BufferDesc, native B) (driver.BufferID, error) {
	o := &Buffer[B]{Native: native, Label: d.Label, Size: d.Size, Usage: d.Usage}
	id, err := b.buffers.add(o)
	if err != nil {
		return 0, err
	}
	o.id = driver.BufferID(id)
	b.bytes += d.Size
	b.counts.buffers++
	return o.id, nil
}

// RemoveBuffer takes the buffer out of the books; the caller frees Native.
func (b *Book[B, P, G, Q]) RemoveBuffer(id driver.BufferID) (*Buffer[B], error) {
	o, err := b.buffers.get(uint64(id))
	if err != nil {
		return nil, fmt.Errorf("driver: destroy buffer: %w", err)
	}
	if o.Mapped {
		return nil, fmt.Errorf("driver: destroy buffer: %w", invalid("%v is being read or written", o))
	}
	o.destroyed = true
	b.buffers.remove(uint64(id))
	b.bytes -= o.Size
	b.counts.buffers--
	return o, nil
}

// CheckWrite says whether length bytes can be written at offset with the next Submit.
func (b *Book[B, P, G, Q]) CheckWrite(id driver.BufferID, offset uint64, length int) (*Buffer[B], error) {
	o, err := b.use(id, driver.CopyDst, offset, uint64(length))
	if err != nil {
		return nil, fmt.Errorf("driver: write: %w", err)
	}
	return o, nil
}

// CheckMap says whether length bytes at offset can be mapped with usage MapRead or
// MapWrite. The device then sets Mapped while the mapping lasts.
func (b *Book[B, P, G, Q]) CheckMap(id driver.BufferID, usage driver.BufferUsage, offset uint64, length int) (*Buffer[B], error) {
	o, err := b.buffers.get(uint64(id))
	switch {
	case err != nil:
	case o.Usage&usage == 0:
		err = invalid("%v: wanted usage %v", o, usage)
	case o.Mapped:
		err = invalid("%v is being read or written", o)
	default:
		err = o.within(offset, uint64(length))
	}
	if err != nil {
		return nil, fmt.Errorf("driver: %v: %w", usage, err)
	}
	return o, nil
}

// MapRange widens a byte range to what a mapping needs: a start that is a multiple of
// 8 and a length that is a multiple of 4. It stays inside a buffer whose size is a
// multiple of 4.
func MapRange(offset, length uint64) (start, size uint64) {
	start = offset &^ 7
	end := (offset + length + 3) &^ 3
	return start, end - start
}

// use finds a buffer that a command may use at a range.
func (b *Book[B, P, G, Q]) use(id driver.BufferID, usage driver.BufferUsage, offset, size uint64) (*Buffer[B], error) {
	o, err := b.buffers.get(uint64(id))
	switch {
	case err != nil:
		return nil, err
	case o.Usage&usage == 0:
		return nil, invalid("%v: wanted usage %v", o, usage)
	case o.Mapped:
		return nil, invalid("%v is being read or written", o)
	case offset%copyAlignment != 0 || size%copyAlignment != 0:
		return nil, invalid("%v: offset and size: wanted multiples of %d, given %d and %d", o, copyAlignment, offset, size)
	}
	return o, o.within(offset, size)
}

func (o *Buffer[B]) within(offset, size uint64) error {
	if offset > o.Size || size > o.Size-offset {
		return invalid("%v: range of %d bytes at %d is outside", o, size, offset)
	}
	return nil
}
