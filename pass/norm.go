package pass

import "fmt"

// NormWeights are the factor and the summand of a normalisation, one of each for
// every channel.
type NormWeights struct {
	Name string    // for error messages and dumps
	Gain []float32 // n values
	Bias []float32 // nil, or n values
}

// NormShape is the geometry of NormWeights.
type NormShape struct {
	N    int
	Bias bool
}

// String gives the shape for error messages.
func (s NormShape) String() string { return fmt.Sprintf("norm [%d]", s.N) }

func (NormShape) paramShape() {}

// Shape implements Weights.
func (w NormWeights) Shape() (ParamShape, error) {
	if len(w.Gain) == 0 {
		return nil, fmt.Errorf("pass: norm weights %q: gain: want at least one value: %w", w.Name, ErrInvalid)
	}
	if w.Bias != nil && len(w.Bias) != len(w.Gain) {
		return nil, fmt.Errorf("pass: norm weights %q: bias: want %d values, given %d: %w", w.Name, len(w.Gain), len(w.Bias), ErrInvalid)
	}
	return NormShape{N: len(w.Gain), Bias: w.Bias != nil}, nil
}

func (NormWeights) weights() {}

// norm declares the params of a normalisation over n channels.
func norm(c *checker, p Param, n int) {
	if s := param[NormShape](c, "W", p); s.N != n {
		c.failf("W: want %d channels, given %d", n, s.N)
	}
}

// eps returns the number that is added to a variance; 0 stands for 1e-5.
func (c *checker) eps(e float32) float32 {
	if !(e >= 0) || e > 1e30 {
		c.failf("Eps: want at least 0, given %v", e)
	}
	if e == 0 {
		return 1e-5
	}
	return e
}

// LayerNorm normalises each row:
//
//	Y = (x − mean)/sqrt(variance + Eps)·gain + bias
//
// with the biased variance. The mean is corrected (subtracted, and the mean of what
// remains subtracted again), so that a large offset costs no digits. With Rotated, the
// rows of Y are stored a second time, turned by the halves form of [Rope]; a run whose
// Pos leads beyond the table fails.
type LayerNorm struct {
	X     View    // [Batch][Rows][Cols]
	W     Param   // NormWeights [Cols]
	Y     View    // [Batch][Rows][Cols]; may be the very same view as X
	Batch int     // 0: one item
	Rows  int     // 0: nothing is done
	Cols  int     // at least 1
	Eps   float32 // 0: 1e-5

	Rotated View  // [Batch][Rows][Cols], zero: none; Heads·HeadDim = Cols
	Table   Param // RopeWeights, for Rotated
	Pos     Index // position of the first row
	Heads   int
}

// Name implements Op.
func (LayerNorm) Name() string { return "layernorm" }

func (l LayerNorm) describe(c *checker) Op {
	l.Batch = c.batch(l.Batch)
	c.atLeast("Rows", l.Rows, 0)
	c.atLeast("Cols", l.Cols, 1)
	l.Eps = c.eps(l.Eps)
	norm(c, l.W, l.Cols)
	l.X = c.read("X", F32, l.X, l.Batch, l.Rows, l.Cols)
	l.Y = c.write("Y", F32, l.Y, l.Batch, l.Rows, l.Cols)
	c.mayShare("X", "Y")
	if !l.Rotated.IsZero() {
		t := param[RopeShape](c, "Table", l.Table)
		c.atLeast("Heads", l.Heads, 1)
		if c.err == nil && (l.Cols%l.Heads != 0 || l.Cols/l.Heads < t.Rot) {
			c.failf("Heads: want heads of at least the %d turned dimensions that divide %d columns, given %d", t.Rot, l.Cols, l.Heads)
		}
		l.Pos.check(c, "Pos", l.Batch)
		l.Pos.within(c, "Pos", l.Rows, t.Positions)
		l.Rotated = c.write("Rotated", F32, l.Rotated, l.Batch, l.Rows, l.Cols)
	}
	c.done(8*float64(l.Batch)*float64(l.Rows)*float64(l.Cols), 8*int64(l.Cols))
	return l
}

// Cuts implements Op.
func (l LayerNorm) Cuts() []Cut { return rowCuts(l.Batch, l.Rows) }

func (l LayerNorm) part(axis Axis, from, to int) Op {
	move := View.row
	if axis == AxisBatch {
		move = View.item
		l.Batch, l.Pos = to-from, l.Pos.item(from)
	} else {
		l.Rows, l.Pos = to-from, l.Pos.Plus(from)
	}
	l.X, l.Y = move(l.X, from), move(l.Y, from)
	if !l.Rotated.IsZero() {
		l.Rotated = move(l.Rotated, from)
	}
	return l
}

// GroupNorm normalises all rows and channels of an item as one group, by the biased
// variance, then applies gain and bias of each channel. With Lengths, rows at or beyond
// an item's length do not count, and are zero in Y.
type GroupNorm struct {
	X       View    // [Batch][Rows][Cols]
	W       Param   // NormWeights [Cols]
	Y       View    // [Batch][Rows][Cols]; may be the very same view as X
	Batch   int     // 0: one item
	Rows    int     // 0: nothing is done
	Cols    int     // at least 1
	Lengths Items   // rows of each item; zero: Rows
	Eps     float32 // 0: 1e-5
}

