package kernels

import "math/bits"

// Parameters of elementwise kernels begin with what they visit: Units quads of elements,
// Quads in each row of Cols elements, Rows of each item; see rows.cuh. Items and rows that
// follow each other without gaps count as one row.

// A Divisor divides numbers below 2^31 by By: their product with Factor is shifted right by
// Shift (Granlund and Montgomery, Division by invariant integers using multiplication,
// 1994).
type Divisor struct{ By, Factor, Shift uint32 }

// DivisorOf returns the divisor for a number from 1 on.
func DivisorOf(d uint32) Divisor {
	if d > 1<<31 {
		return Divisor{By: d} // of what is smaller
	}
	l := bits.Len32(d - 1)
	return Divisor{d, uint32(1<<(31+l)/uint64(d) + 1), uint32(31 + l)}
}

// A Map applies an epilogue to each element.
type Map struct {
	Units, Cols int64
	Quads, Rows Divisor
	X, Y        View
	Epilogue    Epilogue
	Vectors     uint32
	_           uint32
}

// A Magnitude takes absolute values of complex numbers, the imaginary parts Width elements
// after the real ones.
type Magnitude struct {
	Units, Cols int64
	Quads, Rows Divisor
	X, Y        View
	Width       int64
	Vectors     uint32
	_           uint32
}

// An Addition adds B to A. What serves all rows or items has a stride of 0.
type Addition struct {
	Units, Cols int64
	Quads, Rows Divisor
	A, B, Y     View
	Vectors     uint32
	_           uint32
}

// A Scale multiplies by a constant.
type Scale struct {
	Units, Cols int64
	Quads, Rows Divisor
	X, Y        View
	Factor      float32
	Vectors     uint32
}

// A Gate multiplies elements by the sigmoid of gates, and with Swish by the gates too.
// Value and Gate say where in a row of X they begin.
type Gate struct {
	Units, Cols int64
	Quads, Rows Divisor
	X, Y        View
	Value, Gate int64
	Swish       uint32
	Vectors     uint32
}

var pointwise = Family{"pointwise", []Entry{
	{Name: "pointwise_map", Call: "pointwise::map", Args: Map{}, Threads: 256, Waits: true},
	{Name: "pointwise_magnitude", Call: "pointwise::magnitude", Args: Magnitude{}, Threads: 256, Waits: true},
	{Name: "pointwise_add", Call: "pointwise::add", Args: Addition{}, Threads: 256, Waits: true},
	{Name: "pointwise_scale", Call: "pointwise::scale", Args: Scale{}, Threads: 256, Waits: true},
	{Name: "pointwise_gate", Call: "pointwise::gate", Args: Gate{}, Threads: 256, Waits: true},
}}
