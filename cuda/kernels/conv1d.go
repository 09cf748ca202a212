package kernels

// A ConvPack turns weights [Out][In][Taps] as they are stored into a matrix of F32
// [Taps·In][Out], filled up with zeros.
type ConvPack struct {
	Stored  U32 // of a pass.DType
	Matrix  F32 // [rows][Stride]; a block makes a row
	Stride  int64
	Type    uint32
	Out, In uint32
	Taps    uint32
}

// A ConvRows turns the matrix that [ConvPack] made into rows of one output channel each, as
// the right operand of a [Tile]: [Out][Groups][Width] of which Group steps of In channels
// are used in each group, and all Steps in the last, as they lie in [ConvGroups].
type ConvRows struct {
	Matrix               F32
	Rows                 U32 // of Type: F32, F16 or BF16; a block makes a row
	MatrixStride, Stride int64
	Type                 uint32
	In, Taps             uint32
	Group, Steps         uint32
	Groups, Width        uint32
	_                    uint32
}

// A ConvGroups makes the left operand of a [Tile] of a Conv1D over few channels. A group is
// Steps input steps, filled up with zeros to Width elements; the next begins Group steps
// later. Before the first step of an item and beyond its last are zeros, or it is mirrored.
type ConvGroups struct {
	X              View
	High, Low      F16 // [Items][Groups][Width]; Low nil: only rounded values
	Scales, Peaks  F32 // as in [Prepare]: inverse scale of each item, largest magnitudes [Items][Parts]
	Lengths        Items
	First          int64 // input step of the first group
	Groups, Width  uint32
	Group, Steps   uint32
	Items, Columns uint32
	Parts          uint32
	Reflect        uint32 // 1: ends are mirrored
}

// A Conv1D is a [pass.Conv1D] on the weights that [ConvPack] made.
type Conv1D struct {
	X, Y              View
	Weights, Bias     F32 // Bias nil: none
	Lengths           Items
	WeightsRow        int64
	PadLeft, PadRight int64
	From              int64  // first output step
	Rows, ItemRows    uint32 // output steps of all items, and of each
	Columns           uint32 // output channels
	In, Kernel        uint32 // input channels, taps
	Stride, Pool      uint32
	Reflect, Abs      uint32 // 1: yes
	Vectors           uint32 // 1: rows of Y are aligned to 16 bytes
	Epilogue          Epilogue
}

var conv1d = Family{"conv1d", []Entry{
	{Name: "conv1d_pack", Call: "conv1d::pack", Args: ConvPack{}, Threads: 256},
	{Name: "conv1d_rows", Call: "conv1d::rows_of", Args: ConvRows{}, Threads: 256},
	{Name: "conv1d_groups", Call: "conv1d::groups", Args: ConvGroups{}, Threads: 256},
	{Name: "conv1d_pool", Call: "conv1d::pool", Args: Conv1D{}, Threads: 256},
	{Name: "conv1d_tile", Call: "conv1d::tile", Args: Conv1D{}, Threads: 256, Resident: 2, Tile: [3]int{64, 64, 16}},
	{Name: "conv1d_few", Call: "conv1d::few", Args: Conv1D{}, Threads: 256, Resident: 2, Tile: [3]int{8, 32, 256}},
}}
