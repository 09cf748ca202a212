package gpu

import (
	"math"
	"slices"

	"github.com/tandem-gpu/tandem/pass"
)

// Numbers is where a kernel finds one number for each item of a batch.
type numbers struct {
	kind  string // "none", "fixed" or "device"
	o     operand
	shift uint32
}

// numbers makes the items' numbers known to a kernel. Those that are all the same as
// what they default to need no buffer.
func (c *compiler) numbers(x pass.Items, batch int, usual func(item int) int) numbers {
	if v := x.View(); !v.IsZero() {
		o, shift := c.bind(v.Buffer, v.Offset, v.Offset+batch, false)
		return numbers{"device", o, shift}
	}
	fixed := x.Fixed()
	words := make([]uint32, len(fixed))
	same := true
	for i, n := range fixed {
		words[i] = uint32(n)
		same = same && n == usual(i)
	}
	if same {
		return numbers{kind: "none"}
	}
	return numbers{kind: "fixed", o: c.fixed(words)}
}

// Indexed is where a kernel finds the row that an Index names: a constant, or a number
// on the device to which one is added.
type indexed struct {
	numbers
	added int
	each  uint32 // 1: every item has its own
	valid uint32 // the numbers on the device that are within range: 0 … valid−1
}

// index makes an index known to a kernel, which leads to count rows of limit.
func (c *compiler) index(x pass.Index, batch, count, limit int) indexed {
	i := indexed{numbers: numbers{kind: "none"}, added: x.Addend()}
	if _, ok := x.Const(); ok {
		return i
	}
	at, each := x.View()
	n := 1
	if each {
		i.each, n = 1, batch
	}
	o, shift := c.bind(at.Buffer, at.Offset, at.Offset+n, false)
	i.numbers = numbers{"device", o, shift}
	i.valid = uint32(min(int64(max(limit-count-i.added+1, 0)), math.MaxUint32))
	return i
}

// words returns where the number is, and how many are valid.
func (i indexed) words() []uint32 { return []uint32{i.shift, i.each, i.valid} }

// numbered is a kernel under construction whose operands get their binding as they are
// added.
type numbered struct {
	kernel
	operands []operand
}

// bind adds an operand and sets a constant to its binding, 0 if it is left out.
func (n *numbered) bind(constant string, wanted bool, o operand) {
	n.values[constant] = 0
	if wanted {
		n.operands = append(n.operands, o)
		n.values[constant] = len(n.operands)
	}
}

// status adds the status word if any of the numbers comes from the device.
func (n *numbered) status(c *compiler, from ...numbers) {
	wanted := slices.ContainsFunc(from, func(x numbers) bool { return x.kind == "device" })
	n.values["Fault"] = statusIndex
	if wanted {
		n.bind("StatusBinding", true, c.status())
	} else {
		n.bind("StatusBinding", false, operand{})
	}
}
