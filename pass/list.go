package pass

// A list collects what an op declares, in memory that the lists of several ops share: most
// have two or three elements.
type list[T any] struct {
	all  []T
	room []T // behind what was taken
}

// The memory is of so many elements, and is given up where fewer than most ops have are left.
const roomFor, roomLeft = 32, 4

func (l *list[T]) add(v T) {
	if l.all == nil {
		if cap(l.room) < roomLeft {
			l.room = make([]T, 0, roomFor)
		}
		l.all = l.room
	}
	l.all = append(l.all, v) // elsewhere, if there is no room for all
}

// take returns the elements, and begins anew.
func (l *list[T]) take() []T {
	n := len(l.all)
	if n == 0 {
		return nil
	}
	all := l.all[:n:n]
	l.all = nil
	if n <= cap(l.room) {
		l.room = l.room[n:n]
	}
	return all
}

// drop forgets the elements.
func (l *list[T]) drop() {
	clear(l.all)
	l.all = nil
}
