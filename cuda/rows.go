package cuda

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/cuda/kernels"
	"github.com/tandem-gpu/tandem/pass"
)

// A field is batch × rows × cols elements that an elementwise kernel visits in quads.
type field struct{ batch, rows, cols int }

func (f field) empty() bool { return f.batch == 0 || f.rows == 0 || f.cols == 0 }

// longest is how many elements a row may have whose quads are counted in 32 bits.
const longest = 1 << 33

// flat joins items and rows that follow each other without gaps in all views, which are
// of this shape: long rows take no divisions and few loads of single elements.
func (f field) flat(views ...pass.View) field {
	all := func(ok func(v pass.View) bool) bool {
		for _, v := range views {
			if !ok(v) {
				return false
			}
		}
		return true
	}
	if f.batch > 1 && f.batch*f.rows <= math.MaxUint32 && all(func(v pass.View) bool { return v.BatchStride == f.rows*v.RowStride }) {
		f.rows, f.batch = f.batch*f.rows, 1
	}
	if f.batch == 1 && f.rows > 1 && f.rows*f.cols <= longest && all(func(v pass.View) bool { return v.RowStride == f.cols }) {
		f.cols, f.rows = f.rows*f.cols, 1
	}
	return f
}

// Quads of a thread and of a block; see rows.cuh.
const (
	visitThreads = 256
	visitEach    = 2
)

// units returns how many quads there are, in all and in a row, and a grid for them.
func (k *call) units(f field) (units, cols int64, quads, rows kernels.Divisor, g grid) {
	q := ceilDiv(f.cols, 4)
	n := f.batch * f.rows * q
	return int64(n), int64(f.cols), k.divisor(q), k.divisor(f.rows), grid{ceilDiv(n, visitThreads*visitEach), 1, 1}
}

// divisor returns a number from 1 on as kernels divide by it.
func (k *call) divisor(n int) kernels.Divisor { return kernels.DivisorOf(k.count(n)) }

// count returns a number as kernels take it.
func (k *call) count(n int) uint32 {
	if n > math.MaxUint32 && k.err == nil {
		k.err = fmt.Errorf("%d rows or columns, want less than 2^32: %w", n, pass.ErrUnsupported)
	}
	return uint32(min(n, math.MaxUint32)) // never 0, by which nobody can divide
}

// fours reports whether quads of all rows of a view are aligned for vectors.
func fours(at, row, batch int64, rows, items int) bool {
	return at%16 == 0 && (rows <= 1 || row%4 == 0) && (items <= 1 || batch%4 == 0)
}

// vectors returns a bit of a kernel's word Vectors if quads of all rows of a view are
// aligned.
func vectors(bit uint32, v kernels.View, f field) uint32 {
	if fours(int64(v.P), v.Row, v.Batch, f.rows, f.batch) {
		return bit
	}
	return 0
}

// wordVectors is vectors for elements of any type.
func wordVectors(bit uint32, w kernels.Words, f field) uint32 {
	if fours(int64(w.P), w.Row, w.Batch, f.rows, f.batch) {
		return bit
	}
	return 0
}

// How many rows a block of the kernels of rows takes: eight lanes have one, or a warp, or
// all threads.
const (
	byLanes = 16
	byWarps = 4
	byBlock = 1
)

// rowGrid returns the blocks for rows of which each takes so many.
func rowGrid(rows, each int) grid { return grid{ceilDiv(rows, each), 1, 1} }
