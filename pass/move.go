package pass

// Copy copies rows, of F32 or U32 elements:
//
//	To[b][ToRow + r] = From[b][FromRow + r]
//
// for r < Rows. FromRows and ToRows say how many rows there are to choose from on a
// side whose row is an index in a buffer; a run whose index leads beyond them fails.
type Copy struct {
	From     View  // [Batch][FromRows][Cols]
	To       View  // [Batch][ToRows][Cols], in another buffer
	Batch    int   // 0: one item
	Rows     int   // 0: nothing is done
	Cols     int   // 0: nothing is done
	FromRow  Index // first row that is read
	ToRow    Index // first row that is written
	FromRows int   // 0: FromRow + Rows, for a constant FromRow
	ToRows   int   // 0: ToRow + Rows, for a constant ToRow
}

// Name implements Op.
func (Copy) Name() string { return "copy" }

func (m Copy) describe(c *checker) Op {
	m.Batch = c.batch(m.Batch)
	c.atLeast("Rows", m.Rows, 0)
	c.atLeast("Cols", m.Cols, 0)
	t := m.From.Buffer.Type()
	if t != U32 {
		t = F32
	}
	m.FromRow.check(c, "FromRow", m.Batch)
	m.ToRow.check(c, "ToRow", m.Batch)
	m.FromRows = m.rows(c, "FromRow", m.FromRow, m.FromRows)
	m.ToRows = m.rows(c, "ToRow", m.ToRow, m.ToRows)
	m.From = c.read("From", t, m.From, m.Batch, m.FromRows, m.Cols)
	m.To = c.write("To", t, m.To, m.Batch, m.ToRows, m.Cols)
	c.cost.Bytes = 8 * float64(m.Batch) * float64(m.Rows) * float64(m.Cols)
	return m
}

// rows returns how many rows one side has, and checks that a constant index leads to
// rows within them.
func (m Copy) rows(c *checker, name string, x Index, rows int) int {
	c.atLeast(name+"s", rows, 0)
	n, ok := x.Const()
	if !ok {
		if rows < m.Rows {
			c.failf("%ss: want at least the %d rows to copy, given %d", name, m.Rows, rows)
		}
		return rows
	}
	var e extent
	end := e.add(max(n, 0), max(m.Rows, 0))
	if rows == 0 && !e.over {
		return end
	}
	if e.over || end > rows {
		c.failf("%s: want rows %d to %s within %d", name, n, e.format(end), rows)
	}
	return rows
}

// Cuts implements Op. Rows are cut only where both row indices are constant.
func (m Copy) Cuts() []Cut {
	cuts := []Cut{{AxisBatch, m.Batch, 1}}
	_, from := m.FromRow.Const()
	_, to := m.ToRow.Const()
	if from && to {
		cuts = append(cuts, Cut{AxisRows, m.Rows, 1})
	}
	return cuts
}

func (m Copy) part(axis Axis, from, to int) Op {
	if axis == AxisBatch {
		m.From, m.To, m.Batch = m.From.item(from), m.To.item(from), to-from
		m.FromRow, m.ToRow = m.FromRow.item(from), m.ToRow.item(from)
		return m
	}
	fromRow, _ := m.FromRow.Const()
	toRow, _ := m.ToRow.Const()
	m.From, m.To = m.From.row(fromRow+from), m.To.row(toRow+from)
	m.FromRow, m.ToRow = Index{}, Index{}
	m.Rows = to - from
	m.FromRows, m.ToRows = m.Rows, m.Rows
	return m
}

// item returns the index of the items from b on.
func (x Index) item(b int) Index {
	if x.each {
		x.view.Offset += b
	}
	return x
}

// Fill sets elements of an F32 buffer to Value, or those of a U32 buffer to Word.
type Fill struct {
	To    View    // [Batch][Rows][Cols]
	Batch int     // 0: one item
	Rows  int     // 0: nothing is done
	Cols  int     // 0: nothing is done
	Value float32 // for F32
	Word  uint32  // for U32
}

// Name implements Op.
func (Fill) Name() string { return "fill" }

func (f Fill) describe(c *checker) Op {
	f.Batch = c.batch(f.Batch)
	c.atLeast("Rows", f.Rows, 0)
	c.atLeast("Cols", f.Cols, 0)
	t := f.To.Buffer.Type()
	if t != U32 {
		t = F32
	}
	if t == U32 && f.Value != 0 || t == F32 && f.Word != 0 {
		c.failf("Value, Word: want the one of type %v, given %v and %d", t, f.Value, f.Word)
	}
	f.To = c.write("To", t, f.To, f.Batch, f.Rows, f.Cols)
	c.done(0, 0)
	return f
}

// Cuts implements Op.
func (f Fill) Cuts() []Cut { return []Cut{{AxisBatch, f.Batch, 1}, {AxisRows, f.Rows, 1}} }

func (f Fill) part(axis Axis, from, to int) Op {
	if axis == AxisBatch {
		f.To, f.Batch = f.To.item(from), to-from
	} else {
		f.To, f.Rows = f.To.row(from), to-from
	}
	return f
}
