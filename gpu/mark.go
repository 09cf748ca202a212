package gpu

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/shaders"
)

// Words of a timeline on the device; shaders/mark.wgsl has the same.
const (
	wordStatus   = 0 // to 3: bits that kernels set; see compiler.status
	wordSerial   = 4 // two words: the run
	wordKept     = 6 // status of the run up to its newest mark
	wordCount    = 7 // marks so far
	timelineSize = 12

	runWords    = 3 // from wordSerial on: what the upload of a run writes
	markWords   = 4 // from wordSerial on: what is read back
	statusWords = 4
)

// A timeline is a count on the device that every submission of one stream advances,
// with a last dispatch that depends on what the submission wrote: its mark. Devices
// have been seen to cancel work and report it finished. A count that is short says that
// a submission, this one or one before it, did not run. Beside the count lie the number
// of the run, which only the run itself brings to the device, and the status word.
type timeline struct {
	d     *device
	state *memory

	mu    sync.Mutex
	count uint32 // after the newest submission
	idle  []driver.BufferID
}

func newTimeline(d *device) (*timeline, error) {
	state, err := d.alloc("timeline", timelineSize)
	if err != nil {
		return nil, err
	}
	return &timeline{d: d, state: state}, nil
}

func (t *timeline) free() {
	if t == nil {
		return
	}
	for _, id := range t.idle {
		t.d.drop(id)
	}
	t.state.Free()
}

// submit runs commands that have a number of marks among them, and returns the count
// that the last of them leaves.
func (t *timeline) submit(commands []driver.Command, marks int) (count uint32, err error) {
	for {
		t.mu.Lock()
		serial, err := t.d.drv.Submit(commands)
		if err == nil {
			t.d.raise(serial)
			t.count += uint32(marks)
		}
		count = t.count
		t.mu.Unlock()
		if !errors.Is(err, driver.ErrBusy) {
			return count, err
		}
		if err := t.d.waitForRoom(); err != nil {
			return 0, err
		}
	}
}

// marked is how many buffers one mark can depend on.
func (t *timeline) marked() int { return max(int(t.d.limits.MaxStorageBuffers)-1, 1) }

// after makes a bind group for a mark that depends on the given buffers, at most
// marked of them.
func (t *timeline) after(buffers []driver.BufferID) (*pipeline, driver.BindGroupID, error) {
	kinds := make([]driver.BindingKind, 1+len(buffers))
	bindings := make([]driver.Binding, 1+len(buffers))
	kinds[0] = driver.StorageReadWrite
	bindings[0] = driver.Binding{Buffer: t.state.id, Size: 4 * timelineSize}
	for i, b := range buffers {
		kinds[i+1] = driver.StorageRead
		bindings[i+1] = driver.Binding{Buffer: b, Size: 4 * leastWords}
	}
	p, err := t.d.kernels.compiled(kernel{shader: "mark", entry: "mark", values: shaders.Values{"Written": len(buffers)}}, kinds)
	if err != nil {
		return nil, 0, err
	}
	group, err := t.d.drv.CreateBindGroup(p.id, bindings)
	return p, group, err
}

// markAfter appends to commands a mark that depends on one buffer, whose bind group is
// kept with the buffer.
func (t *timeline) markAfter(commands []driver.Command, m *memory) ([]driver.Command, error) {
	p, err := t.d.kernels.compiled(kernel{shader: "mark", entry: "mark", values: shaders.Values{"Written": 1}},
		[]driver.BindingKind{driver.StorageReadWrite, driver.StorageRead})
	if err != nil {
		return nil, err
	}
	if m.mark == 0 {
		if _, m.mark, err = t.after([]driver.BufferID{m.id}); err != nil {
			return nil, err
		}
	}
	return append(commands, driver.Dispatch(p.id, m.mark, 1, 1, 1)), nil
}

// copyMark copies the newest mark to the start of a buffer.
func (t *timeline) copyMark(to driver.BufferID) driver.Command {
	return driver.Copy(to, 0, t.state.id, 4*wordSerial, 4*markWords)
}

// take returns a small buffer for a mark to be read from. There are as many as
// submissions whose marks are read are in flight.
func (t *timeline) take() (driver.BufferID, error) {
	t.mu.Lock()
	if n := len(t.idle); n > 0 {
		id := t.idle[n-1]
		t.idle = t.idle[:n-1]
		t.mu.Unlock()
		return id, nil
	}
	t.mu.Unlock()
	return t.d.buffer("mark", markWords, driver.MapRead|driver.CopyDst)
}

// give takes the buffer back.
func (t *timeline) give(id driver.BufferID) {
	t.mu.Lock()
	t.idle = append(t.idle, id)
	t.mu.Unlock()
}

// verify waits until all submissions up to now are done, and checks that they ran.
func (t *timeline) verify(ctx context.Context) error {
	id, err := t.take()
	if err != nil {
		return err
	}
	defer t.give(id)
	want, err := t.submit([]driver.Command{t.copyMark(id)}, 0)
	if err != nil {
		return err
	}
	var words [markWords]uint32
	if err := t.d.drv.ReadMapped(ctx, id, 0, bytesOf(words[:]), t.d.watchdog); err != nil {
		return err
	}
	return checkCount(words[:], want)
}

// checkCount compares the count that was read back.
func checkCount(words []uint32, want uint32) error {
	if got := words[wordCount-wordSerial]; got != want {
		return fmt.Errorf("work that the device reports finished did not run: want mark %d, found %d: %w", want, got, pass.ErrDeviceLost)
	}
	return nil
}

// checkMark checks what was read back after a part of a run, and returns the run's
// status so far.
func checkMark(words []uint32, serial uint64, count uint32) (status uint32, err error) {
	if err := checkCount(words, count); err != nil {
		return 0, err
	}
	if got := uint64(words[0]) | uint64(words[1])<<32; got != serial {
		return 0, fmt.Errorf("want the mark of run %d, found that of run %d: %w", serial, got, pass.ErrDeviceLost)
	}
	return words[wordKept-wordSerial], nil
}
