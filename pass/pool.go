package pass

// StatsPool takes means and standard deviations over the width of an image, for each
// channel and line, weighed by masks: row m of Y holds for mask m the means, then the
// deviations, channel·Height + line. Mask frame floor(i·Frames/Width) weighs column i.
// With weights w:
//
//	mean = Σwx/Σw
//	variance = Σw(x − mean)²/(Σw − Σw²/Σw)
//
// The variance is 0 where that divisor is not positive (one column), and at least 1e-10;
// a mask of zeros gives mean 0 and deviation 1e-5.
type StatsPool struct {
	X        View // [Batch][Height·Width][Channels]
	Masks    View // [Batch][Count][Frames]
	Y        View // [Batch][Count][2·Channels·Height]
	Batch    int  // 0: one item
	Height   int  // lines
	Width    int  // at least 1
	Channels int  // channels
	Count    int  // masks of an item
	Frames   int  // at least 1
}

// Name implements Op.
func (StatsPool) Name() string { return "statspool" }

func (s StatsPool) describe(c *checker) Op {
	s.Batch = c.batch(s.Batch)
	c.atLeast("Height", s.Height, 0)
	c.atLeast("Width", s.Width, 1)
	c.atLeast("Channels", s.Channels, 0)
	c.atLeast("Count", s.Count, 0)
	c.atLeast("Frames", s.Frames, 1)
	s.X = c.read("X", F32, s.X, s.Batch, c.mul("Height, Width", s.Height, s.Width), s.Channels)
	s.Masks = c.read("Masks", F32, s.Masks, s.Batch, s.Count, s.Frames)
	s.Y = c.write("Y", F32, s.Y, s.Batch, s.Count, c.mul("Channels, Height", c.mul("Channels", 2, s.Channels), s.Height))
	c.done(5*float64(s.Batch)*float64(s.Count)*float64(s.Height)*float64(s.Width)*float64(s.Channels), 0)
	return s
}

// Cuts implements Op.
func (s StatsPool) Cuts() []Cut { return []Cut{{AxisBatch, s.Batch, 1}, {AxisRows, s.Count, 1}} }

func (s StatsPool) part(axis Axis, from, to int) Op {
	if axis == AxisBatch {
		s.X, s.Masks, s.Y, s.Batch = s.X.item(from), s.Masks.item(from), s.Y.item(from), to-from
		return s
	}
	s.Masks, s.Y, s.Count = s.Masks.row(from), s.Y.row(from), to-from
	return s
}
