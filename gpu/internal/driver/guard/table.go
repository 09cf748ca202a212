package guard

import (
	"fmt"
	"sync/atomic"

	"github.com/tandem-gpu/tandem/pass"
)

// An object's name is the tag of its device, the generation of its slot and the slot,
// so that a stale or a foreign name is recognised and looking one up is an index.
const (
	slotBits       = 24
	generationBits = 24
	tagBits        = 16

	slotMask       = 1<<slotBits - 1
	generationMask = 1<<generationBits - 1
	tagMask        = 1<<tagBits - 1
)

var lastTag atomic.Uint64

// nextTag numbers the devices of the process from 1.
func nextTag() uint64 {
	for {
		if tag := lastTag.Add(1) & tagMask; tag != 0 {
			return tag
		}
	}
}

type slot[T any] struct {
	generation uint64
	object     *T
}

// table holds the objects of one kind.
type table[T any] struct {
	kind  string
	tag   uint64
	most  int // slots
	slots []slot[T]
	free  []int
}

func newTable[T any](kind string, tag uint64) table[T] {
	return table[T]{kind: kind, tag: tag, most: slotMask + 1}
}

func (t *table[T]) add(object *T) (uint64, error) {
	var i int
	if n := len(t.free); n > 0 {
		i = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		if len(t.slots) >= t.most {
			return 0, fmt.Errorf("driver: more than %d objects of kind %s: %w", t.most, t.kind, pass.ErrOutOfMemory)
		}
		t.slots = append(t.slots, slot[T]{generation: 1})
		i = len(t.slots) - 1
	}
	t.slots[i].object = object
	return t.tag<<(slotBits+generationBits) | t.slots[i].generation<<slotBits | uint64(i), nil
}

// get finds an object; the error says why there is none.
func (t *table[T]) get(id uint64) (*T, error) {
	i := int(id & slotMask)
	if id>>slotBits&generationMask != 0 && id>>(slotBits+generationBits) == t.tag && i < len(t.slots) {
		if s := &t.slots[i]; s.generation == id>>slotBits&generationMask && s.object != nil {
			return s.object, nil
		}
	}
	return nil, t.missing(id)
}

func (t *table[T]) missing(id uint64) error {
	switch {
	case id == 0:
		return fmt.Errorf("no %s given: %w", t.kind, pass.ErrInvalid)
	case id>>(slotBits+generationBits) != t.tag:
		return fmt.Errorf("%s %#x is not of this device: %w", t.kind, id, pass.ErrInvalid)
	default:
		return fmt.Errorf("%s %#x is destroyed: %w", t.kind, id, pass.ErrInvalid)
	}
}

func (t *table[T]) remove(id uint64) {
	i := int(id & slotMask)
	s := &t.slots[i]
	s.object = nil
	s.generation = s.generation%generationMask + 1
	t.free = append(t.free, i)
}

// each calls f for every object.
func (t *table[T]) each(f func(*T)) {
	for i := range t.slots {
		if o := t.slots[i].object; o != nil {
			f(o)
		}
	}
}

// clear forgets every object.
func (t *table[T]) clear() {
	t.slots, t.free = nil, nil
}
