//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/guard"
	"github.com/tandem-gpu/tandem/pass"
)

// ReadMapped implements driver.Device.
func (d *device) ReadMapped(ctx context.Context, id driver.BufferID, offset uint64, dst []byte, timeout time.Duration) error {
	return d.mapped(ctx, id, driver.MapRead, offset, dst, timeout)
}

// WriteMapped implements driver.Device.
func (d *device) WriteMapped(ctx context.Context, id driver.BufferID, offset uint64, src []byte, timeout time.Duration) error {
	return d.mapped(ctx, id, driver.MapWrite, offset, src, timeout)
}

// mapped maps the buffer, copies, and unmaps it. In between, the buffer is marked as
// Mapped, which keeps everyone else's hands off it.
func (d *device) mapped(ctx context.Context, id driver.BufferID, usage driver.BufferUsage, offset uint64, host []byte, timeout time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("map"); err != nil {
		return err
	}
	o, err := d.book.CheckMap(id, usage, offset, len(host))
	if err != nil || len(host) == 0 {
		return err
	}
	mode, getRange := uintptr(mapRead), bufferGetConstMappedRange
	if usage == driver.MapWrite {
		mode, getRange = mapWrite, bufferGetMappedRange
	}
	start, size := guard.MapRange(offset, uint64(len(host)))
	d.late.keep()
	op := begin(d, theCallbacks().status)
	defer op.free()
	future := d.start(op, bufferMapAsync, 4, o.Native, mode, uintptr(start), uintptr(size))
	o.Mapped = true
	d.claim()
	defer func() {
		o.Mapped = false
		d.unclaim()
	}()

	d.mu.Unlock()
	err = d.until(ctx, future, timeout, op)
	d.mu.Lock()
	if err != nil {
		// This ends the request, too, whose callback then runs.
		d.quick(bufferUnmap, o.Native)
		if d.wait(d.instance, future, 0); !op.done.Load() {
			d.owed = append(d.owed, future)
		}
		return during(err, usage.String()+" of buffer %#x", uint64(id))
	}
	if op.status != statusSuccess {
		return d.mapFailure(usage, o, op)
	}
	p := pointer(d.quick(getRange, o.Native, uintptr(start), uintptr(size)))
	if p == nil {
		d.call(bufferUnmap, o.Native)
		return d.mapFailure(usage, o, op)
	}

	// The range stays valid until unmap, and nobody else may unmap: copy without the
	// lock, it can take milliseconds.
	d.mu.Unlock()
	there := unsafe.Slice((*byte)(unsafe.Add(p, offset-start)), len(host))
	if usage == driver.MapWrite {
		copy(there, host)
	} else {
		copy(host, there)
	}
	d.mu.Lock()
	d.quick(bufferUnmap, o.Native)
	return d.taken("unmap")
}

func (d *device) mapFailure(usage driver.BufferUsage, o *guard.Buffer[handle], op *operation) error {
	if err := d.late.loss(); err != nil {
		return err
	}
	if err := d.late.take(); err != nil {
		return fmt.Errorf("dawn: %v of %v: %w", usage, o, err)
	}
	return fmt.Errorf("dawn: %v of %v: the library refused with status %d: %s: %w", usage, o, op.status, orUnknown(oneLine(op.message)), pass.ErrInvalid)
}
