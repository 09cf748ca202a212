package pass

import "slices"

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
	m.FromRows = indexedRows(c, "FromRow", "FromRows", m.FromRow, m.Rows, m.FromRows)
	m.ToRows = indexedRows(c, "ToRow", "ToRows", m.ToRow, m.Rows, m.ToRows)
	m.From = c.read("From", t, m.From, m.Batch, m.FromRows, m.Cols)
	m.To = c.write("To", t, m.To, m.Batch, m.ToRows, m.Cols)
	c.cost.Bytes = 8 * float64(m.Batch) * float64(m.Rows) * float64(m.Cols)
	return m
}

// Cuts implements Op.
func (m Copy) Cuts() []Cut { return rowCuts(m.Batch, m.Rows) }

func (m Copy) part(axis Axis, from, to int) Op {
	if axis == AxisBatch {
		m.From, m.To, m.Batch = m.From.item(from), m.To.item(from), to-from
		m.FromRow, m.ToRow = m.FromRow.item(from), m.ToRow.item(from)
		return m
	}
	m.From, m.FromRow, m.FromRows = m.From.rowsFrom(m.FromRow, m.FromRows, from)
	m.To, m.ToRow, m.ToRows = m.To.rowsFrom(m.ToRow, m.ToRows, from)
	m.Rows = to - from
	return m
}

// rowsFrom moves one side of a copy by some rows: the view where its row is constant,
// so that a part touches no more than its rows, else the index.
func (v View) rowsFrom(x Index, rows, by int) (View, Index, int) {
	if n, ok := x.Const(); ok {
		return v.row(n + by), Index{}, 0
	}
	return v, x.Plus(by), rows
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

// Permute reorders the axes of an array: axis a of Y is axis Order[a] of X. The first
// axis is the batch of the views, the last their columns, the two between their rows;
// an array of fewer axes begins with axes of 1.
type Permute struct {
	X     View   // [Dims[0]][Dims[1]·Dims[2]][Dims[3]]
	Y     View   // the same, with the dimensions in their new order
	Dims  [4]int // of X
	Order [4]int // a permutation of 0, 1, 2, 3
}

// Name implements Op.
func (Permute) Name() string { return "permute" }

// Out returns the dimensions of Y.
func (p Permute) Out() [4]int {
	var d [4]int
	for i, axis := range p.Order {
		if axis >= 0 && axis < 4 {
			d[i] = p.Dims[axis]
		}
	}
	return d
}

func (p Permute) describe(c *checker) Op {
	seen := [4]bool{}
	for _, axis := range p.Order {
		if axis < 0 || axis > 3 || seen[axis] {
			c.failf("Order: want a permutation of 0, 1, 2, 3, given %v", p.Order)
			return p
		}
		seen[axis] = true
	}
	for _, n := range p.Dims {
		if n < 0 {
			c.failf("Dims: want at least 0, given %v", p.Dims)
			return p
		}
	}
	d, e := p.Dims, p.Out()
	p.X = c.read("X", F32, p.X, d[0], c.mul("Dims", d[1], d[2]), d[3])
	p.Y = c.write("Y", F32, p.Y, e[0], c.mul("Dims", e[1], e[2]), e[3])
	c.done(0, 0)
	return p
}

// Cuts implements Op.
func (p Permute) Cuts() []Cut {
	if p.Order[0] != 0 {
		return nil
	}
	return []Cut{{AxisBatch, p.Dims[0], 1}}
}

func (p Permute) part(_ Axis, from, to int) Op {
	p.X, p.Y = p.X.item(from), p.Y.item(from)
	p.Dims[0] = to - from
	return p
}

// Advance steps the counters of a loop on the device, one for each item:
//
//	Index += By, unless Done
//
// If there are IDs, the id that was just written, at row Index + Plus of an item before
// the step, is looked at first: if it is one of Stop, Done becomes 1 and the counter
// stays. So a loop of many steps runs without the host. A run whose counter leads beyond
// IDRows fails.
type Advance struct {
	Index  View     // U32 [Batch], in place
	By     int      // at least 0
	IDs    View     // U32 [Batch][IDRows]; zero: none
	IDRows int      // rows of an item of IDs
	Plus   int      // at least 0
	Stop   []uint32 // at most MaxStop ids
	Done   View     // U32 [Batch], in place; zero: none
	Batch  int      // 0: one item
}

// MaxStop is how many ids may end a loop; see [Advance].
const MaxStop = 16

// Name implements Op.
func (Advance) Name() string { return "advance" }

func (a Advance) describe(c *checker) Op {
	a.Batch = c.batch(a.Batch)
	c.atLeast("By", a.By, 0)
	c.atLeast("Plus", a.Plus, 0)
	if int64(a.By) > 1<<31 || int64(a.Plus) > 1<<31 {
		c.failf("By, Plus: want at most 2^31, given %d and %d", a.By, a.Plus)
	}
	if len(a.Stop) > MaxStop {
		c.failf("Stop: want at most %d ids, given %d", MaxStop, len(a.Stop))
	}
	a.Stop = slices.Clone(a.Stop)
	if (a.IDs.IsZero() || a.Done.IsZero()) && len(a.Stop) > 0 {
		c.failf("Stop: want IDs and Done with ids to stop at")
	}
	a.Index = c.update("Index", U32, a.Index, 1, a.Batch, 1)
	if !a.IDs.IsZero() {
		c.atLeast("IDRows", a.IDRows, 1)
		a.IDs = c.read("IDs", U32, a.IDs, a.Batch, a.IDRows, 1)
	}
	if !a.Done.IsZero() {
		a.Done = c.update("Done", U32, a.Done, 1, a.Batch, 1)
	}
	c.done(0, 0)
	return a
}

// Cuts implements Op.
func (a Advance) Cuts() []Cut { return []Cut{{AxisBatch, a.Batch, 1}} }

func (a Advance) part(_ Axis, from, to int) Op {
	a.Index, a.Batch = a.Index.row(from), to-from
	if !a.IDs.IsZero() {
		a.IDs = a.IDs.item(from)
	}
	if !a.Done.IsZero() {
		a.Done = a.Done.row(from)
	}
	return a
}
