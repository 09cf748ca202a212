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
	{Name: "conv1d_tile", Call: "conv1d::tile", Args: Conv1D{}, Threads: 256, Resident: 2, Tile: [3]int{64, 64, 16}},
	{Name: "conv1d_few", Call: "conv1d::few", Args: Conv1D{}, Threads: 256, Resident: 2, Tile: [3]int{8, 32, 256}},
}}