// Name implements Op.
func (GroupNorm) Name() string { return "groupnorm" }

func (g GroupNorm) describe(c *checker) Op {
	g.Batch = c.batch(g.Batch)
	c.atLeast("Rows", g.Rows, 0)
	c.atLeast("Cols", g.Cols, 1)
	g.Eps = c.eps(g.Eps)
	norm(c, g.W, g.Cols)
	g.Lengths.check(c, "Lengths", g.Batch, g.Rows, false)
	g.X = c.read("X", F32, g.X, g.Batch, g.Rows, g.Cols)
	g.Y = c.write("Y", F32, g.Y, g.Batch, g.Rows, g.Cols)
	c.mayShare("X", "Y")
	c.done(8*float64(g.Batch)*float64(g.Rows)*float64(g.Cols), 8*int64(g.Cols))
	return g
}

// Cuts implements Op.
func (g GroupNorm) Cuts() []Cut { return []Cut{{AxisBatch, g.Batch, 1}} }

func (g GroupNorm) part(_ Axis, from, to int) Op {
	g.X, g.Y, g.Batch = g.X.item(from), g.Y.item(from), to-from
	g.Lengths = g.Lengths.part(from, to)
	return g
}

// PoolNorm pools over time, then normalises each channel of an item over time:
//
//	p[t] = max over the window of Pool rows from t·Pool on, of x or |x|; NaN does not count
//	Y = epilogue((p − mean)/sqrt(variance + Eps)·gain + bias)
//
// with the biased variance. A window that does not fit is left out. Pool 1, no Abs and
// no epilogue make InstanceNorm. With Lengths, an item has floor(length/Pool) pooled
// rows; those beyond do not count, and are zero in Y.
type PoolNorm struct {
	X        View     // [Batch][Rows][Cols]
	W        Param    // NormWeights [Cols]
	Y        View     // [Batch][Rows/Pool][Cols]
	Batch    int      // 0: one item
	Rows     int      // input rows
	Cols     int      // at least 1
	Abs      bool     // pool |x|
	Pool     int      // 0: 1
	Lengths  Items    // input rows of each item; zero: Rows
	Eps      float32  // 0: 1e-5
	Epilogue Epilogue // None or Leaky
}

// Name implements Op.
func (PoolNorm) Name() string { return "poolnorm" }

func (p PoolNorm) describe(c *checker) Op {
	p.Batch = c.batch(p.Batch)
	c.atLeast("Rows", p.Rows, 0)
	c.atLeast("Cols", p.Cols, 1)
	c.atLeast("Pool", p.Pool, 0)
	p.Pool = max(p.Pool, 1)
	p.Eps = c.eps(p.Eps)
	if k := p.Epilogue.Kind(); k != KindNone && k != KindLeaky {
		c.failf("Epilogue: want none or leaky, given %v", p.Epilogue)
	}
	norm(c, p.W, p.Cols)
	p.Lengths.check(c, "Lengths", p.Batch, p.Rows, false)
	p.X = c.read("X", F32, p.X, p.Batch, p.Rows, p.Cols)
	p.Y = c.write("Y", F32, p.Y, p.Batch, p.Rows/p.Pool, p.Cols)
	c.done(6*float64(p.Batch)*float64(p.Rows)*float64(p.Cols), 8*int64(p.Cols))
	return p
}

// Cuts implements Op.
func (p PoolNorm) Cuts() []Cut { return []Cut{{AxisBatch, p.Batch, 1}} }

func (p PoolNorm) part(_ Axis, from, to int) Op {
	p.X, p.Y, p.Batch = p.X.item(from), p.Y.item(from), to-from
	p.Lengths = p.Lengths.part(from, to)
	return p
}

// L2Norm scales each row to length one: Y = x/max(‖x‖, Eps), without overflow on the
// way.
type L2Norm struct {
	X     View    // [Batch][Rows][Cols]
	Y     View    // [Batch][Rows][Cols]
	Batch int     // 0: one item
	Rows  int     // 0: nothing is done
	Cols  int     // at least 1
	Eps   float32 // at least 0; 0: 1e-12
}

// Name implements Op.
func (L2Norm) Name() string { return "l2norm" }

func (l L2Norm) describe(c *checker) Op {
	l.Batch = c.batch(l.Batch)
	c.atLeast("Rows", l.Rows, 0)
	c.atLeast("Cols", l.Cols, 1)
	if l.Eps == 0 {
		l.Eps = 1e-12
	}
	l.Eps = c.eps(l.Eps)
	l.X = c.read("X", F32, l.X, l.Batch, l.Rows, l.Cols)
	l.Y = c.write("Y", F32, l.Y, l.Batch, l.Rows, l.Cols)
	c.done(3*float64(l.Batch)*float64(l.Rows)*float64(l.Cols), 0)
	return l
}

// Cuts implements Op.
func (l L2Norm) Cuts() []Cut { return rowCuts(l.Batch, l.Rows) }

func (l L2Norm) part(axis Axis, from, to int) Op {
	l.X, l.Y, l.Batch, l.Rows = rowPart(axis, from, to, l.X, l.Y, l.Batch, l.Rows)
	return l
}
