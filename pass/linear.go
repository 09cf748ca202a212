package pass

// Gemm multiplies rows by a matrix:
//
//	C[b][r][j] = epilogue(Σₖ A[b][r][k]·W[j][k] + bias[j])
//
// for the columns j of Columns. Exactly those columns are written, column
// Columns.From at the first element of a row of C. If W has dual biases, columns
// n … n+d−1 are the first d sums again, with those biases and no epilogue.
type Gemm struct {
	A        View     // [Batch][Rows][k]
	W        Param    // LinearWeights [n][k]
	C        View     // [Batch][Rows][Columns]; read too with a residual epilogue
	Batch    int      // 0: one item
	Rows     int      // 0: nothing is done
	Columns  Span     // within n+d; zero: all
	Epilogue Epilogue // any
	Exact    bool     // no rounded operands, in a Fast recording too
}

// Name implements Op.
func (Gemm) Name() string { return "gemm" }

func (g Gemm) describe(c *checker) Op {
	w := param[LinearShape](c, "W", g.W)
	g.Batch = c.batch(g.Batch)
	c.atLeast("Rows", g.Rows, 0)
	g.Columns = g.Columns.check(c, "Columns", w.Columns())
	g.A = c.read("A", F32, g.A, g.Batch, g.Rows, w.K)
	if g.Epilogue.InPlace() {
		g.C = c.update("C", F32, g.C, g.Batch, g.Rows, g.Columns.Len())
	} else {
		g.C = c.write("C", F32, g.C, g.Batch, g.Rows, g.Columns.Len())
	}
	c.done(2*float64(g.Batch)*float64(g.Rows)*float64(g.Columns.Len())*float64(w.K), matrixBytes(w.Type, g.Columns.Len(), w.K))
	return g
}

// Cuts implements Op.
func (g Gemm) Cuts() []Cut {
	return []Cut{{AxisBatch, g.Batch, 1}, {AxisRows, g.Rows, 64}, {AxisColumns, g.Columns.Len(), 64}}
}

func (g Gemm) part(axis Axis, from, to int) Op {
	switch axis {
	case AxisBatch:
		g.A, g.C, g.Batch = g.A.item(from), g.C.item(from), to-from
	case AxisRows:
		g.A, g.C, g.Rows = g.A.row(from), g.C.row(from), to-from
	case AxisColumns:
		g.C, g.Columns = g.C.At(from), Span{g.Columns.From + from, g.Columns.From + to}
	}
	return g
}

// item and row move a view with explicit strides.
func (v View) item(b int) View { return v.At(b * v.BatchStride) }
func (v View) row(r int) View  { return v.At(r * v.RowStride) }

// matrixBytes returns the size of rows × cols weights; blocks are rounded up.
func matrixBytes(t DType, rows, cols int) int64 {
	if t == Q8_0 {
		cols = (cols + Q8Block - 1) / Q8Block * Q8Block
	}
	return t.Bytes(rows * cols)
}
