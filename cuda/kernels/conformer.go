package kernels

// A ConvGLU is a [pass.ConvGLU], whose results go into Y. Kernels of halves store them there
// only if it is not the zero view, and as Halves.
type ConvGLU struct {
	X, Y        View
	Halves      Halves // without norms; then ColumnTiles is 1
	Weights     F32    // rows of WeightsRow: the taps, then bias, gain and shift
	Lengths     Items
	Rows        uint32 // output rows of an item
	From        uint32 // first output row
	RowTiles    uint32 // blocks along the output rows of an item
	ColumnTiles uint32 // blocks along the channels
	Channels    uint32
	Kernel      uint32
	WeightsRow  uint32
	Eps         float32
	Normalised  uint32 // 1: layer norm over the channels; then ColumnTiles is 1
	Vectors     uint32 // 1: pairs of channels are aligned to 8 bytes in X and Y
}

// A Depthwise is a [pass.DepthwiseConv2D]. A thread takes some channels of up to Walk
// output columns that follow each other.
type Depthwise struct {
	X, Y       View
	Weights    F32 // rows of WeightsRow: nine taps and the bias, then those of the first convolution
	Lengths    Items
	Units      int64  // threads that have work
	Groups     uint32 // of channels
	Walks      uint32 // along an output row
	Rows       uint32 // output rows of an item
	From       uint32 // first output row
	Held       uint32 // first row of the image in X
	Frequency  uint32 // columns of X
	Width      uint32 // output columns
	Channels   uint32
	WeightsRow uint32
	Vectors    uint32 // 1: groups of channels are aligned
}

var conformer = Family{"conformer", []Entry{
	{Name: "conformer_convglu_512_k9", Call: "conformer::convglu<512, 12, 9, false>", Args: ConvGLU{}, Threads: 512, Resident: 1, Tile: [3]int{12, 1024, 9}},
	{Name: "conformer_convglu_512_k9_halves", Call: "conformer::convglu<512, 12, 9, true>", Args: ConvGLU{}, Threads: 512, Resident: 1, Tile: [3]int{12, 1024, 9}},
	{Name: "conformer_convglu_512_k5", Call: "conformer::convglu<512, 12, 5, false>", Args: ConvGLU{}, Threads: 512, Resident: 1, Tile: [3]int{12, 1024, 5}},
	{Name: "conformer_convglu_512_k5_halves", Call: "conformer::convglu<512, 12, 5, true>", Args: ConvGLU{}, Threads: 512, Resident: 1, Tile: [3]int{12, 1024, 5}},
	{Name: "conformer_convglu_512_k9_few", Call: "conformer::convglu<512, 4, 9, false>", Args: ConvGLU{}, Threads: 512, Resident: 1, Tile: [3]int{4, 1024, 9}},
	{Name: "conformer_convglu_512_k9_few_halves", Call: "conformer::convglu<512, 4, 9, true>", Args: ConvGLU{}, Threads: 512, Resident: 1, Tile: [3]int{4, 1024, 9}},
	{Name: "conformer_convglu_512_k5_few", Call: "conformer::convglu<512, 4, 5, false>", Args: ConvGLU{}, Threads: 512, Resident: 1, Tile: [3]int{4, 1024, 5}},
	{Name: "conformer_convglu_512_k5_few_halves", Call: "conformer::convglu<512, 4, 5, true>", Args: ConvGLU{}, Threads: 512, Resident: 1, Tile: [3]int{4, 1024, 5}},
	{Name: "conformer_convglu_512", Call: "conformer::convglu<512, 4, 0, false>", Args: ConvGLU{}, Threads: 512, Resident: 1, Tile: [3]int{4, 1024, 0}},
	{Name: "conformer_convglu_512_halves", Call: "conformer::convglu<512, 4, 0, true>", Args: ConvGLU{}, Threads: 512, Resident: 1, Tile: [3]int{4, 1024, 0}},
	{Name: "conformer_convglu_128", Call: "conformer::convglu<128, 4, 0, false>", Args: ConvGLU{}, Threads: 128, Tile: [3]int{4, 256, 0}},
	{Name: "conformer_convglu_128_halves", Call: "conformer::convglu<128, 4, 0, true>", Args: ConvGLU{}, Threads: 128, Tile: [3]int{4, 256, 0}},
	{Name: "conformer_convglu_wide", Call: "conformer::convglu_wide", Args: ConvGLU{}, Threads: 256},
	{Name: "conformer_depthwise", Call: "conformer::depthwise", Args: Depthwise{}, Threads: 128},
	{Name: "conformer_depthwise_strip", Call: "conformer::depthwise_strip", Args: Depthwise{}, Threads: 128, Shared: -1},
	{Name: "conformer_depthwise_first", Call: "conformer::depthwise_first", Args: Depthwise{}, Threads: 128},
}}
