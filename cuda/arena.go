package cuda

import (
	"errors"
	"fmt"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
)

// An arena is the workspace of a stream: temporaries and inputs of all its recordings,
// one recording at a time. It grows where it is, since its addresses were set apart from
// the start; so graphs keep theirs.
//
// A device that cannot map memory at addresses (some virtual ones) has a plain piece,
// which moves when it grows: generation tells.
type arena struct {
	d          *device
	at         driver.Pointer
	reserved   uint64 // bytes of addresses; 0: a plain piece
	grain      uint64
	chunks     []chunk // mapped one behind the other
	bytes      uint64  // that may be used
	generation int
	plain      *memory
	replaced   []*memory // plain pieces that a run may still use
}

type chunk struct {
	memory driver.Physical
	bytes  uint64
}

// The head of an arena: the status word and the number of the run that is under way, which
// go up with the inputs and come down last.
const (
	headStatus = 0
	headSerial = 8
	headBytes  = 16
	inputsAt   = 256 // bytes; where inputs begin
)

// chunkBytes is the least by which an arena grows.
const chunkBytes = 2 << 20

func newArena(d *device) (*arena, error) {
	a := &arena{d: d}
	if !d.attributes.virtual {
		return a, nil
	}
	err := d.do(func() (err error) {
		if a.grain, err = d.drv.Granularity(d.gpu.Ordinal); err != nil {
			return err
		}
		a.grain = max(a.grain, chunkBytes)
		bytes := up(uint64(max(d.gpu.Memory, chunkBytes)), a.grain)
		a.at, err = d.drv.Reserve(bytes)
		if err == nil {
			a.reserved = bytes
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("workspace: addresses: %w", err)
	}
	return a, nil
}

// beyond is the error of more bytes than the device has.
func (a *arena) beyond(bytes uint64) error {
	return fmt.Errorf("workspace: %w", &driver.Error{Code: driver.OutOfMemory, Name: "CUDA_ERROR_OUT_OF_MEMORY", Text: "out of memory",
		Call: fmt.Sprintf("%d bytes of a device of %d", bytes, a.d.gpu.Memory)})
}

// grow makes the arena hold at least that many bytes, or leaves it as it is.
func (a *arena) grow(bytes uint64) error {
	if bytes <= a.bytes {
		return nil
	}
	if a.reserved == 0 {
		return a.replace(bytes)
	}
	more := up(bytes-a.bytes, a.grain)
	if a.bytes+more > a.reserved {
		return a.beyond(bytes)
	}
	if err := a.d.ledger.reserve(int64(more)); err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	err := a.d.do(func() error {
		m, err := a.d.drv.Create(a.d.gpu.Ordinal, more)
		if err != nil {
			return err
		}
		if err := a.d.drv.Map(a.d.gpu.Ordinal, a.at+driver.Pointer(a.bytes), more, m); err != nil {
			return errors.Join(err, a.d.drv.Release(m))
		}
		a.chunks = append(a.chunks, chunk{m, more})
		return nil
	})
	if err != nil {
		a.d.ledger.release(int64(more))
		return fmt.Errorf("workspace: %d bytes more%s: %w", more, a.d.free(), err)
	}
	a.bytes += more
	return nil
}

// replace takes a larger plain piece.
func (a *arena) replace(bytes uint64) error {
	m, err := a.d.alloc("workspace", int(up(bytes, chunkBytes)))
	if err != nil {
		return err
	}
	if a.plain != nil {
		a.replaced = append(a.replaced, a.plain)
	}
	a.plain, a.at, a.bytes = m, m.at, uint64(m.bytes)
	a.generation++
	return nil
}

// sweep gives up plain pieces that were replaced. No run is under way.
func (a *arena) sweep() {
	for _, m := range a.replaced {
		m.Free()
	}
	a.replaced = nil
}

// empty gives up the memory. No run is under way.
func (a *arena) empty() error {
	a.sweep()
	if a.reserved == 0 {
		a.plain.Free()
		a.plain, a.bytes = nil, 0
		return nil
	}
	chunks, bytes := a.chunks, a.bytes
	a.chunks, a.bytes = nil, 0
	a.d.ledger.release(int64(bytes))
	return a.d.do(func() error {
		var errs []error
		at := a.at
		for _, c := range chunks {
			errs = append(errs, a.d.drv.Unmap(at, c.bytes), a.d.drv.Release(c.memory))
			at += driver.Pointer(c.bytes)
		}
		return errors.Join(errs...)
	})
}

// close gives up the memory and the addresses.
func (a *arena) close() error {
	err := a.empty()
	if a.reserved > 0 {
		reserved := a.reserved
		a.reserved = 0
		err = errors.Join(err, a.d.do(func() error { return a.d.drv.Unreserve(a.at, reserved) }))
	}
	return err
}

// up returns the smallest multiple of m that is at least n.
func up[T int | uint64](n, m T) T { return (n + m - 1) / m * m }
