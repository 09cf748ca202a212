package kernels

import "fmt"

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

// A ConvStretch is a [pass.Conv1D] on tensor cores, from the samples as they are. A tile of
// a block is 192 steps of the convolution, and Pool of those make an output. It has Pieces
// pieces, each all outputs of an item; or one, PieceRows outputs of an item that has more.
type ConvStretch struct {
	X, Y              View
	High, Low         F16 // weights [Columns][Depth], by rows of WeightsRow; Low nil: rounded
	Scales, Bias      F32 // inverse scale of each row of the weights, nil: 1; Bias nil: none
	Lengths           Items
	WeightsRow        int64
	PadLeft, PadRight int64
	Total, From, To   uint32 // outputs of an item, and those that are wanted
	Items, Columns    uint32 // output channels
	In, Kernel        uint32 // input channels, taps
	Stride, Pool      uint32 // Pool: 1 or 3
	Depth, Padded     uint32 // products of a sum; rounded up to 16
	Pieces, PieceRows uint32
	FirstTile, Tiles  uint32 // of an item, PieceRows outputs each, the wanted ones
	PieceLength       uint32 // elements of a piece in shared memory
	CopyPitch         uint32 // from a copy of the pieces to the next
	WeightsPitch      uint32 // of the weights in shared memory
	Grain             uint32 // the largest divisor of 8 that divides Stride·In
	Spaced            uint32 // 1: eight elements are unused behind each Stride·In, a multiple of 16
	Linear            uint32 // 1: steps follow each other without gaps
	Reflect, Abs      uint32 // 1: yes
	Pairs             uint32 // 1: pairs of channels of Y are aligned to 8 bytes, and their number is even
	Epilogue          Epilogue
}

// ConvStretchSteps are the steps of the convolution in a tile of a [ConvStretch].
const ConvStretchSteps = 192

// A ConvStretchShape is a kernel of a [ConvStretch], for so many output channels of a block;
// Products 1: of rounded operands, 3: of split ones.
type ConvStretchShape struct{ Columns, Products int }

// Name returns the name of the kernel.
func (s ConvStretchShape) Name() string {
	return fmt.Sprintf("conv1d_stretch_%d_%d", s.Columns, s.Products)
}

// Resident returns how many blocks of the kernel a multiprocessor has registers for.
func (s ConvStretchShape) Resident() int {
	if s.Products == 1 && s.Columns <= 80 {
		return 2
	}
	return 1
}

// ConvStretchShapes are those that there are.
var ConvStretchShapes = []ConvStretchShape{{64, 1}, {80, 1}, {96, 1}, {64, 3}, {80, 3}, {96, 3}}

func stretchEntries() []Entry {
	var all []Entry
	for _, s := range ConvStretchShapes {
		all = append(all, Entry{
			Name: s.Name(), Call: fmt.Sprintf("conv1d::stretch<%d, %d>", s.Columns, s.Products), Args: ConvStretch{},
			Threads: 256, Resident: s.Resident(), Shared: -1, Tile: [3]int{ConvStretchSteps, s.Columns, 0}, From: 80, Waits: true,
		})
	}
	return all
}

var conv1d = Family{"conv1d", append(stretchEntries(), []Entry{
	{Name: "conv1d_pack", Call: "conv1d::pack", Args: ConvPack{}, Threads: 256},
	{Name: "conv1d_rows", Call: "conv1d::rows_of", Args: ConvRows{}, Threads: 256},
	{Name: "conv1d_groups", Call: "conv1d::groups", Args: ConvGroups{}, Threads: 256},
	{Name: "conv1d_pool", Call: "conv1d::pool", Args: Conv1D{}, Threads: 256},
	{Name: "conv1d_tile", Call: "conv1d::tile", Args: Conv1D{}, Threads: 256, Resident: 2, Tile: [3]int{64, 64, 16}},
	{Name: "conv1d_few", Call: "conv1d::few", Args: Conv1D{}, Threads: 256, Resident: 2, Tile: [3]int{8, 32, 256}},
}...)}
