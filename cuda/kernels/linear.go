package kernels

import "fmt"

// A Few multiplies up to eight rows by a matrix, which is read once, in the form in which
// it was loaded:
//
//	C[r][j] = epilogue(Σₖ A[r][k]·W[j][k] + Bias[j])
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

// fewEntries are the kernels of products with few rows, by the type of the weights, the
// most rows, and the columns that a warp makes at a time.
func fewEntries() []Entry {
	var all []Entry
	for _, t := range []struct{ name, source string }{{"f32", "FromF32"}, {"f16", "FromF16"}, {"bf16", "FromBF16"}, {"q8", "FromQ8"}} {
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

var linear = Family{Name: "linear", Entries: append(tileEntries(), fewEntries()...)}
