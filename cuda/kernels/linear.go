package kernels

import (
	"fmt"
	"slices"
)

// A Few multiplies rows by a matrix in the form in which it was loaded:
//
//	C[r][j] = epilogue(Σₖ A[r][k]·W[j][k] + Bias[j])
//
// Either up to eight rows, for which the matrix is read once, or as many as there are, by
// weights whose range is too wide for F16.
type Few struct {
	W           U32 // [Columns][Stride] of F32, F16, BF16 or bytes
	BlockScales F16 // of Q8_0: [Columns][Stride/32]
	Bias, Dual  F32 // nil: none
	A, C        View
	Stride      int64  // elements of a row of W, those beyond Depth zero; 16 bytes each row
	Rows        uint32 // of all items
	ItemRows    uint32
	Columns     uint32
	Depth       uint32
	// Columns [DualFrom, DualTo) are given again, DualShift columns on, with the biases
	// Dual and no epilogue.
	DualFrom, DualTo uint32
	DualShift        int32
	_                uint32
	Epilogue         Epilogue
}

// FewChunk is how many elements of all rows together a block keeps in shared memory at a
// time.
const FewChunk = 12288

// A Features finds the largest finite magnitude of each column of a matrix, as it was
// loaded, in parts of its rows.
type Features struct {
	Values      U32 // as W of [Few]
	BlockScales F16
	Peaks       F32   // [Parts][From]
	From        int64 // elements of a row
	Rows, Parts uint32
}

// RangeTile is how many rows and columns of a product by weights of a wide range a block
// makes, rangeDepth how deep its stages are, and FeaturesColumns how many columns one goes over.
const (
	RangeTile       = 64
	rangeDepth      = 32
	FeaturesColumns = 32
)

// RangeShared returns the shared memory of a block of a product by weights of a wide range:
// two stages of both operands, in two parts from 8.0 on.
func RangeShared(capability int) int {
	parts := 2
	if capability < 80 {
		parts = 1
	}
	return 4 * 2 * 2 * parts * RangeTile * (rangeDepth + 4)
}

// weightTypes are the types of weights in the names of kernels, and in their source.
var weightTypes = []struct{ name, source string }{{"f32", "FromF32"}, {"f16", "FromF16"}, {"bf16", "FromBF16"}, {"q8", "FromQ8"}}

// rangeEntries are the kernels of weights whose range is too wide for F16, and those that
// find out.
func rangeEntries() []Entry {
	var all []Entry
	for _, t := range weightTypes {
		all = append(all,
			Entry{Name: "linear_range_" + t.name, Call: "linear::range<" + t.source + ">", Args: Few{}, Threads: 128, Resident: 2, Shared: -1,
				Tile: [3]int{RangeTile, RangeTile, rangeDepth}},
			Entry{Name: "linear_features_" + t.name, Call: "linear::features<" + t.source + ">", Args: Features{}, Threads: 256},
		)
	}
	return all
}

// fewEntries are the kernels of products with few rows, by the type of the weights, the
// most rows, and the columns that a warp makes at a time.
func fewEntries() []Entry {
	var all []Entry
	for _, t := range weightTypes {
		for _, rows := range []int{1, 4, 8} {
			for _, columns := range []int{1, 4} {
				all = append(all, Entry{
					Name:    fmt.Sprintf("linear_few_%s_%dx%d", t.name, rows, columns),
					Call:    fmt.Sprintf("linear::few<%s, %d, %d>", t.source, rows, columns),
					Args:    Few{},
					Threads: 128, Resident: 4 - rows/4, Shared: -1, Waits: true,
				})
			}
		}
	}
	return all
}

var linear = Family{Name: "linear", Entries: slices.Concat(tileEntries(), fewEntries(), rangeEntries())}
