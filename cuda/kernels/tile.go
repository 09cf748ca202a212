package kernels

import "fmt"

// A Tile is a product of rows of F16 with the rows of a matrix of F16, on tensor cores:
//
//	C[r][j] = epilogue(scales(r, j)·Σₛ Σₖ A[r][s][k]·B[j][s][k] + Residual[r][j] + Bias[j])
//
// Operands that are split have low parts, which hold what rounding to F16 left of the
// values. With Scales C is F16, where rows are scaled by a power of two that brings what no
// result of them exceeds, Norms[r]·Reach + Lift and Most, into [2¹⁴, 2¹⁵), and Scales gets the
// inverse; Columns is a multiple of 8 then, nothing is given again, and the epilogue is not in
// place.
//
// Row r belongs to item r/ItemRows; within it, r/Width and r%Width are its line
// and its place in the line, whose strides are given in elements of A. All strides of A
// and B and Depth are multiples of 8 elements, and A and B of 16 bytes.
type Tile struct {
	A, ALow                        F16 // ALow nil: A is not split
	B, BLow                        F16 // BLow nil: B is not split
	AScale                         F32 // inverse scale of each group of ScaleRows rows
	BScale                         F32 // inverse scale of each row of B; nil: 1
	Bias                           F32 // nil: none
	Dual                           F32 // biases of the columns from DualFrom on
	Sums                           F32 // partial sums [Splits][Rows][Columns], without scales
	C                              View
	Norms                          F32  // lengths of the rows of A as vectors, if Scales is not nil
	Scales                         F32  // nil: C is F32
	Residual                       View // P nil: none
	Lengths                        Items
	AItem, ALine, AStep, ASegment  int64
	BRow, BSegment                 int64
	Rows, Columns, ItemRows, Width uint32
	ScaleRows                      uint32
	Segments, Depth                uint32 // s and k of the sum
	Splits                         uint32 // parts of the sum that blocks of their own make; 1: whole
	// Columns [DualFrom, DualTo) are given again, DualShift columns on, with the biases
	// Dual and no epilogue.
	DualFrom, DualTo uint32
	DualShift        int32
	// Of each item the rows count whose number, plus LengthFrom, is less than
	// (length + LengthAdd)/LengthStride + 1, and none where length + LengthAdd < 0 or
	// length is 0; the others are zero. LengthStride 0: all count.
	LengthAdd                int32
	LengthStride, LengthFrom uint32
	Epilogue                 Epilogue
	Reach, Lift, Most        float32
	Last                     uint32 // 1: no later op reads A
}

// A Prepare makes the left operand of a [Tile]: rows of F32 become rows of F16, scaled by
// powers of two so that their largest value lies in [2¹⁴, 2¹⁵). Rows of an item are the
// pixels of an image of InLines × InWidth, which are put into an image of Lines × Width:
// its line y is line y + Top of the source, and its column x is column x + Left. What lies
// outside the source is zero, or the source's line mirrored at its ends.
type Prepare struct {
	X              View
	High, Low      F16 // [Items][Lines·Width][Stride]; Low nil: only rounded values
	Scales         F32 // inverse scale of each row, or of each item
	Norms          F32 // lengths of rows as vectors; nil: not wanted
	Peaks          F32 // largest magnitudes [Items][Parts], if the scale is an item's
	Lengths        Items
	Top, Left      int64
	Stride         int64  // of rows of High, in elements; a multiple of 8
	InLines        uint32 // of the source
	InWidth        uint32
	Lines, Width   uint32
	Items, Columns uint32
	Parts          uint32
	Reflect        uint32 // 1: lines are mirrored
}

// Halves are rows as [Prepare] leaves them, of a kernel that has whole rows anyhow.
type Halves struct {
	High, Low F16   // [rows][Stride]; High nil: not wanted; Low nil: only rounded values
	Scales    F32   // inverse scale of each row
	Norms     F32   // length of each row as a vector; nil: not wanted
	Stride    int64 // of rows, in elements; a multiple of 8
}

// A Narrow makes the right operand of a [Tile] of a matrix: rows of F16, scaled row by row
// as in [Prepare]. Values are F32, F16, BF16, or bytes with an F16 scale for every 32.
type Narrow struct {
	Values        U32 // [Rows][From]
	BlockScales   F16 // of bytes: [Rows][From/32]
	High          F16 // [Rows][Stride]; nil: it is there, and so are Scales
	Low           F16 // [Rows][Stride]; nil: only rounded values
	Scales        F32 // inverse scale of each row
	Norms         F32 // lengths of rows as vectors; nil: not wanted
	From, Stride  int64
	Rows, Columns uint32
}

// Depth of the stages through which tiles take their operands, in elements.
const TileDepth = 32

// tileShapes are the tiles that blocks of products compute: rows and columns, those of a
// warp, and threads.
var tileShapes = []struct{ rows, columns, warpRows, warpColumns, threads int }{
	{128, 128, 64, 32, 256},
	{128, 32, 32, 32, 128},
	{64, 64, 32, 32, 128},
}

// tileEntries are the kernels of products. The last figure of a name says of how many
// products of parts a sum is made: 1, of rounded operands; 2, where only A is split; 3.
func tileEntries() []Entry {
	var all []Entry
	for _, t := range tileShapes {
		for products := 1; products <= 3; products++ {
			resident := 1
			if products == 1 || t.threads < 256 {
				resident = 2
			}
			all = append(all, Entry{
				Name:    fmt.Sprintf("tile_%dx%d_%d", t.rows, t.columns, products),
				Call:    fmt.Sprintf("tile::multiply<%d, %d, %d, %d, %d>", t.rows, t.columns, t.warpRows, t.warpColumns, products),
				Args:    Tile{},
				Threads: t.threads, Resident: resident, Shared: -1,
				Tile: [3]int{t.rows, t.columns, TileDepth},
			})
		}
	}
	return append(all,
		Entry{Name: "tile_sum", Call: "tile::sum", Args: Tile{}, Threads: 256},
		Entry{Name: "tile_peaks", Call: "tile::peaks", Args: Prepare{}, Threads: 256},
		Entry{Name: "tile_prepare_items", Call: "tile::prepare_items", Args: Prepare{}, Threads: 256},
		Entry{Name: "tile_prepare_32", Call: "tile::prepare_rows<32>", Args: Prepare{}, Threads: 128},
		Entry{Name: "tile_prepare_256", Call: "tile::prepare_rows<256>", Args: Prepare{}, Threads: 256},
		Entry{Name: "tile_narrow_f32", Call: "tile::narrow<FromF32>", Args: Narrow{}, Threads: 256},
		Entry{Name: "tile_narrow_f16", Call: "tile::narrow<FromF16>", Args: Narrow{}, Threads: 256},
		Entry{Name: "tile_narrow_bf16", Call: "tile::narrow<FromBF16>", Args: Narrow{}, Threads: 256},
		Entry{Name: "tile_narrow_q8", Call: "tile::narrow<FromQ8>", Args: Narrow{}, Threads: 256},
	)
}

// TileShared returns the shared memory of a block of a product: stages of all parts of
// both operands, which make room for the sums in the end. Before 8.0 there are two stages,
// from then on as many as pay.
func TileShared(rows, columns, products, capability int) int {
	parts := rows + columns
	if products >= 2 {
		parts += rows
	}
	if products == 3 {
		parts += columns
	}
	stages := 4
	if products > 1 {
		stages = 3
	}
	if capability < 80 {
		stages = 2
	}
	return max(stages*parts*TileDepth*2, rows*columns*4)
}
