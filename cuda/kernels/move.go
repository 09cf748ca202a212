package kernels

// A Fill sets elements to a bit pattern. For Units, Cols, Quads and Rows see pointwise.go.
type Fill struct {
	Units, Cols int64
	Quads, Rows Divisor
	Y           Words
	Value       uint32
	Vectors     uint32
}

// A Copy copies rows: row r of each item from row FromRow + r to row ToRow + r.
type Copy struct {
	Units, Cols    int64
	Quads, Rows    Divisor
	X, Y           Words
	FromRow, ToRow Index
	Vectors        uint32
	_              uint32
}

// A Permute gathers the elements of Y in order. From has the strides of X along the axes
// of Y; Inner is how many rows of Y make up its second axis.
type Permute struct {
	Units, Cols int64
	Quads, Rows Divisor
	X, Y        Words
	From        [4]int64
	Inner       uint32
	Vectors     uint32
}

// A Transpose moves tiles of 32 × 32 elements. Along is the last axis of Y, Across the
// last of X; of each there are as many elements and tiles as it says. The two axes that
// are left, Inner numbers of the second, have strides in X and in Y.
type Transpose struct {
	X, Y                    Words
	XOuter, XInner, XAlong  int64
	YOuter, YInner, YAcross int64
	Along, Across           uint32
	TilesAlong, TilesAcross uint32
	Inner                   uint32
	_                       uint32
}

// An Advance steps the counters of Batch items. The zero views of Done and IDs say that
// there are none.
type Advance struct {
	Index, Done, IDs Words
	Status           U32
	Batch, By        uint32
	IDRows, Plus     uint32
	Stops            uint32
	Stop             [16]uint32
	_                uint32
}

var move = Family{"move", []Entry{
	{Name: "move_fill", Call: "move::fill", Args: Fill{}, Threads: 256},
	{Name: "move_copy", Call: "move::copy", Args: Copy{}, Threads: 256},
	{Name: "move_gather", Call: "move::gather", Args: Permute{}, Threads: 256},
	{Name: "move_transpose", Call: "move::transpose", Args: Transpose{}, Threads: 256},
	{Name: "move_advance", Call: "move::advance", Args: Advance{}, Threads: 128},
}}
