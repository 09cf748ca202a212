package pass

import (
	"slices"
	"sync"
)

// An Op is one step of a recording: a struct value of this package, such as [Gemm].
// The set is closed.
type Op interface {
	// Name returns the name of the op in lower case: "gemm".
	Name() string
	// Cuts returns the axes along which the op may be cut into parts; see [Part].
	// The op must come from [Check].
	Cuts() []Cut

	// describe declares arguments, params and cost to c, and returns the op with its
	// defaults made explicit.
	describe(c *checker) Op
	// part returns the op over [from, to) of an axis.
	part(axis Axis, from, to int) Op
}

// A Checked op is what backends receive: an op that is right in itself, with all its
// defaults (dense strides, a batch of one, whole spans) made explicit.
type Checked struct {
	Op     Op
	Args   []Arg
	Params []ParamUse
	Caches []CacheUse
	Cost   Cost
}

// Clone returns a copy that is not in the memory of a [Checker].
func (c Checked) Clone() Checked {
	c.Args, c.Params, c.Caches = slices.Clone(c.Args), slices.Clone(c.Params), slices.Clone(c.Caches)
	return c
}

// A ParamUse is a param that an op uses.
type ParamUse struct {
	Param
	Name string // the field of the op: "W"
}

// A CacheUse is a cache that an op reads or updates.
type CacheUse struct {
	Cache
	Name   string // the field of the op: "Cache"
	Access Access
}

// Check checks the shapes of an op and that its views lie within their buffers and
// alias only as the op allows. Errors wrap ErrInvalid and name op, argument, what was
// wanted and what was given. Whether the handles are alive is the backend's to say.
func Check(op Op) (Checked, error) {
	c := checkers.Get().(*checker)
	var checked Checked
	err := c.check(op, &checked)
	c.reset()
	checkers.Put(c)
	return checked, err
}

// checkers are used again, since recordings check thousands of ops.
var checkers = sync.Pool{New: func() any { return new(checker) }}

// A Checker checks the ops of a recording: for backends. What it returns lies in memory of
// its own, which may serve one recording after another. The zero Checker is ready for use, by
// one goroutine at a time.
type Checker struct{ c checker }

// Check puts into to what the function [Check] returns; it is the caller's until Reset. If
// there is an error, to is as it was.
func (k *Checker) Check(op Op, to *Checked) error {
	err := k.c.check(op, to)
	k.c.reset()
	return err
}

// Reset takes back the memory of all that Check has returned, for what is checked from then
// on: nobody may use it any more.
func (k *Checker) Reset() {
	k.c.args.rewind()
	k.c.params.rewind()
	k.c.caches.rewind()
}

// Access says how an op uses an argument.
type Access uint8

// The ways to use an argument. An update reads what the elements held before.
const (
	Read Access = 1 << iota
	Write
	Update = Read | Write
)

// String returns "read", "write" or "update".
func (a Access) String() string {
	switch a {
	case Read:
		return "read"
	case Write:
		return "write"
	case Update:
		return "update"
	}
	return "no access"
}

// An Arg is one argument of a checked op: the elements that it may touch.
type Arg struct {
	Name   string // the field of the op: "A"
	Access Access
	View   View // strides explicit
	Batch  int
	Rows   int
	Cols   int
}

// Range returns the first element that the argument may touch and the one after the
// last, within its buffer. An empty argument has an empty range.
func (a Arg) Range() (first, end int) {
	if a.Batch == 0 || a.Rows == 0 || a.Cols == 0 {
		return a.View.Offset, a.View.Offset
	}
	return a.View.Offset, a.View.Offset + (a.Batch-1)*a.View.BatchStride + (a.Rows-1)*a.View.RowStride + a.Cols
}

// A Cost is what an op takes at the least: floating-point operations, and bytes that
// must be moved from and to memory.
type Cost struct{ FLOP, Bytes float64 }

// Add returns the sum of two costs.
func (c Cost) Add(d Cost) Cost { return Cost{c.FLOP + d.FLOP, c.Bytes + d.Bytes} }

// An Axis is a direction along which an op may be cut.
type Axis uint8

// The axes.
const (
	AxisBatch   Axis = iota + 1 // items of the batch
	AxisRows                    // rows, or output steps in time
	AxisColumns                 // output columns or channels
	AxisHeads                   // heads of attention
)

// String returns the name of the axis.
func (a Axis) String() string {
	switch a {
	case AxisBatch:
		return "batch"
	case AxisRows:
		return "rows"
	case AxisColumns:
		return "columns"
	case AxisHeads:
		return "heads"
	}
	return "no axis"
}

// A Cut is an axis along which an op may be cut into parts that together do the same
// work, in any order: no summed axis is cut, so that the same kernel gives the same bits.
type Cut struct {
	Axis   Axis
	Extent int // parts are ranges of [0, Extent)
	Grain  int // where parts should begin at a multiple, for speed; at least 1
}

// Part returns the part [from, to), which is not empty, of a checked op along one of
// its Cuts.
func Part(op Checked, axis Axis, from, to int) (Checked, error) {
	for _, cut := range op.Op.Cuts() {
		if cut.Axis == axis && 0 <= from && from < to && to <= cut.Extent {
			return Check(op.Op.part(axis, from, to))
		}
	}
	c := checker{op: op.Op.Name()}
	c.failf("no part %d to %d along %v: cuts are %v", from, to, axis, op.Op.Cuts())
	return Checked{}, c.err
}

// Math says how exact a recording is.
type Math uint8

const (
	// Exact keeps float32-level results, whatever units compute them.
	Exact Math = iota
	// Fast may round operands of products to TF32 or F16; sums stay F32.
	Fast
)

// String returns "exact" or "fast".
func (m Math) String() string {
	if m == Fast {
		return "fast"
	}
	return "exact"
}
