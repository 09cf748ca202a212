package drivertest

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/gpu/internal/driver/guard"
	"github.com/tandem-gpu/tandem/pass"
)

func (d *Device) lose(reason string) {
	if d.lost {
		return
	}
	d.lost = true
	d.pending = nil
	d.err = fmt.Errorf("drivertest: %s: %w", reason, pass.ErrDeviceLost)
}

// progress does the work whose time has come.
func (d *Device) progress() {
	now := time.Now()
	for len(d.pending) > 0 && !d.pending[0].hang && !now.Before(d.pending[0].due) {
		w := d.pending[0]
		if w.lose {
			d.lose(fmt.Sprintf("submission %d: injected", w.serial))
			return
		}
		for _, step := range w.steps {
			step()
		}
		d.pending = d.pending[1:]
		d.done = w.serial
		if w.lateError && d.err == nil {
			d.err = fmt.Errorf("drivertest: after submission %d: injected: %w", w.serial, pass.ErrInvalid)
		}
	}
}

// Write implements driver.Device.
func (d *Device) Write(id driver.BufferID, offset uint64, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("write"); err != nil {
		return err
	}
	o, err := d.book.CheckWrite(id, offset, len(data))
	if err != nil {
		return err
	}
	held := slices.Clone(data)
	d.writes = append(d.writes, func() { copy(o.Native.data[offset:], held) })
	return nil
}

// Submit implements driver.Device.
func (d *Device) Submit(commands []driver.Command) (driver.Serial, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("submit"); err != nil {
		return 0, err
	}
	d.progress()
	if d.lost {
		return 0, d.err
	}
	if len(d.pending) >= driver.MaxInFlight {
		return 0, fmt.Errorf("drivertest: submit: %d are unfinished: %w", driver.MaxInFlight, driver.ErrBusy)
	}
	d.faults.submits++
	switch d.faults.submits {
	case d.faults.LoseAtSubmit:
		d.lose("submit: injected")
		return 0, d.err
	case d.faults.FailSubmit:
		return 0, fmt.Errorf("drivertest: submit: injected: %w", pass.ErrInvalid)
	}
	w := &work{serial: d.serial + 1}
	var used []*memory
	for i := range commands {
		step, buffers, err := d.step(&commands[i])
		if err != nil {
			return 0, fmt.Errorf("drivertest: submit: command %d of %d: %w", i, len(commands), err)
		}
		w.steps = append(w.steps, step)
		used = append(used, buffers...)
	}
	for _, m := range used {
		m.lastUse = w.serial
	}
	w.steps = append(slices.Clone(d.writes), w.steps...)
	d.writes = nil
	w.hang = d.faults.submits == d.faults.Hang
	w.lose = d.faults.submits == d.faults.LoseAtFinish
	w.lateError = d.faults.submits == d.faults.LateError
	if now := time.Now(); d.due.Before(now) {
		d.due = now
	}
	d.due = d.due.Add(d.faults.Delay)
	w.due = d.due
	d.serial = w.serial
	d.pending = append(d.pending, w)
	if d.config.OnSubmit != nil {
		d.config.OnSubmit(w.serial, commands)
	}
	return w.serial, nil
}

