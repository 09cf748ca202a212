package cuda

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/tandem-gpu/tandem/cuda/internal/driver"
	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// How large the workspace of a recording is, and where something lies in it, is known when
// the last of its ops is compiled. Until then everything in it has a provisional address: in
// a range of its own, of addresses that no device has, and larger than any memory. The
// ranges are numbered: the head of the arena, the plan's temporaries and inputs, and then
// scratch. They begin at multiples of what real ones begin at a multiple of.
const (
	provisional  driver.Pointer = 1 << 63
	rangeShift                  = 42
	rangeMiddle  driver.Pointer = 1 << (rangeShift - 1) // so that what lies a little before is within it too
	mostRanges                  = 1 << (63 - rangeShift)
	headRange                   = 0
	firstInRange                = 1 // of the temporaries
)

// provisionalAt returns where a range begins.
func provisionalAt(number int) driver.Pointer {
	return provisional + driver.Pointer(number)<<rangeShift + rangeMiddle
}

// A layout says where ranges begin: an address for each.
type layout []driver.Pointer

// real returns what an address stands for, if it is provisional.
func (l layout) real(at driver.Pointer) driver.Pointer {
	if at&provisional == 0 {
		return at
	}
	at -= provisional
	return l[at>>rangeShift] + at&(1<<rangeShift-1) - rangeMiddle
}

// layOut lays out the memory of a plan of which some temporaries are used and whose steps
// need the given scratch. It returns the offsets of the plan's temporaries and then of the
// scratch, in elements, and the length of all in bytes.
func layOut(plan *backend.Plan, used []bool, scratch []backend.Temp) (offsets []int, bytes int) {
	const align = 64 // elements: what tensor maps and vector loads want, and a little more
	laid := *plan
	laid.Temps = slices.Concat(plan.Temps, scratch)
	for i := range plan.Temps {
		if t := &laid.Temps[i]; !used[i] && t.Last < len(plan.Steps) { // it is no output
			t.Len = 0
		}
	}
	at := inputsAt / 4
	inputs := make([]int, len(plan.Inputs)) // which lie apart, since they are filled before a run
	for i, k := range plan.Inputs {
		inputs[i] = at
		at += up(plan.Temps[k].Len, align)
		laid.Temps[k].Len = 0
	}
	offsets, length := laid.Pack(align)
	for i := range offsets {
		offsets[i] += at
	}
	for i, k := range plan.Inputs {
		offsets[k] = inputs[i]
	}
	return offsets, 4 * (at + length)
}

// settle gives the launches their real addresses: those in a workspace at the given one,
// by the offsets of layOut.
func (c *compiler) settle(workspace driver.Pointer, offsets []int) error {
	l := make(layout, firstInRange+len(offsets))
	l[headRange] = workspace
	for i, offset := range offsets {
		l[firstInRange+i] = workspace + driver.Pointer(4*offset)
	}
	for i := range c.launches {
		launch := &c.launches[i]
		for _, offset := range launch.pointers {
			at := (*driver.Pointer)(unsafe.Pointer(&launch.args[offset]))
			*at = l.real(*at)
		}
		for j := range launch.touches {
			t := &launch.touches[j]
			t.from, t.to = l.real(t.from), l.real(t.to)
		}
		for _, m := range launch.maps {
			m.key.address = l.real(m.key.address)
			made, err := c.tensorMap(m.key)
			if err != nil {
				return fmt.Errorf("op %d: %s: kernel %s: tensor map: %w", launch.step, launch.label, launch.entry.Name, err)
			}
			copy(launch.args[m.offset:], made[:])
		}
		launch.maps = nil // which are large, and programs are kept
	}
	return nil
}

// pointers returns where the parameters of a kernel have addresses: offsets in bytes.
func pointers(args reflect.Type) []uintptr { return appendPointers(nil, args, 0) }

func appendPointers(to []uintptr, t reflect.Type, offset uintptr) []uintptr {
	switch t {
	case reflect.TypeFor[kernels.F32](), reflect.TypeFor[kernels.U32](), reflect.TypeFor[kernels.F16](), reflect.TypeFor[kernels.I8]():
		return append(to, offset)
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			to = appendPointers(to, f.Type, offset+f.Offset)
		}
	case reflect.Array:
		for i := range t.Len() {
			to = appendPointers(to, t.Elem(), offset+uintptr(i)*t.Elem().Size())
		}
	}
	return to
}

// checkRanges refuses a recording of more pieces of memory than there are ranges.
func checkRanges(n int) error {
	if firstInRange+n <= mostRanges {
		return nil
	}
	return fmt.Errorf("%d temporaries and pieces of scratch memory: want at most %d: %w", n, mostRanges-firstInRange, pass.ErrUnsupported)
}
