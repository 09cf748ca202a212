package gpu

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tandem-gpu/tandem/pass"
)

// statusIndex is the bit of the status word that says: an index, a length or a row
// that lies on the device is beyond its range.
const statusIndex = 1

// statusNarrow is the bit that says: a finite value would become infinity in an F16 cache.
const statusNarrow = 2

// status returns the operand in whose first word kernels set bits (with atomicOr) when
// data on the device are beyond what the op allows. The run then fails.
func (c *compiler) status() operand {
	c.watched = append(c.watched, watch{len(c.dispatches), deviceNumbers(c.step.Op)})
	return operand{memory: c.state, write: true, end: statusWords}
}

// A watch says what dispatches from a number on check, if they have the status word.
type watch struct {
	from int
	what string // "copy: FromRow"
}

// deviceNumbers names the fields of an op that hold numbers on the device.
func deviceNumbers(op pass.Op) string {
	var names []string
	v := reflect.ValueOf(op)
	for i := range v.NumField() {
		var view pass.View
		switch x := v.Field(i).Interface().(type) {
		case pass.Index:
			view, _ = x.View()
		case pass.Items:
			view = x.View()
		}
		if !view.IsZero() {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	switch op.(type) {
	case pass.Embed:
		names = append(names, "IDs")
	case pass.Advance:
		names = append(names, "Index")
	}
	return op.Name() + ": " + strings.Join(names, " or ")
}

// statusError says what the bits of the status word mean after the dispatches [from, to).
func (p *program) statusError(status uint32, from, to int) error {
	if status == 0 {
		return nil
	}
	if status&statusIndex == 0 {
		return fmt.Errorf("append: K or V: a finite value is beyond the range of an F16 cache: %w", pass.ErrInvalid)
	}
	var suspects []string
	for i := from; i < to; i++ {
		if !slices.ContainsFunc(p.dispatches[i].operands, func(o operand) bool { return o.memory == p.s.timeline.state }) {
			continue
		}
		n := len(p.watched) // the last watch at or before i
		for n > 0 && p.watched[n-1].from > i {
			n--
		}
		if n > 0 && !slices.Contains(suspects, p.watched[n-1].what) {
			suspects = append(suspects, p.watched[n-1].what)
		}
	}
	return fmt.Errorf("%s: a number on the device is beyond its range: %w", strings.Join(suspects, ", or "), pass.ErrInvalid)
}
