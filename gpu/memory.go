package gpu

import (
	"fmt"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// memory is a buffer of the device: a param, the state of a session, or a buffer of
// its workspace.
type memory struct {
	d     *device
	id    driver.BufferID
	words int
	mark  driver.BindGroupID // of the timeline that uploads to it; see timeline.after
}

// leastWords is what sizes of buffers and of bindings are multiples of, so that a whole
// vector can be bound. wgpu 0.19 asks of a bind group that it holds what the pipeline
// before needed, if the two have bindings of the same kinds.
const leastWords = 4

// alloc makes memory of zero words.
func (d *device) alloc(label string, words int) (*memory, error) {
	usage := driver.Storage | driver.Uniform | driver.CopySrc | driver.CopyDst
	if d.mapped {
		usage |= driver.MapRead | driver.MapWrite
	}
	id, err := d.buffer(label, words, usage)
	if err != nil {
		return nil, err
	}
	return &memory{d: d, id: id, words: words}, nil
}

// buffer makes a buffer of words. More than one buffer can hold is more than the device
// can hold, as far as its user is concerned.
func (d *device) buffer(label string, words int, usage driver.BufferUsage) (driver.BufferID, error) {
	size := 4 * uint64(roundUp(max(words, 1), leastWords))
	if size > d.limits.MaxBufferSize {
		return 0, fmt.Errorf("%s: want a buffer of %d bytes, the device's limit is %d: %w", label, size, d.limits.MaxBufferSize, pass.ErrOutOfMemory)
	}
	return d.drv.CreateBuffer(driver.BufferDesc{Label: label, Size: size, Usage: usage})
}

// Free implements backend.Memory.
func (m *memory) Free() {
	if m == nil {
		return
	}
	if m.mark != 0 {
		m.d.check(m.d.drv.DestroyBindGroup(m.mark))
	}
	m.d.drop(m.id)
}

// drop frees a buffer, if there is one.
func (d *device) drop(id driver.BufferID) {
	if id != 0 {
		d.check(d.drv.DestroyBuffer(id))
	}
}

// check reports what goes wrong while something is freed: on a lost device everything
// does, and it is freed with the device.
func (d *device) check(err error) {
	if err != nil {
		d.log.Debug("gpu: free", "error", err)
	}
}

// param is what a plan holds for a pass.Param.
type param struct {
	shape   pass.ParamShape
	packed  packed    // how the weights lie in buffers
	buffers []*memory // one for each of packed.buffers
}

// Free implements backend.Memory.
func (p *param) Free() {
	for _, m := range p.buffers {
		m.Free()
	}
}

// Kinds of operands that a spare stands in for.
const (
	spareRead = iota
	spareWrite
)

// spareSlots is how many operands of one dispatch can be spare and written: each has a
// range of its own.
const spareSlots = 32

// spareMemory returns the memory that stands in for an empty operand, whose own buffer
// may be too short to bind anything. Nothing reads or writes it.
func (d *device) spareMemory(kind int) (*memory, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.spare[kind] == nil {
		m, err := d.alloc("spare", spareSlots*int(d.limits.StorageOffsetAlignment)/4)
		if err != nil {
			return nil, err
		}
		d.spare[kind] = m
	}
	return d.spare[kind], nil
}
