package gpu

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
)

// Uploads go through a ring of buffers, so that the host fills one while the device
// copies from others. Letting the library stage them instead would keep a copy of
// everything until the next submission.
const (
	stagingSlots = 4
	slotWords    = 1 << 20 // 4 MiB; the ring has 16
)

// staging is the ring of a device.
type staging struct {
	d      *device
	tokens chan struct{} // one for each slot that nobody fills
	loads  chan struct{} // one for each Load that may hold a slot

	mu    sync.Mutex
	slots []*slot // those that nobody fills, least recently used first
}

// A slot is one buffer of the ring, and host memory of the same size.
type slot struct {
	id     driver.BufferID // 0: not made yet
	host   []uint32
	serial uint64 // no submission after this one copies from it
}

func newStaging(d *device) *staging {
	s := &staging{d: d, tokens: make(chan struct{}, stagingSlots), loads: make(chan struct{}, stagingSlots/2)}
	for range stagingSlots {
		s.tokens <- struct{}{}
		s.slots = append(s.slots, &slot{})
	}
	return s
}

// take returns a slot: the last one used that the device is through with, so that no
// more are made than are needed, or else the first that it will be through with.
func (s *staging) take(ctx context.Context) (*slot, error) {
	select {
	case <-s.tokens:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	done, err := s.d.drv.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	pick := 0
	for i, t := range slices.Backward(s.slots) {
		if err == nil && t.host != nil && t.serial <= uint64(done) {
			pick = i
			break
		}
	}
	t := s.slots[pick]
	s.slots = slices.Delete(s.slots, pick, pick+1)
	return t, nil
}

// give takes a slot back.
func (s *staging) give(t *slot) {
	t.serial = s.d.newest.Load()
	s.mu.Lock()
	s.slots = append(s.slots, t)
	s.mu.Unlock()
	s.tokens <- struct{}{}
}

// free frees the buffers. All slots have been given back.
func (s *staging) free() {
	for _, t := range s.slots {
		s.d.drop(t.id)
	}
	s.slots = nil
}

// slotWords returns how many words a slot of the device's ring has.
func (d *device) slotWords() int { return int(min(slotWords, d.limits.MaxBufferSize/4)) }

// An upload brings words to memory. They are on their way after flush at the latest.
// Where memory can be mapped they are written in place.
type upload struct {
	d        *device
	t        *timeline
	slot     *slot
	used     int // words of the slot
	targets  []*memory
	commands []driver.Command
}

func newUpload(d *device, t *timeline) *upload { return &upload{d: d, t: t} }

// close gives the slot back. What was not flushed is dropped.
func (u *upload) close() {
	if u.slot != nil {
		u.d.staging.give(u.slot)
		u.slot = nil
	}
}

// write brings data to m from word at on.
func (u *upload) write(ctx context.Context, m *memory, at int, data []uint32) error {
	if u.d.mapped {
		return u.d.drv.WriteMapped(ctx, m.id, 4*uint64(at), bytesOf(data), u.d.watchdog)
	}
	return u.stream(ctx, m, at, len(data), func(dst []uint32, from int) error {
		copy(dst, data[from:])
		return nil
	})
}

// stream brings words to m from word at on. fill makes the words from one on.
func (u *upload) stream(ctx context.Context, m *memory, at, words int, fill func(dst []uint32, from int) error) error {
	for from := 0; from < words; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := u.reserve(ctx); err != nil {
			return err
		}
		n := min(len(u.slot.host)-u.used, words-from)
		chunk := u.slot.host[u.used:][:n]
		if err := fill(chunk, from); err != nil {
			return err
		}
		if u.d.mapped {
			if err := u.d.drv.WriteMapped(ctx, m.id, 4*uint64(at+from), bytesOf(chunk), u.d.watchdog); err != nil {
				return err
			}
		} else {
			u.commands = append(u.commands, driver.Copy(m.id, 4*uint64(at+from), u.slot.id, 4*uint64(u.used), 4*uint64(n)))
			u.used += n
			if !slices.Contains(u.targets, m) {
				u.targets = append(u.targets, m)
			}
		}
		from += n
	}
	return nil
}

// reserve makes sure that there is a slot with room.
func (u *upload) reserve(ctx context.Context) error {
	if u.slot != nil && u.used == len(u.slot.host) {
		if err := u.flush(ctx); err != nil {
			return err
		}
	}
	if u.slot == nil {
		s, err := u.d.staging.take(ctx)
		if err != nil {
			return err
		}
		u.slot, u.used = s, 0
	}
	if u.slot.host == nil {
		u.slot.host = make([]uint32, u.d.slotWords())
	}
	if u.slot.id == 0 && !u.d.mapped {
		id, err := u.d.buffer("staging", len(u.slot.host), driver.MapWrite|driver.CopySrc)
		if err != nil {
			return fmt.Errorf("staging: %w", err)
		}
		u.slot.id = id
	}
	return nil
}

// flush submits what has gathered.
func (u *upload) flush(ctx context.Context) error {
	if len(u.commands) == 0 {
		return nil
	}
	// The device may copy from the slot for its last user: this waits for it.
	if err := u.d.drv.WriteMapped(ctx, u.slot.id, 0, bytesOf(u.slot.host[:u.used]), u.d.watchdog); err != nil {
		return err
	}
	commands, err := u.commands, error(nil)
	for _, m := range u.targets {
		if commands, err = u.t.markAfter(commands, m); err != nil {
			return err
		}
	}
	if _, err := u.t.submit(commands, len(u.targets)); err != nil {
		return err
	}
	u.commands, u.targets = commands[:0], u.targets[:0]
	u.close()
	return nil
}

// bytesOf returns the memory of words.
func bytesOf(words []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))
}
