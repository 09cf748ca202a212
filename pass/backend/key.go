package backend

import (
	"encoding/binary"
	"reflect"
	"sync"
	"unsafe"

	"github.com/tandem-gpu/tandem/pass"
)

// Key returns bytes that two plans of one session share only if they are the same: the same
// ops, one for one, on the same params, caches and buffers, and with temporaries, inputs and
// outputs that lie alike. A backend that has compiled one may run it for the other. It is
// nil if that cannot be told.
func (p *Plan) Key() []byte {
	k := keyWriter{b: keyRoom(256 * (len(p.Steps) + 1)), layouts: map[reflect.Type]*layout{}}
	k.numbers(int(p.Math), len(p.Steps), len(p.Temps), len(p.Inputs), len(p.Outputs), len(p.states))
	for _, ref := range p.states { // in another order, places would mean others
		k.numbers(int(ref.ID), int(ref.Generation))
	}
	for _, s := range p.Steps {
		if !k.op(s.Op) {
			recycle(k.b)
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

// keys are the memory of keys that nobody needs any more. A recording that is made again and
// again has its key in the same.
var keys sync.Pool

// keyRoom returns memory for a key of so many bytes, or more.
func keyRoom(n int) []byte {
	if b, ok := keys.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:0]
	}
	return make([]byte, 0, n)
}

// recycle gives up a key.
func recycle(key []byte) { keys.Put(&key) }

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
	at := (*[2]unsafe.Pointer)(unsafe.Pointer(&op))[1] // an interface's value, if it is no pointer
	for _, p := range l.fields {
		switch from := unsafe.Add(at, p.offset); p.kind {
		case plainField:
			k.b = append(k.b, unsafe.Slice((*byte)(from), p.size)...)
		case recordingField:
			own := byte(0)
			if *(*uint32)(from) != 0 {
				own = 1
			}
			k.b = append(k.b, own)
		case sliceField:
			s := *(*[]byte)(from) // whatever its elements are: where they lie, and how many
			k.numbers(len(s))
			k.b = append(k.b, unsafe.Slice(unsafe.SliceData(s), len(s)*int(p.size))...)
		}
	}
	return true
}

// A layout is what of an op's memory says what the op is.
type layout struct {
	id     int // of the type
	fields []field
	whole  bool // nothing is left out
}

// A field is some of an op's memory.
type field struct {
	kind         fieldKind
	offset, size uintptr
}

type fieldKind uint8

const (
	plainField     fieldKind = iota
	recordingField           // the number of a recording, of which only counts whether there is one
	sliceField               // a slice of numbers, of a size each
)

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
	l := &layout{id: len(layouts.of) + 1, whole: t.Kind() == reflect.Struct && t.Size() > unsafe.Sizeof(uintptr(0))}
	l.add(t, 0)
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
				l.fields = append(l.fields, field{recordingField, offset + f.Offset, 0})
				continue
			}
			l.add(f.Type, offset+f.Offset)
		}
	case k == reflect.Array:
		for i := range t.Len() {
			l.add(t.Elem(), offset+uintptr(i)*t.Elem().Size())
		}
	case k == reflect.Slice && number(t.Elem()):
		l.fields = append(l.fields, field{sliceField, offset, t.Elem().Size()})
	case number(t):
		if n := len(l.fields); n > 0 && l.fields[n-1].kind == plainField && l.fields[n-1].offset+l.fields[n-1].size == offset {
			l.fields[n-1].size += t.Size()
			return
		}
		l.fields = append(l.fields, field{plainField, offset, t.Size()})
	default:
		l.whole = false
	}
}

// number reports whether a type has nothing but a number.
func number(t reflect.Type) bool {
	k := t.Kind()
	return k == reflect.Bool || reflect.Int <= k && k <= reflect.Uint64 || k == reflect.Float32 || k == reflect.Float64
}
