package pass

import "math"

// Map applies an epilogue to each element: Y = epilogue(X).
type Map struct {
	X        View     // [Batch][Rows][Cols]
	Y        View     // [Batch][Rows][Cols]
	Batch    int      // 0: one item
	Rows     int      // 0: nothing is done
	Cols     int      // 0: nothing is done
	Epilogue Epilogue // any that is not in place
}

// Name implements Op.
func (Map) Name() string { return "map" }

func (m Map) describe(c *checker) Op {
	m.Batch = c.batch(m.Batch)
	c.atLeast("Rows", m.Rows, 0)
	c.atLeast("Cols", m.Cols, 0)
	if m.Epilogue.InPlace() {
		c.failf("Epilogue: want one that is not in place, given %v", m.Epilogue)
	}
	m.X = c.read("X", F32, m.X, m.Batch, m.Rows, m.Cols)
	m.Y = c.write("Y", F32, m.Y, m.Batch, m.Rows, m.Cols)
	c.done(float64(m.Batch)*float64(m.Rows)*float64(m.Cols), 0)
	return m
}

// Cuts implements Op.
func (m Map) Cuts() []Cut { return []Cut{{AxisBatch, m.Batch, 1}, {AxisRows, m.Rows, 1}} }

func (m Map) part(axis Axis, from, to int) Op {
	if axis == AxisBatch {
		m.X, m.Y, m.Batch = m.X.item(from), m.Y.item(from), to-from
	} else {
		m.X, m.Y, m.Rows = m.X.row(from), m.Y.row(from), to-from
	}
	return m
}

// Magnitude takes the absolute values of complex numbers: from rows [re | im] of
// 2·Cols elements, Y = sqrt(re² + im²), without overflow on the way.
type Magnitude struct {
	X     View // [Batch][Rows][2·Cols]
	Y     View // [Batch][Rows][Cols]
	Batch int  // 0: one item
	Rows  int  // 0: nothing is done
	Cols  int  // 0: nothing is done
}

// Name implements Op.
func (Magnitude) Name() string { return "magnitude" }

func (m Magnitude) describe(c *checker) Op {
	m.Batch = c.batch(m.Batch)
	c.atLeast("Rows", m.Rows, 0)
	c.atLeast("Cols", m.Cols, 0)
	if m.Cols > math.MaxInt/2 {
		c.failf("Cols: want at most %d, given %d", math.MaxInt/2, m.Cols)
		return m
	}
	m.X = c.read("X", F32, m.X, m.Batch, m.Rows, 2*m.Cols)
	m.Y = c.write("Y", F32, m.Y, m.Batch, m.Rows, m.Cols)
	c.done(4*float64(m.Batch)*float64(m.Rows)*float64(m.Cols), 0)
	return m
}

// Cuts implements Op.
func (m Magnitude) Cuts() []Cut { return []Cut{{AxisBatch, m.Batch, 1}, {AxisRows, m.Rows, 1}} }

func (m Magnitude) part(axis Axis, from, to int) Op {
	if axis == AxisBatch {
		m.X, m.Y, m.Batch = m.X.item(from), m.Y.item(from), to-from
	} else {
		m.X, m.Y, m.Rows = m.X.row(from), m.Y.row(from), to-from
	}
	return m
}

// Add adds two views: Y = A + B, where one row of B may serve all rows of an item, and
// one item of B all items.
type Add struct {
	A         View // [Batch][Rows][Cols]
	B         View // [Batch or 1][Rows or 1][Cols]
	Y         View // [Batch][Rows][Cols]; may be the very same view as A
	Batch     int  // 0: one item
	Rows      int  // 0: nothing is done
	Cols      int  // 0: nothing is done
	OverBatch bool // B has one item, for all
	OverRows  bool // an item of B has one row, for all
}

// Name implements Op.
func (Add) Name() string { return "add" }

func (a Add) describe(c *checker) Op {
	a.Batch = c.batch(a.Batch)
	c.atLeast("Rows", a.Rows, 0)
	c.atLeast("Cols", a.Cols, 0)
	batch, rows := a.Batch, a.Rows
	if a.OverBatch {
		batch = 1
	}
	if a.OverRows {
		rows = min(rows, 1)
	}
	a.A = c.read("A", F32, a.A, a.Batch, a.Rows, a.Cols)
	a.B = c.read("B", F32, a.B, batch, rows, a.Cols)
	a.Y = c.write("Y", F32, a.Y, a.Batch, a.Rows, a.Cols)
	c.mayShare("A", "Y")
	c.done(float64(a.Batch)*float64(a.Rows)*float64(a.Cols), 0)
	return a
}

