package kernels

// Types of the weights of a table.
const (
	TableF32 = iota
	TableF16
	TableBF16
	TableQ8
)

// A RowTable is weights of which rows are looked up. Rows are Stride elements apart, a
// multiple of 16 bytes; Q8_0 has its scales, one for 32 elements, apart.
type RowTable struct {
	Values U32
	Scales F16
	Stride int64
	Rows   uint32
	Type   uint32
}

// An Embed looks up rows of a table by ids, and adds rows of Positions, if there are any.
// For Units, Cols, Quads and Rows see pointwise.go.
type Embed struct {
	Units, Cols      int64
	Quads, Rows      Divisor
	IDs              Words
	Y                View
	Table, Positions RowTable
	IDRow, Pos       Index
	Status           U32
	Vectors          uint32
	_                uint32
}

var linearEmbed = Family{"linear_embed", []Entry{
	{Name: "linear_embed", Call: "embed::rows_of", Args: Embed{}, Threads: 256},
}}
