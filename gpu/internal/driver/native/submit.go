//go:build cgo && !js && (linux || darwin || windows)

package native

// #include "shim.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/cogentcore/webgpu/wgpu"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/guard"
)

// Write implements driver.Device.
func (d *device) Write(id driver.BufferID, offset uint64, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("write"); err != nil {
		return err
	}
	o, err := d.book.CheckWrite(id, offset, len(data))
	if err != nil || len(data) == 0 {
		return err
	}
	if C.tandem_write(d.ref, d.queue, bufferHandleOf(o.Native), C.uint64_t(offset), unsafe.Pointer(&data[0]), C.size_t(len(data)), d.cerror) == 0 {
		return d.take(fmt.Sprintf("write to %v", o))
	}
	return nil
}

// Submit implements driver.Device.
func (d *device) Submit(commands []driver.Command) (driver.Serial, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("submit"); err != nil {
		return 0, err
	}
	if d.serial-driver.Serial(d.state.done) >= driver.MaxInFlight {
		C.tandem_poll(d.ref)
		if err := d.failure(); err != nil {
			return 0, err
		}
		if d.serial-driver.Serial(d.state.done) >= driver.MaxInFlight {
			return 0, fmt.Errorf("native: submit: %d are unfinished: %w", driver.MaxInFlight, driver.ErrBusy)
		}
	}
	if cap(d.commands) < len(commands) {
		d.commands = make([]C.tandem_command, len(commands))
	}
	d.commands = d.commands[:len(commands)]
	for i := range commands {
		if err := d.translate(&commands[i], &d.commands[i]); err != nil {
			return 0, fmt.Errorf("native: submit: command %d of %d: %w", i, len(commands), err)
		}
	}
	ok := C.tandem_submit(d.ref, d.queue, d.state, unsafe.SliceData(d.commands), C.size_t(len(commands)), d.stretch, C.uint64_t(d.serial+1), d.cerror)
	if ok == 0 {
		return 0, d.take("submit")
	}
	if d.state.lost != 0 {
		return 0, d.failure()
	}
	d.serial++
	return d.serial, nil
}

// translate checks a command and writes it in the shim's form.
func (d *device) translate(c *driver.Command, t *C.tandem_command) error {
	*t = C.tandem_command{}
	switch c.Op {
	case driver.OpDispatch:
		p, g, err := d.book.Dispatch(c)
		if err != nil {
			return err
		}
		t.op, t.dynamic = C.TANDEM_DISPATCH, C.uint32_t(c.Dynamic)
		t.x, t.y, t.z = C.uint32_t(c.X), C.uint32_t(c.Y), C.uint32_t(c.Z)
		for i := range c.Dynamic {
			t.offsets[i] = C.uint32_t(c.Offsets[i])
		}
		t.first, t.second = handleNumber(p.Native), handleNumber(g.Native)
	case driver.OpCopy:
		src, dst, err := d.book.Copy(c)
		if err != nil {
			return err
		}
		t.op = C.TANDEM_COPY
		t.first, t.first_offset = bufferNumber(src), C.uint64_t(c.SrcOffset)
		t.second, t.second_offset = bufferNumber(dst), C.uint64_t(c.DstOffset)
		t.size = C.uint64_t(c.Size)
	case driver.OpClear:
		dst, err := d.book.Clear(c)
		if err != nil {
			return err
		}
		t.op, t.second, t.second_offset, t.size = C.TANDEM_CLEAR, bufferNumber(dst), C.uint64_t(c.DstOffset), C.uint64_t(c.Size)
	case driver.OpTimestamp:
		q, err := d.book.Timestamp(c)
		if err != nil {
			return err
		}
		t.op, t.first, t.x = C.TANDEM_TIMESTAMP, handleNumber(q.Native), C.uint32_t(c.QueryIndex)
	case driver.OpResolve:
		q, dst, err := d.book.Resolve(c)
		if err != nil {
			return err
		}
		t.op, t.first = C.TANDEM_RESOLVE, handleNumber(q.Native)
		t.x, t.y = C.uint32_t(c.QueryIndex), C.uint32_t(c.QueryCount)
		t.second, t.second_offset = bufferNumber(dst), C.uint64_t(c.DstOffset)
	default:
		return guard.UnknownOp(c)
	}
	return nil
}

func handleNumber[T single](object *T) C.uintptr_t {
	return C.uintptr_t(uintptr(handleOf(object)))
}

func bufferNumber(o *guard.Buffer[*wgpu.Buffer]) C.uintptr_t {
	return C.uintptr_t(uintptr(bufferHandleOf(o.Native)))
}
