package kernels

// A Softmax takes Count rows, Rows of each item. Long rows are cut into Stretches, of each
// of which Parts has the largest element and the sum of exponentials relative to it.
type Softmax struct {
	X, Y              View
	Parts             F32
	Count, Rows, Cols uint32
	Vectors           uint32
	Stretches         uint32
	Log               uint32 // 1: LogSoftmax
}

// An Argmax finds the largest of each of Count rows, Rows of each item, and stores its
// place at row ToRow + r of IDs. Parts has for each stretch of a long row the place and
// the key of its largest element.
type Argmax struct {
	X                 View
	IDs               Words
	Parts             U32
	ToRow             Index
	Count, Rows, Cols uint32
	Vectors           uint32
	Stretches         uint32
	_                 uint32
}

// Columns of a stretch of a long row.
const (
	SoftmaxStretch = 4096
	ArgmaxStretch  = 2048
)

var softmax = Family{"softmax", []Entry{
	{Name: "softmax_row_32", Call: "softmax::row<128, 8, 1>", Args: Softmax{}, Threads: 128},
	{Name: "softmax_row_512", Call: "softmax::row<128, 32, 4>", Args: Softmax{}, Threads: 128},
	{Name: "softmax_row_1536", Call: "softmax::row<128, 32, 12>", Args: Softmax{}, Threads: 128},
	{Name: "softmax_row_8192", Call: "softmax::row<256, 256, 8>", Args: Softmax{}, Threads: 256},
	{Name: "softmax_part", Call: "softmax::part", Args: Softmax{}, Threads: 256},
	{Name: "softmax_join", Call: "softmax::join", Args: Softmax{}, Threads: 256},
	{Name: "softmax_best_2048", Call: "softmax::best<128, 32>", Args: Argmax{}, Threads: 128},
	{Name: "softmax_best_8192", Call: "softmax::best<256, 256>", Args: Argmax{}, Threads: 256},
	{Name: "softmax_best_part", Call: "softmax::best_part", Args: Argmax{}, Threads: 256},
	{Name: "softmax_best_pick", Call: "softmax::best_pick", Args: Argmax{}, Threads: 128},
}}
