package backend

import (
	"encoding/binary"
	"reflect"
	"sync"
	"unsafe"

	"github.com/tandem-gpu/tandem/pass"
)

// key returns bytes that two plans of one session share only if they are the same: the same
// ops, one for one, on the same params, caches and buffers, and with temporaries, inputs and
// outputs that lie alike. A backend that has compiled one may run it for the other. It is
// nil if that cannot be told, and in the memory that is given, if it is enough.
func (p *Plan) key(room []byte) []byte {
	if n := 256 * (len(p.Steps) + 1); cap(room) < n {
		room = make([]byte, 0, n)
	}
	k := keyWriter{b: room[:0], layouts: map[reflect.Type]*layout{}}
	k.numbers(int(p.Math), len(p.Steps), len(p.Temps), len(p.Inputs), len(p.Outputs), len(p.states))
	for _, ref := range p.states { // in another order, places would mean others
		k.numbers(int(ref.ID), int(ref.Generation))
	}
	for _, s := range p.Steps {
		if !k.op(s.Op) {
			return nil
		}
	}
	for _, t := range p.Temps {
		k.numbers(int(t.Type), t.Len, t.First, t.Last)
	}
	k.numbers(p.Inputs...)
	for _, o := range p.Outputs {
		state := 0
		if o.Place.State {
			state = 1
		}
		k.numbers(state, o.Place.Index, int(o.Type), o.Offset, o.Len)
	}
	return k.b
}

// A keyWriter writes a key.
type keyWriter struct {
	b       []byte
	layouts map[reflect.Type]*layout // of the ops so far
}

func (k *keyWriter) numbers(all ...int) {
	for _, n := range all {
		k.b = binary.LittleEndian.AppendUint64(k.b, uint64(n))
	}
}

// op writes an op, or reports that it cannot.
func (k *keyWriter) op(op pass.Op) bool {
	t := reflect.TypeOf(op)
	l := k.layouts[t]
	if l == nil {
		l = layoutOf(t)
		k.layouts[t] = l
	}
	if !l.whole {
		return false
	}
	k.numbers(l.id)
	from := len(k.b)
	at := (*[2]unsafe.Pointer)(unsafe.Pointer(&op))[1] // an interface's value, if it is no pointer
	k.b = append(k.b, unsafe.Slice((*byte)(at), l.size)...)
	b := k.b[from:]
	for _, g := range l.gaps {
		clear(b[g.from:g.to])
	}
	for _, i := range l.recordings {
		if own := b[i : i+4]; binary.NativeEndian.Uint32(own) != 0 {
			binary.NativeEndian.PutUint32(own, 1)
		}
	}
	for _, f := range l.slices {
		s := *(*[]byte)(unsafe.Add(at, f.offset)) // whatever its elements are: where they lie, and how many
		k.numbers(len(s))
		k.b = append(k.b, unsafe.Slice(unsafe.SliceData(s), len(s)*int(f.size))...)
	}
	return true
}

// A layout is what of an op's memory says what the op is: all but gaps.
type layout struct {
	id         int // of the type
	size       uintptr
	gaps       []gap
	recordings []uintptr // where numbers of recordings are, of which only counts whether there is one
	slices     []field   // of numbers
	end        uintptr   // of what is known so far
	whole      bool      // nothing is left out
}

// A gap is what an op's memory holds for nobody, between fields, and what is not written as
// it lies.
type gap struct{ from, to uintptr }

// A field is a slice in an op, of numbers of a size each.
type field struct{ offset, size uintptr }

var layouts struct {
	sync.Mutex
	of map[reflect.Type]*layout
}

func layoutOf(t reflect.Type) *layout {
	layouts.Lock()
	defer layouts.Unlock()
	if l, ok := layouts.of[t]; ok {
		return l
	}
	if layouts.of == nil {
		layouts.of = map[reflect.Type]*layout{}
	}
	l := &layout{id: len(layouts.of) + 1, size: t.Size(), whole: t.Kind() == reflect.Struct && t.Size() > unsafe.Sizeof(uintptr(0))}
	l.add(t, 0)
	l.plain(t.Size(), 0)
	layouts.of[t] = l
	return l
}

var (
	refType   = reflect.TypeFor[pass.Ref]()
	paramType = reflect.TypeFor[pass.Param]()
)

// add appends the fields of a type that lies at an offset.
func (l *layout) add(t reflect.Type, offset uintptr) {
	if t == paramType { // the handle says what shape it has
		f, _ := t.FieldByName("ref")
		l.add(f.Type, offset+f.Offset)
		return
	}
	switch k := t.Kind(); {
	case k == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if t == refType && f.Name == "Recording" {
				l.recordings = append(l.recordings, offset+f.Offset)
				l.plain(offset+f.Offset, f.Type.Size())
				continue
			}
			l.add(f.Type, offset+f.Offset)
		}
	case k == reflect.Array:
		for i := range t.Len() {
			l.add(t.Elem(), offset+uintptr(i)*t.Elem().Size())
		}
	case k == reflect.Slice && number(t.Elem()):
		l.slices = append(l.slices, field{offset, t.Elem().Size()})
	case number(t):
		l.plain(offset, t.Size())
	default:
		l.whole = false
	}
}

// plain notes a field that is written as it lies, the next one.
func (l *layout) plain(offset, size uintptr) {
	if offset > l.end {
		l.gaps = append(l.gaps, gap{l.end, offset})
	}
	l.end = offset + size
}

// number reports whether a type has nothing but a number.
func number(t reflect.Type) bool {
	k := t.Kind()
	return k == reflect.Bool || reflect.Int <= k && k <= reflect.Uint64 || k == reflect.Float32 || k == reflect.Float64
}
