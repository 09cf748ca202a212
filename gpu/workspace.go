package gpu

import "fmt"

// A workspace is the buffers in which the temporaries of all recordings of a stream
// lie, one recording at a time. It grows to the largest of them.
type workspace struct {
	buffers    []*memory
	generation int       // of buffers: counts how often it grew
	open       bool      // a run is between its first part and its last
	retired    []*memory // replaced, but a run that is open may use them
}

// grow makes the workspace have buffers of at least the given words, and no more
// memory than it must hold meanwhile.
func (w *workspace) grow(d *device, words []int) error {
	buffers := make([]*memory, max(len(words), len(w.buffers)))
	copy(buffers, w.buffers)
	var made, replaced []*memory
	for i, n := range words {
		if buffers[i] != nil && buffers[i].words >= n {
			continue
		}
		m, err := d.alloc(fmt.Sprintf("workspace %d", i), n)
		if err != nil {
			for _, m := range made {
				m.Free()
			}
			return err
		}
		if buffers[i] != nil {
			replaced = append(replaced, buffers[i])
		}
		made = append(made, m)
		buffers[i] = m
	}
	if made == nil {
		return nil
	}
	w.buffers = buffers
	w.generation++
	w.retired = append(w.retired, replaced...)
	if !w.open {
		w.sweep()
	}
	return nil
}

// sweep frees what was replaced. Work that was submitted keeps what it uses.
func (w *workspace) sweep() {
	for _, m := range w.retired {
		m.Free()
	}
	w.retired = w.retired[:0]
}

func (w *workspace) free() {
	w.sweep()
	for _, m := range w.buffers {
		m.Free()
	}
	w.buffers = nil
}

// bytes returns the size of the workspace.
func (w *workspace) bytes() int {
	n := 0
	for _, m := range w.buffers {
		n += 4 * m.words
	}
	return n
}
