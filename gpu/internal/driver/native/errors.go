//go:build cgo && !js && (linux || darwin || windows)

package native

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/cogentcore/webgpu/wgpu"
	"github.com/tandem-gpu/tandem/pass"
)

// sentinelFor sorts a message of the library. Its error types are not enough: it
// reports some failed allocations and a lost device as validation errors.
func sentinelFor(kind uint32, message string) error {
	low := strings.ToLower(message)
	switch {
	case kind == C.WGPUErrorType_DeviceLost,
		strings.Contains(low, "device is lost"), strings.Contains(low, "device lost"), strings.Contains(low, "device was lost"):
		return pass.ErrDeviceLost
	case kind == C.WGPUErrorType_OutOfMemory,
		strings.Contains(low, "not enough memory"), strings.Contains(low, "out of memory"):
		return pass.ErrOutOfMemory
	}
	return pass.ErrInvalid
}

// oneLine joins a report of several indented lines.
func oneLine(message string) string {
	var parts []string
	for line := range strings.Lines(message) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}

// take turns the C error into a Go error and clears it. A lost device is noted.
func (d *device) take(what string) error {
	e := d.cerror
	if e._type == 0 {
		return nil
	}
	message := C.GoString(&e.message[0])
	err := d.libraryError(what, uint32(e._type), message)
	e._type = 0
	return err
}

func (d *device) libraryError(what string, kind uint32, message string) error {
	sentinel := sentinelFor(kind, message)
	if sentinel == pass.ErrDeviceLost && d.state.lost == 0 {
		d.state.lost = 1
		d.state.reason._type = C.WGPUErrorType_DeviceLost
		d.lostReason = oneLine(message)
	}
	return fmt.Errorf("native: %s: %s: %w", what, oneLine(message), sentinel)
}

// failure is the first error that no call returned, or nil.
func (d *device) failure() error {
	if d.state.lost == 0 && d.state.failed == 0 {
		return nil
	}
	if d.firstError == nil {
		reason := d.lostReason
		if reason == "" {
			reason = oneLine(C.GoString(&d.state.reason.message[0]))
		}
		if reason == "" {
			reason = "the library gave no reason"
		}
		sentinel := sentinelFor(uint32(d.state.failed), reason)
		if d.state.lost != 0 {
			sentinel = pass.ErrDeviceLost
		}
		d.firstError = fmt.Errorf("native: %s: %s: %w", d.name, reason, sentinel)
	}
	return d.firstError
}

// usable is nil while calls may go to the library.
func (d *device) usable(what string) error {
	if d.closing {
		return fmt.Errorf("native: %s: the device is closed: %w", what, pass.ErrClosed)
	}
	if d.state.lost != 0 {
		return d.failure()
	}
	return nil
}

// lose runs the callback that the library runs when the device is gone. It is for
// tests: this version of the library cannot be made to lose a device.
func (d *device) lose(reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	message := C.CString(reason)
	defer C.free(unsafe.Pointer(message))
	C.tandem_lose(d.state, message)
}

// provoke makes an error outside of every scope, which no call here does otherwise. It
// is for tests.
func (d *device) provoke(b *wgpu.Buffer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	C.tandem_provoke(d.queue, bufferHandleOf(b))
}
