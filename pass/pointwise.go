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
