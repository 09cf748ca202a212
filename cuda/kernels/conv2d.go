package kernels

// A Conv2D is a [pass.Conv2D] on the weights that [ConvPack] made.
type Conv2D struct {
	X, Residual, Y View // Residual.P nil: none
	Weights, Bias  F32  // Bias nil: none
	WeightsRow     int64
	Height, Width  uint32 // of the input
	OutWidth       uint32
	From           uint32 // first output line
	Rows, ItemRows uint32 // output pixels of all items, and of each
	Columns        uint32 // output channels
	In, Size       uint32 // input channels, taps in a line
	Stride         uint32
	ReLU           uint32 // 1: yes
	Vectors        uint32 // 1: rows of Y are aligned to 16 bytes
}

var conv2d = Family{"conv2d", []Entry{
	{Name: "conv2d_tile", Call: "conv2d::tile", Args: Conv2D{}, Threads: 256, Resident: 2, Tile: [3]int{64, 64, 16}},
	{Name: "conv2d_few", Call: "conv2d::few", Args: Conv2D{}, Threads: 256, Resident: 2, Tile: [3]int{8, 32, 256}},
	{Name: "conv2d_single", Call: "conv2d::single", Args: Conv2D{}, Threads: 256},
}}

// ConvLine is how many pixels of a line a thread of conv2d_single takes at most.
const ConvLine = 4
