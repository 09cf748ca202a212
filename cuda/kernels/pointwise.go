package kernels

// Parameters of elementwise kernels begin with what they visit: Units quads of elements,
// Quads in each row of Cols elements, Rows of each item; see rows.cuh. Items and rows that
// follow each other without gaps count as one row.

// A Map applies an epilogue to each element.
type Map struct {
	Units, Cols int64
	Quads, Rows uint32
	X, Y        View
	Epilogue    Epilogue
	Vectors     uint32
	_           uint32
}

// A Magnitude takes absolute values of complex numbers, the imaginary parts Width elements
// after the real ones.
type Magnitude struct {
	Units, Cols int64
	Quads, Rows uint32
	X, Y        View
	Width       int64
	Vectors     uint32
	_           uint32
}

// An Addition adds B to A. What serves all rows or items has a stride of 0.
type Addition struct {
	Units, Cols int64
	Quads, Rows uint32
	A, B, Y     View
	Vectors     uint32
	_           uint32
}

// A Scale multiplies by a constant.
type Scale struct {
	Units, Cols int64
	Quads, Rows uint32
	X, Y        View
	Factor      float32
	Vectors     uint32
}

// A Gate multiplies elements by the sigmoid of gates, and with Swish by the gates too.
// Value and Gate say where in a row of X they begin.
type Gate struct {
	Units, Cols int64
	Quads, Rows uint32
	X, Y        View
	Value, Gate int64
	Swish       uint32
	Vectors     uint32
}

var pointwise = Family{"pointwise", []Entry{
	{Name: "pointwise_map", Call: "pointwise::map", Args: Map{}, Threads: 256},
	{Name: "pointwise_magnitude", Call: "pointwise::magnitude", Args: Magnitude{}, Threads: 256},
	{Name: "pointwise_add", Call: "pointwise::add", Args: Addition{}, Threads: 256},
	{Name: "pointwise_scale", Call: "pointwise::scale", Args: Scale{}, Threads: 256},
	{Name: "pointwise_gate", Call: "pointwise::gate", Args: Gate{}, Threads: 256},
}}
