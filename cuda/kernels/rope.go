package kernels

// A Rope turns heads of Head elements in place, the first 2·Half elements of each. A unit
// is four pairs with Vectors, else one; Quads of them make a row. Table has Half cosines
// and then Half sines for each position.
type Rope struct {
	Units, Cols int64 // Cols: 4·Quads
	Quads, Rows Divisor
	X           View
	Table       F32
	Pos         Index
	PerHead     Divisor // units of a head
	Head, Half  uint32
	Interleaved uint32
	Vectors     uint32
	_           uint32
}

var rope = Family{"rope", []Entry{
	{Name: "rope_turn", Call: "rope::turn", Args: Rope{}, Threads: 256},
}}
