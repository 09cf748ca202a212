package kernels

// A Fill sets rows of elements to a bit pattern.
type Fill struct {
	Y           Words
	Rows, Batch uint32
	Cols        uint32
	Value       uint32
}

var move = Family{"move", []Entry{
	{Name: "move_fill", Call: "move::fill", Args: Fill{}, Threads: 256},
}}
