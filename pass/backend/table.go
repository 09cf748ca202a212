package backend

// A table gives out slots that are told apart by a generation, so that a handle to
// what was removed is never mistaken for what came after.
type table[T any] struct {
	slots []slot[T]
	free  []uint32
}

type slot[T any] struct {
	generation uint32 // odd: in use
	value      T
}

// add returns the id, from 1 on, and the generation of a new slot.
func (t *table[T]) add(v T) (id, generation uint32) {
	if n := len(t.free); n > 0 {
		id = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		t.slots = append(t.slots, slot[T]{})
		id = uint32(len(t.slots))
	}
	s := &t.slots[id-1]
	s.generation++
	s.value = v
	return id, s.generation
}

// get returns what a slot holds if it was not removed since.
func (t *table[T]) get(id, generation uint32) (v T, ok bool) {
	if id == 0 || int(id) > len(t.slots) {
		return v, false
	}
	s := &t.slots[id-1]
	if s.generation != generation || generation%2 == 0 {
		return v, false
	}
	return s.value, true
}

// remove empties a slot and returns what it held.
func (t *table[T]) remove(id, generation uint32) (v T, ok bool) {
	v, ok = t.get(id, generation)
	if ok {
		t.slots[id-1] = slot[T]{generation: generation + 1}
		t.free = append(t.free, id)
	}
	return v, ok
}

// drain removes everything and returns it.
func (t *table[T]) drain() []T {
	var all []T
	for i := range t.slots {
		if s := &t.slots[i]; s.generation%2 == 1 {
			v, _ := t.remove(uint32(i+1), s.generation)
			all = append(all, v)
		}
	}
	return all
}