// Cuts implements Op.
func (a Add) Cuts() []Cut { return rowCuts(a.Batch, a.Rows) }

func (a Add) part(axis Axis, from, to int) Op {
	a.A, a.Y, a.Batch, a.Rows = rowPart(axis, from, to, a.A, a.Y, a.Batch, a.Rows)
	switch {
	case axis == AxisBatch && !a.OverBatch:
		a.B = a.B.item(from)
	case axis == AxisRows && !a.OverRows:
		a.B = a.B.row(from)
	}
	return a
}

// Scale multiplies by a constant: Y = Factor·X.
type Scale struct {
	X      View // [Batch][Rows][Cols]
	Y      View // [Batch][Rows][Cols]; may be the very same view as X
	Batch  int  // 0: one item
	Rows   int  // 0: nothing is done
	Cols   int  // 0: nothing is done
	Factor float32
}

// Name implements Op.
func (Scale) Name() string { return "scale" }

func (s Scale) describe(c *checker) Op {
	s.Batch = c.batch(s.Batch)
	c.atLeast("Rows", s.Rows, 0)
	c.atLeast("Cols", s.Cols, 0)
	s.X = c.read("X", F32, s.X, s.Batch, s.Rows, s.Cols)
	s.Y = c.write("Y", F32, s.Y, s.Batch, s.Rows, s.Cols)
	c.mayShare("X", "Y")
	c.done(float64(s.Batch)*float64(s.Rows)*float64(s.Cols), 0)
	return s
}

// Cuts implements Op.
func (s Scale) Cuts() []Cut { return rowCuts(s.Batch, s.Rows) }

func (s Scale) part(axis Axis, from, to int) Op {
	s.X, s.Y, s.Batch, s.Rows = rowPart(axis, from, to, s.X, s.Y, s.Batch, s.Rows)
	return s
}

// SwiGLU gates one half of each row by the other: of rows [x | gate],
// Y = gate·sigmoid(gate)·x.
type SwiGLU struct {
	X         View // [Batch][Rows][2·Cols]
	Y         View // [Batch][Rows][Cols]; may be the first half of X, in place
	Batch     int  // 0: one item
	Rows      int  // 0: nothing is done
	Cols      int  // 0: nothing is done
	GateFirst bool // rows are [gate | x]
}

// Name implements Op.
func (SwiGLU) Name() string { return "swiglu" }

func (s SwiGLU) describe(c *checker) Op {
	s.X, s.Y, s.Batch = gated(c, s.X, s.Y, s.Batch, s.Rows, s.Cols, 6)
	return s
}

// Cuts implements Op.
func (s SwiGLU) Cuts() []Cut { return rowCuts(s.Batch, s.Rows) }

func (s SwiGLU) part(axis Axis, from, to int) Op {
	s.X, s.Y, s.Batch, s.Rows = rowPart(axis, from, to, s.X, s.Y, s.Batch, s.Rows)
	return s
}

// GLU gates the first half of each row by the second: of rows [a | b],
// Y = a·sigmoid(b).
type GLU struct {
	X     View // [Batch][Rows][2·Cols]
	Y     View // [Batch][Rows][Cols]; may be the first half of X, in place
	Batch int  // 0: one item
	Rows  int  // 0: nothing is done
	Cols  int  // 0: nothing is done
}

// Name implements Op.
func (GLU) Name() string { return "glu" }

func (g GLU) describe(c *checker) Op {
	g.X, g.Y, g.Batch = gated(c, g.X, g.Y, g.Batch, g.Rows, g.Cols, 5)
	return g
}

// Cuts implements Op.
func (g GLU) Cuts() []Cut { return rowCuts(g.Batch, g.Rows) }

func (g GLU) part(axis Axis, from, to int) Op {
	g.X, g.Y, g.Batch, g.Rows = rowPart(axis, from, to, g.X, g.Y, g.Batch, g.Rows)
	return g
}

// gated declares an op that makes Cols elements of rows of twice as many. In place, the
// output is the view of the input, so that its strides are the input's too.
func gated(c *checker, x, y View, batch, rows, cols int, flop float64) (View, View, int) {
	batch = c.batch(batch)
	c.atLeast("Rows", rows, 0)
	c.atLeast("Cols", cols, 0)
	wide := c.mul("Cols", 2, cols)
	x = c.read("X", F32, x, batch, rows, wide)
	y = c.write("Y", F32, y, batch, rows, cols)
	c.mayShare("X", "Y")
	c.done(flop*float64(batch)*float64(rows)*float64(cols), 0)
	return x, y, batch
}
