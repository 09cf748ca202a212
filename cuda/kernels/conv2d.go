package kernels

import "fmt"

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

// A ConvImage is a [pass.Conv2D] on tensor cores, from the image as it is. The weights are
// rows of [ConvRows]: [Columns][taps][Padded].
type ConvImage struct {
	X, Residual, Y View // Residual.P nil: none
	High, Low      F16  // Low nil: rounded
	Scales, Bias   F32  // inverse scale of each row of the weights, nil: 1; Bias nil: none
	WeightsRow     int64
	Height, Width  uint32
	OutWidth       uint32
	From, To       uint32 // output lines that are wanted
	Down           uint32 // tiles from the first to the last of them
	Columns        uint32 // output channels
	In, Padded     uint32 // input channels, and filled up
	ReLU           uint32 // 1: yes
	Vectors        uint32 // bit 0: pixels of X are aligned to 16 bytes, bit 1: those of Y and Residual to 8
	_              uint32
}

// ConvImageLines and ConvImageWidth are the output pixels of a tile of a [ConvImage].
const (
	ConvImageLines = 4
	ConvImageWidth = 32
)

// A ConvImageShape is a kernel of a [ConvImage]: of Size × Size, for so many output channels
// of a block of so many warps; Products 1: of rounded operands, 3: of split ones.
type ConvImageShape struct{ Size, Stride, Columns, Products, Warps int }

// Name returns the name of the kernel.
func (s ConvImageShape) Name() string {
	return fmt.Sprintf("conv2d_image_%ds%d_%d_%dx%d", s.Size, s.Stride, s.Columns, s.Products, s.Warps)
}

// Shared returns the shared memory of a block: the pixels that a tile reads as F32 and as
// F16, and a ring of weights.
func (s ConvImageShape) Shared() int {
	step, depth := 1, 32
	switch {
	case s.Size == 1:
		step = s.Stride
	case s.Stride > 1:
		depth = 16
	}
	pixels := ((ConvImageLines-1)*s.Stride/step + s.Size) * ((ConvImageWidth-1)*s.Stride/step + s.Size)
	parts, ring := 1, 3
	if s.Products == 3 {
		parts, ring = 2, 4
	}
	early := 1
	if s.Warps > 4 {
		ring = 2 * s.Size * s.Size
		if s.Columns == 32 {
			early = 2
		}
	}
	return depth * (4*early*pixels + 2*parts*(pixels+ring*s.Columns))
}

// ConvImageShapes are those that there are. With split operands the sums of 128 channels do
// not fit a thread's registers.
func ConvImageShapes() []ConvImageShape {
	all := []ConvImageShape{{3, 1, 128, 1, 4}, {3, 1, 32, 1, 8}, {3, 1, 64, 1, 8}}
	for _, s := range []ConvImageShape{{Size: 3, Stride: 1, Warps: 4}, {Size: 3, Stride: 2, Warps: 4}, {Size: 1, Stride: 2, Warps: 4}} {
		for _, s.Columns = range []int{32, 64} {
			for _, s.Products = range []int{1, 3} {
				all = append(all, s)
			}
		}
	}
	return all
}

func imageEntries() []Entry {
	var all []Entry
	for _, s := range ConvImageShapes() {
		resident := 4
		switch {
		case s.Products > 1 || s.Columns > 64 || s.Warps > 4:
			resident = 2
		case s.Size == 1:
			resident = 3
		}
		all = append(all, Entry{
			Name: s.Name(), Call: fmt.Sprintf("conv2d::image<%d, %d, %d, %d, %d>", s.Size, s.Stride, s.Columns, s.Products, s.Warps), Args: ConvImage{},
			Threads: 32 * s.Warps, Resident: resident, Shared: s.Shared(),
			Tile: [3]int{ConvImageLines * ConvImageWidth, s.Columns, 0}, From: 80, Waits: true,
		})
	}
	return all
}

var conv2d = Family{"conv2d", append(imageEntries(), []Entry{
	{Name: "conv2d_tile", Call: "conv2d::tile", Args: Conv2D{}, Threads: 256, Resident: 2, Tile: [3]int{64, 64, 16}},
	{Name: "conv2d_few", Call: "conv2d::few", Args: Conv2D{}, Threads: 256, Resident: 2, Tile: [3]int{8, 32, 256}},
	{Name: "conv2d_single", Call: "conv2d::single", Args: Conv2D{}, Threads: 256},
}...)}

// ConvLine is how many pixels of a line a thread of conv2d_single takes at most.
const ConvLine = 4
