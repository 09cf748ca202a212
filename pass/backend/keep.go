package backend

import (
	"bytes"
	"errors"
	"slices"
	"sync"

	"github.com/tandem-gpu/tandem/pass"
)

// A Keepable program can serve one recording after another. When its own is closed it is
// kept for one that is the same, since compiling takes longer than recording.
type Keepable interface {
	Program
	// Rest is called when the recording is closed and no part is in flight. The program
	// gives up what only runs need, and says how many kernels it has, or that it is of no
	// more use. From then on it does not look at its plan, whose memory others get. It is
	// freed in the end, by whichever goroutine finds that it has to go.
	Rest() (kernels int, ok bool)
	// Resume makes a program that rests ready for a plan whose key is that of its own, or
	// reports that it cannot be; then it is freed.
	Resume(p *Plan) bool
}

// A session keeps this many programs, of as many kernels together.
const (
	KeptPrograms = 4
	KeptKernels  = 8192
)

// A keeper has the programs that a session keeps. Any goroutine may use it.
type keeper struct {
	mu     sync.Mutex
	kept   []kept // the latest last
	spare  []byte // memory of a key that nobody needs any more
	closed bool
}

type kept struct {
	program Keepable
	key     []byte
	kernels int
}

// empty reports whether nothing is kept, so that nobody need ask.
func (k *keeper) empty() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.kept) == 0
}

// room returns memory for a key: what is recorded again and again has its keys in the same.
func (k *keeper) room() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	b := k.spare
	k.spare = nil
	return b
}

// recycle takes the memory of a key back.
func (k *keeper) recycle(key []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.recycleLocked(key)
}

func (k *keeper) recycleLocked(key []byte) {
	if !k.closed && cap(key) > cap(k.spare) {
		k.spare = key
	}
}

// take returns the latest program with a key, which is the caller's from then on.
func (k *keeper) take(key []byte) (Keepable, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, p := range slices.Backward(k.kept) {
		if key != nil && bytes.Equal(p.key, key) {
			k.kept = slices.Delete(k.kept, i, i+1)
			k.recycleLocked(p.key)
			return p.program, true
		}
	}
	return nil, false
}

// put keeps a program that rests, and frees what is too much: the latest stay, but for one
// that is too large by itself.
func (k *keeper) put(p kept) {
	if p.kernels > KeptKernels {
		k.free([]kept{p})
		return
	}
	k.mu.Lock()
	k.kept = append(k.kept, p)
	from, kernels := len(k.kept), 0
	for ; from > 0 && len(k.kept)-from < KeptPrograms; from-- {
		if kernels += k.kept[from-1].kernels; kernels > KeptKernels {
			break
		}
	}
	if k.closed {
		from = len(k.kept)
	}
	old := slices.Clone(k.kept[:from])
	k.kept = slices.Delete(k.kept, 0, from)
	k.mu.Unlock()
	k.free(old)
}

// forget frees all, and reports whether there were any.
func (k *keeper) forget() bool {
	k.mu.Lock()
	all := k.kept
	k.kept, k.spare = nil, nil
	k.mu.Unlock()
	k.free(all)
	return len(all) > 0
}

// close frees all, and what is put from then on.
func (k *keeper) close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.forget()
}

func (k *keeper) free(all []kept) {
	for _, p := range all {
		p.program.Free()
		k.recycle(p.key)
	}
}

// scarce reports whether to try again what failed for want of memory: programs that
// sessions of the device had kept have been given up.
func (d *device) scarce(err error) bool {
	if !errors.Is(err, pass.ErrOutOfMemory) {
		return false
	}
	d.mu.Lock()
	sessions := make([]*session, 0, len(d.sessions))
	for s := range d.sessions {
		sessions = append(sessions, s)
	}
	d.mu.Unlock()
	some := false
	for _, s := range sessions {
		some = s.kept.forget() || some
	}
	return some
}
