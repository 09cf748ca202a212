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

// Embed looks up rows of a table, and adds a row of positions if there are any:
//
//	Out[b][r] = Table[IDs[b][IDRow + r]] + Positions[Pos + r]
//
// Ids are known on the device only: one beyond the table reads row 0 and fails the run,
// as does an index that leads beyond IDRows or Positions.
type Embed struct {
	IDs       View  // U32 [Batch][IDRows]
	Table     Param // LinearWeights [n][k], without bias
	Positions Param // LinearWeights [p][k], without bias; zero: none
	Out       View  // [Batch][Rows][k]
	Batch     int   // 0: one item
	Rows      int   // 0: nothing is done
	IDRow     Index // row of the first id
	IDRows    int   // 0: IDRow + Rows, for a constant IDRow
	Pos       Index // position of the first row
}

// Name implements Op.
func (Embed) Name() string { return "embed" }

func (e Embed) describe(c *checker) Op {
	t := param[LinearShape](c, "Table", e.Table)
	if t.Bias || t.Dual != 0 {
		c.failf("Table: want no bias, given one")
	}
	e.Batch = c.batch(e.Batch)
	c.atLeast("Rows", e.Rows, 0)
	e.IDRow.check(c, "IDRow", e.Batch)
	e.IDRows = indexedRows(c, "IDRow", "IDRows", e.IDRow, e.Rows, e.IDRows)
	if !e.Positions.IsZero() {
		p := param[LinearShape](c, "Positions", e.Positions)
		if p.K != t.K || p.Bias || p.Dual != 0 {
			c.failf("Positions: want rows of %d and no bias, given %v", t.K, e.Positions)
		}
		e.Pos.check(c, "Pos", e.Batch)
		e.Pos.within(c, "Pos", e.Rows, p.N)
	}
	e.IDs = c.read("IDs", U32, e.IDs, e.Batch, e.IDRows, 1)
	e.Out = c.write("Out", F32, e.Out, e.Batch, e.Rows, t.K)
	c.done(float64(e.Batch)*float64(e.Rows)*float64(t.K), matrixBytes(t.Type, e.Rows, t.K))
	return e
}

// Cuts implements Op.
func (e Embed) Cuts() []Cut { return rowCuts(e.Batch, e.Rows) }

func (e Embed) part(axis Axis, from, to int) Op {
	if axis == AxisBatch {
		e.IDs, e.Out, e.Batch = e.IDs.item(from), e.Out.item(from), to-from
		e.IDRow, e.Pos = e.IDRow.item(from), e.Pos.item(from)
	} else {
		e.Out, e.Rows, e.IDRow, e.Pos = e.Out.row(from), to-from, e.IDRow.Plus(from), e.Pos.Plus(from)
	}
	return e
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
