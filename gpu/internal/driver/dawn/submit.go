//go:build ((linux || darwin) && (amd64 || arm64) && !android && !ios) || (windows && amd64)

package dawn

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/guard"
	"github.com/tandem-gpu/tandem/pass"
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
	d.late.keep()
	d.call(queueWriteBuffer, d.queue, o.Native, uintptr(offset), uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)))
	return d.taken("write")
}

// taken is what the library reported during a call without scopes of its own. What
// came earlier was kept before.
func (d *device) taken(what string) error {
	if err := d.late.take(); err != nil {
		return fmt.Errorf("dawn: %s: %w", what, err)
	}
	return d.late.loss()
}

// step is a checked command.
type step struct {
	command       *driver.Command
	first, second handle // pipeline and bind group, source and target, queries and target
}

// Submit implements driver.Device.
func (d *device) Submit(commands []driver.Command) (driver.Serial, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("submit"); err != nil {
		return 0, err
	}
	d.reap()
	if d.serial+1-d.oldest >= driver.MaxInFlight {
		return 0, fmt.Errorf("dawn: submit: %d are unfinished: %w", driver.MaxInFlight, driver.ErrBusy)
	}
	if cap(d.steps) < len(commands) {
		d.steps = make([]step, len(commands))
	}
	d.steps = d.steps[:len(commands)]
	for i := range commands {
		if err := d.check(&commands[i], &d.steps[i]); err != nil {
			return 0, fmt.Errorf("dawn: submit: command %d of %d: %w", i, len(commands), err)
		}
	}
	d.late.keep()
	encoder := d.quick(deviceCreateEncoder, d.native, 0)
	d.encode(encoder)
	d.commands = d.quick(encoderFinish, encoder, 0)
	err := d.taken("submit")
	if err == nil {
		d.quick(queueSubmit, d.queue, 1, uintptr(unsafe.Pointer(&d.commands)))
		err = d.taken("submit")
	}
	d.quick(commandBufferRelease, d.commands)
	d.quick(encoderRelease, encoder)
	clear(d.steps)
	if err != nil {
		return 0, err
	}
	d.serial++
	d.doneInfo.userdata2 = uintptr(d.serial)
	d.futures[d.serial%driver.MaxInFlight] = uint64(d.quick(queueOnSubmittedWorkDone, starting(d.doneArgs[:0], d.doneInfo, 1, d.queue, 0, 0, 0)...))
	return d.serial, nil
}

// quick is call without an allocation. Whatever the arguments point to is on the heap
// and kept alive by the caller.
func (d *device) quick(f function, args ...uintptr) uintptr {
	n := copy(d.args[:], args)
	r, _, _ := purego.SyscallN(d.functions[f], d.args[:n]...)
	return r
}

// check checks a command and finds its objects.
func (d *device) check(c *driver.Command, s *step) error {
	*s = step{command: c}
	switch c.Op {
	case driver.OpDispatch:
		p, g, err := d.book.Dispatch(c)
		if err != nil {
			return err
		}
		s.first, s.second = p.Native, g.Native
	case driver.OpCopy:
		src, dst, err := d.book.Copy(c)
		if err != nil {
			return err
		}
		s.first, s.second = src.Native, dst.Native
	case driver.OpClear:
		dst, err := d.book.Clear(c)
		if err != nil {
			return err
		}
		s.second = dst.Native
	case driver.OpTimestamp:
		q, err := d.book.Timestamp(c)
		if err != nil {
			return err
		}
		s.first = q.Native
	case driver.OpResolve:
		q, dst, err := d.book.Resolve(c)
		if err != nil {
			return err
		}
		s.first, s.second = q.Native, dst.Native
	default:
		return guard.UnknownOp(c)
	}
	return nil
}

// encode records the steps. Neighbouring dispatches share a pass.
func (d *device) encode(encoder handle) {
	var pass, pipeline handle
	end := func() {
		if pass != 0 {
			d.quick(passEnd, pass)
			d.quick(passRelease, pass)
			pass, pipeline = 0, 0
		}
	}
	for i := range d.steps {
		s := &d.steps[i]
		c := s.command
		if c.Op != driver.OpDispatch {
			end()
		}
		switch c.Op {
		case driver.OpDispatch:
			if pass == 0 {
				pass = d.quick(encoderBeginPass, encoder, 0)
			}
			if pipeline != s.first {
				pipeline = s.first
				d.quick(passSetPipeline, pass, pipeline)
			}
			d.quick(passSetBindGroup, pass, 0, s.second, uintptr(c.Dynamic), uintptr(unsafe.Pointer(&c.Offsets[0])))
			d.quick(passDispatch, pass, uintptr(c.X), uintptr(c.Y), uintptr(c.Z))
		case driver.OpCopy:
			d.quick(encoderCopy, encoder, s.first, uintptr(c.SrcOffset), s.second, uintptr(c.DstOffset), uintptr(c.Size))
		case driver.OpClear:
			d.quick(encoderClear, encoder, s.second, uintptr(c.DstOffset), uintptr(c.Size))
		case driver.OpTimestamp:
			d.quick(encoderTimestamp, encoder, s.first, uintptr(c.QueryIndex))
		case driver.OpResolve:
			d.quick(encoderResolve, encoder, s.first, uintptr(c.QueryIndex), uintptr(c.QueryCount), s.second, uintptr(c.DstOffset))
		}
	}
	end()
}

// reap runs the callbacks of finished submissions, oldest first. Without it the library
// would keep what belongs to them.
func (d *device) reap() {
	for d.oldest <= d.serial && d.wait(d.instance, d.futures[d.oldest%driver.MaxInFlight], 0) {
		d.oldest++
	}
}

// finishedSerial notes that a submission, and all before it, are finished. It runs
// inside a callback.
func (d *device) finishedSerial(serial uint64) {
	for {
		old := d.done.Load()
		if serial <= old || d.done.CompareAndSwap(old, serial) {
			return
		}
	}
}

// Done implements driver.Device.
func (d *device) Done() (driver.Serial, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("done"); err != nil {
		return 0, err
	}
	d.reap()
	return driver.Serial(d.done.Load()), d.late.failure()
}

// Wait implements driver.Device.
func (d *device) Wait(ctx context.Context, serial driver.Serial, timeout time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("wait"); err != nil {
		return err
	}
	if serial > d.serial {
		return fmt.Errorf("dawn: wait: submission %d was not made, the newest is %d: %w", serial, d.serial, pass.ErrInvalid)
	}
	if d.done.Load() >= uint64(serial) {
		return d.late.failure()
	}
	future := d.futures[serial%driver.MaxInFlight]
	op := submission(d, uint64(serial))
	defer op.free()
	d.claim()
	defer d.unclaim()
	d.mu.Unlock()
	defer d.mu.Lock()
	if err := d.until(ctx, future, timeout, op); err != nil {
		return during(err, "wait for submission %d", uint64(serial))
	}
	return nil
}

// until waits for an operation of the device, without the lock. The device's own error
// outranks all others.
func (d *device) until(ctx context.Context, future uint64, timeout time.Duration, op *operation) error {
	err := d.await(ctx, d.instance, future, timeout, op)
	if failure := d.late.failure(); failure != nil {
		return failure
	}
	return err
}

// during says what was waited for, in errors that do not say it all.
func during(err error, format string, id uint64) error {
	if errors.Is(err, pass.ErrClosed) || errors.Is(err, pass.ErrDeviceLost) {
		return err
	}
	return fmt.Errorf("dawn: "+format+": %w", id, err)
}