// step checks a command and returns what it does, with the buffers it uses.
func (d *Device) step(c *driver.Command) (func(), []*memory, error) {
	switch c.Op {
	case driver.OpDispatch:
		return d.dispatchStep(c)
	case driver.OpCopy:
		src, dst, err := d.book.Copy(c)
		if err != nil {
			return nil, nil, err
		}
		from, to, at, n := src.Native, dst.Native, c.DstOffset, c.Size
		start := c.SrcOffset
		return func() { copy(to.data[at:at+n], from.data[start:]) }, []*memory{from, to}, nil
	case driver.OpClear:
		dst, err := d.book.Clear(c)
		if err != nil {
			return nil, nil, err
		}
		to, at, n := dst.Native, c.DstOffset, c.Size
		return func() { clear(to.data[at : at+n]) }, []*memory{to}, nil
	case driver.OpTimestamp:
		q, err := d.book.Timestamp(c)
		if err != nil {
			return nil, nil, err
		}
		stamps, i := q.Native, c.QueryIndex
		return func() { d.clock++; stamps[i] = d.clock }, nil, nil
	case driver.OpResolve:
		q, dst, err := d.book.Resolve(c)
		if err != nil {
			return nil, nil, err
		}
		stamps, to, at := q.Native[c.QueryIndex:c.QueryIndex+c.QueryCount], dst.Native, c.DstOffset
		return func() {
			for i, s := range stamps {
				binary.LittleEndian.PutUint64(to.data[at+8*uint64(i):], s)
			}
		}, []*memory{to}, nil
	}
	return nil, nil, guard.UnknownOp(c)
}

func (d *Device) dispatchStep(c *driver.Command) (func(), []*memory, error) {
	p, g, err := d.book.Dispatch(c)
	if err != nil {
		return nil, nil, err
	}
	call := Call{Pipeline: p.Label, Groups: [3]uint32{c.X, c.Y, c.Z}}
	var used []*memory
	n := 0
	for i, b := range g.Bindings {
		at := b.Offset
		if p.Bindings[i] == driver.UniformDynamic {
			at += uint64(c.Offsets[n])
			n++
		}
		m := g.Buffers[i].Native
		used = append(used, m)
		call.Buffers = append(call.Buffers, m.data[at:at+b.Size:at+b.Size])
	}
	kernel := p.Native
	skip := d.faults.hit(&d.faults.dispatches, d.faults.SkipDispatch) ||
		d.faults.SkipPipeline != "" && d.faults.SkipPipeline == p.Label
	return func() {
		if kernel != nil && !skip {
			kernel(call)
		}
	}, used, nil
}

// Done implements driver.Device.
func (d *Device) Done() (driver.Serial, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("done"); err != nil {
		return 0, err
	}
	d.progress()
	return d.done, d.err
}

// Wait implements driver.Device.
func (d *Device) Wait(ctx context.Context, serial driver.Serial, timeout time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable("wait"); err != nil {
		return err
	}
	if serial > d.serial {
		return fmt.Errorf("drivertest: wait: submission %d was not made, the newest is %d: %w", serial, d.serial, pass.ErrInvalid)
	}
	return d.await(ctx, fmt.Sprintf("wait for submission %d", serial), timeout, func() bool { return d.done >= serial })
}

// ReadMapped implements driver.Device.
func (d *Device) ReadMapped(ctx context.Context, id driver.BufferID, offset uint64, dst []byte, timeout time.Duration) error {
	return d.mapped(ctx, id, driver.MapRead, offset, len(dst), timeout, func(data []byte) { copy(dst, data) })
}

// WriteMapped implements driver.Device.
func (d *Device) WriteMapped(ctx context.Context, id driver.BufferID, offset uint64, src []byte, timeout time.Duration) error {
	return d.mapped(ctx, id, driver.MapWrite, offset, len(src), timeout, func(data []byte) { copy(data, src) })
}

func (d *Device) mapped(ctx context.Context, id driver.BufferID, usage driver.BufferUsage, offset uint64, length int, timeout time.Duration, move func([]byte)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(usage.String()); err != nil {
		return err
	}
	o, err := d.book.CheckMap(id, usage, offset, length)
	if err != nil || length == 0 {
		return err
	}
	o.Mapped = true
	defer func() { o.Mapped = false }()
	err = d.await(ctx, fmt.Sprintf("%v of buffer %#x", usage, uint64(id)), timeout, func() bool { return d.done >= o.Native.lastUse })
	if err != nil {
		return err
	}
	move(o.Native.data[offset : offset+uint64(length)])
	return nil
}
