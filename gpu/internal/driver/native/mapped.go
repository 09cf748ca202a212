//go:build cgo && !js && (linux || darwin || windows)

package native

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/cogentcore/webgpu/wgpu"
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
	if err := d.usable(usage.String()); err != nil {
		return err
	}
	o, err := d.book.CheckMap(id, usage, offset, len(host))
	if err != nil || len(host) == 0 {
		return err
	}
	mode := C.uint32_t(C.WGPUMapMode_Read)
	if usage == driver.MapWrite {
		mode = C.WGPUMapMode_Write
	}
	start, size := guard.MapRange(offset, uint64(len(host)))
	buffer := bufferHandleOf(o.Native)
	m := (*C.tandem_mapping)(C.calloc(1, C.sizeof_tandem_mapping))
	defer d.dispose(m)

	if C.tandem_map(d.ref, buffer, mode, C.size_t(start), C.size_t(size), m, d.cerror) == 0 {
		return d.take(fmt.Sprintf("%v of %v", usage, o))
	}
	o.Mapped = true
	d.mapping++
	defer func() {
		o.Mapped = false
		if d.mapping--; d.mapping == 0 {
			d.idle.Broadcast()
		}
	}()

	d.mu.Unlock()
	err = d.await(ctx, fmt.Sprintf("%v of buffer %#x", usage, uint64(id)), timeout, func() bool { return m.finished != 0 })
	d.mu.Lock()
	if err != nil {
		d.unmap(buffer)
		return err
	}
	if m.status != C.WGPUBufferMapAsyncStatus_Success {
		return d.mapFailure(usage, o, uint32(m.status))
	}
	p := C.wgpuBufferGetMappedRange(C.WGPUBuffer(buffer), C.size_t(start), C.size_t(size))
	if p == nil {
		d.unmap(buffer)
		return d.mapFailure(usage, o, uint32(m.status))
	}

	// The range stays valid until unmap, and nobody else may unmap: copy without the
	// lock, it can take milliseconds.
	d.mu.Unlock()
	at := unsafe.Add(p, offset-start)
	if usage == driver.MapWrite {
		C.tandem_copy(at, unsafe.Pointer(&host[0]), C.size_t(len(host)))
	} else {
		C.tandem_copy(unsafe.Pointer(&host[0]), at, C.size_t(len(host)))
	}
	d.mu.Lock()
	return d.unmap(buffer)
}

// unmap ends a mapping, or a request for one, whose callback then runs.
func (d *device) unmap(buffer unsafe.Pointer) error {
	if d.state.lost != 0 {
		return d.failure()
	}
	C.tandem_push(d.ref)
	C.wgpuBufferUnmap(C.WGPUBuffer(buffer))
	C.tandem_pop(d.ref, d.cerror)
	return d.take("unmap")
}

// dispose frees the mapping's state once the library can no longer write to it, and
// with it what earlier calls had to leave behind.
func (d *device) dispose(m *C.tandem_mapping) {
	d.orphans = slices.DeleteFunc(append(d.orphans, m), func(m *C.tandem_mapping) bool {
		if m.finished == 0 {
			return false
		}
		C.free(unsafe.Pointer(m))
		return true
	})
}

func (d *device) mapFailure(usage driver.BufferUsage, o *guard.Buffer[*wgpu.Buffer], status uint32) error {
	if err := d.failure(); err != nil {
		return err
	}
	sentinel := pass.ErrInvalid
	if status == C.WGPUBufferMapAsyncStatus_DeviceLost {
		sentinel = pass.ErrDeviceLost
	}
	return fmt.Errorf("native: %v of %v: the library refused with status %d: %w", usage, o, status, sentinel)
}
