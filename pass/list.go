package pass

// A list collects what an op declares, in memory that the lists of several ops share: most
// have two or three elements.
type list[T any] struct {
	all   []T
	room  []T // behind what was taken
	taken int // elements since rewind
	first []T // what rewind goes back to
}

// The memory is of so many elements, and is given up where fewer than most ops have are left.
const roomFor, roomLeft = 32, 4

// add returns the place of one more element.
func (l *list[T]) add() *T {
	if l.all == nil {
		if cap(l.room) < roomLeft {
			l.room = make([]T, 0, roomFor)
		}
		l.all = l.room
	}
	n := len(l.all)
	if n < cap(l.all) {
		l.all = l.all[:n+1]
	} else {
		var none T
		l.all = append(l.all, none) // elsewhere, since there is no room for all
	}
	return &l.all[n]
}

// take returns the elements, and begins anew.
func (l *list[T]) take() []T {
	n := len(l.all)
	if n == 0 {
		return nil
	}
	all := l.all[:n:n]
	l.all = nil
	l.taken += n
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

// rewind takes back what was taken: as much has room from then on.
func (l *list[T]) rewind() {
	if cap(l.first) < l.taken {
		l.first = make([]T, 0, l.taken+roomFor)
	}
	l.all, l.room, l.taken = nil, l.first[:0], 0
}
