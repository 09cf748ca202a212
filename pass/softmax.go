package pass

// Softmax takes exp(x)/Σexp(x) of each row. A row of −Inf gives zeros; a NaN makes its
// row NaN.
type Softmax struct {
	X     View // [Batch][Rows][Cols]
	Y     View // [Batch][Rows][Cols]
	Batch int  // 0: one item
	Rows  int  // 0: nothing is done
	Cols  int  // at least 1
}

// Name implements Op.
func (Softmax) Name() string { return "softmax" }

func (s Softmax) describe(c *checker) Op {
	s.X, s.Y, s.Batch = rowwise(c, s.X, s.Y, s.Batch, s.Rows, s.Cols, 5)
	return s
}

// Cuts implements Op.
func (s Softmax) Cuts() []Cut { return rowCuts(s.Batch, s.Rows) }

func (s Softmax) part(axis Axis, from, to int) Op {
	s.X, s.Y, s.Batch, s.Rows = rowPart(axis, from, to, s.X, s.Y, s.Batch, s.Rows)
	return s
}

// LogSoftmax takes x − log Σexp(x) of each row. A row of −Inf gives −Inf; a NaN makes
// its row NaN.
type LogSoftmax struct {
	X     View // [Batch][Rows][Cols]
	Y     View // [Batch][Rows][Cols]
	Batch int  // 0: one item
	Rows  int  // 0: nothing is done
	Cols  int  // at least 1
}

// Name implements Op.
func (LogSoftmax) Name() string { return "logsoftmax" }

func (s LogSoftmax) describe(c *checker) Op {
	s.X, s.Y, s.Batch = rowwise(c, s.X, s.Y, s.Batch, s.Rows, s.Cols, 5)
	return s
}

// Cuts implements Op.
func (s LogSoftmax) Cuts() []Cut { return rowCuts(s.Batch, s.Rows) }

func (s LogSoftmax) part(axis Axis, from, to int) Op {
	s.X, s.Y, s.Batch, s.Rows = rowPart(axis, from, to, s.X, s.Y, s.Batch, s.Rows)
	return s
}

// rowwise declares an op that makes a row of each row.
func rowwise(c *checker, x, y View, batch, rows, cols int, flop float64) (View, View, int) {
	batch = c.batch(batch)
	c.atLeast("Rows", rows, 0)
	c.atLeast("Cols", cols, 1)
	x = c.read("X", F32, x, batch, rows, cols)
	y = c.write("Y", F32, y, batch, rows, cols)
	c.done(flop*float64(batch)*float64(rows)*float64(cols), 0)
	return x, y, batch
}

// rowCuts and rowPart cut an op whose rows do not depend on each other.
func rowCuts(batch, rows int) []Cut { return []Cut{{AxisBatch, batch, 1}, {AxisRows, rows, 1}} }

func rowPart(axis Axis, from, to int, x, y View, batch, rows int) (View, View, int, int) {
	if axis == AxisBatch {
		return x.item(from), y.item(from), to - from, rows
	}
	return x.row(from), y.row(from), batch, to - from
}

// Argmax finds the place of the largest value of each row, the lowest of equals. NaN
// counts as −Inf, so a row without any other value gives 0. The result of row r is
// stored at row ToRow + r of IDs; a run whose index leads beyond IDRows fails.
type Argmax struct {
	X      View  // [Batch][Rows][Cols]
	IDs    View  // U32 [Batch][IDRows]
	Batch  int   // 0: one item
	Rows   int   // 0: nothing is done
	Cols   int   // at least 1
	ToRow  Index // row of the first result
	IDRows int   // 0: ToRow + Rows, for a constant ToRow
}

// Name implements Op.
func (Argmax) Name() string { return "argmax" }

func (a Argmax) describe(c *checker) Op {
	a.Batch = c.batch(a.Batch)
	c.atLeast("Rows", a.Rows, 0)
	c.atLeast("Cols", a.Cols, 1)
	a.ToRow.check(c, "ToRow", a.Batch)
	a.IDRows = indexedRows(c, "ToRow", "IDRows", a.ToRow, a.Rows, a.IDRows)
	a.X = c.read("X", F32, a.X, a.Batch, a.Rows, a.Cols)
	a.IDs = c.write("IDs", U32, a.IDs, a.Batch, a.IDRows, 1)
	c.done(float64(a.Batch)*float64(a.Rows)*float64(a.Cols), 0)
	return a
}

// Cuts implements Op.
func (a Argmax) Cuts() []Cut { return rowCuts(a.Batch, a.Rows) }

func (a Argmax) part(axis Axis, from, to int) Op {
	if axis == AxisBatch {
		a.X, a.IDs, a.Batch = a.X.item(from), a.IDs.item(from), to-from
		a.ToRow = a.ToRow.item(from)
	} else {
		a.X, a.Rows, a.ToRow = a.X.row(from), to-from, a.ToRow.Plus(from)
	}
	return a
}

// indexedRows returns how many rows there are to choose count from by an index, and
// checks that a constant index leads to rows within them.
func indexedRows(c *checker, name, rowsName string, x Index, count, rows int) int {
	c.atLeast(rowsName, rows, 0)
	n, ok := x.Const()
	if !ok {
		if rows < count {
			c.failf("%s: want at least %d rows, given %d", rowsName, count, rows)
		}
		return rows
	}
	var e extent
	end := e.add(max(n, 0), max(count, 0))
	if rows == 0 && !e.over {
		return end
	}
	if e.over || end > rows {
		c.failf("%s: want rows %d to %s within %d", name, n, e.format(end), rows)
	}
	return rows
}
