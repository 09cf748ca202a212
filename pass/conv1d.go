package pass

// Padding says what a convolution reads beyond the ends of its input.
type Padding uint8

const (
	// PadZero: zeros.
	PadZero Padding = iota
	// PadReflect: the input mirrored at its first and last step, which are not
	// repeated: … x[2] x[1] x[0] x[1] x[2] …
	PadReflect
)

// String returns "zero" or "reflect".
func (p Padding) String() string {
	if p == PadReflect {
		return "reflect"
	}
	return "zero"
}

// Conv1D convolves over time (cross-correlation, one group):
//
//	Y[b][t][o] = epilogue(Σᵢ Σⱼ X[b][t·Stride + j − PadLeft][i]·W[o][i][j] + bias[o])
//
// for the output steps t of Out; step Out.From is the first row of Y. With Abs or Pool,
// an output step is the largest |c| or c of Pool steps of the convolution, which are
// never stored: NaN does not count, and a window that does not fit is left out. With
// Lengths, item b ends after its length: padding starts there, and its output steps at
// or beyond Steps(length) are zero.
type Conv1D struct {
	X        View     // [Batch][In][in channels]
	W        Param    // ConvWeights [out channels][in channels][kernel]
	Y        View     // [Batch][Out][out channels]; read too with a residual epilogue
	Batch    int      // 0: one item
	In       int      // input steps
	Stride   int      // 0: 1
	PadLeft  int      // steps before the first
	PadRight int      // steps after the last
	Padding  Padding  // PadReflect wants both pads smaller than In and every length
	Out      Span     // within Steps(In); zero: all
	Lengths  Items    // input steps of each item; zero: In
	Epilogue Epilogue // any; none that is in place with Abs or Pool
	Abs      bool     // take absolute values after the epilogue
	Pool     int      // then the largest of so many steps; 0: 1
	Exact    bool     // no rounded operands, in a Fast recording too
}

// Name implements Op.
func (Conv1D) Name() string { return "conv1d" }

// Steps returns how many output steps an item of in input steps has: none if it is
// empty or shorter, with its padding, than the kernel.
func (v Conv1D) Steps(in int) int {
	s, ok := v.W.Shape().(ConvShape)
	stride := max(v.Stride, 1)
	if !ok || in <= 0 || in+v.PadLeft+v.PadRight < s.Kernel {
		return 0
	}
	return ((in+v.PadLeft+v.PadRight-s.Kernel)/stride + 1) / max(v.Pool, 1)
}

func (v Conv1D) describe(c *checker) Op {
	w := param[ConvShape](c, "W", v.W)
	v.Batch = c.batch(v.Batch)
	c.atLeast("In", v.In, 0)
	c.atLeast("Stride", v.Stride, 0)
	c.atLeast("PadLeft", v.PadLeft, 0)
	c.atLeast("PadRight", v.PadRight, 0)
	if m := max(v.PadLeft, v.PadRight); int64(m) > 1<<40 {
		c.failf("PadLeft, PadRight: want at most 2^40, given %d and %d", v.PadLeft, v.PadRight)
	}
	c.atLeast("Pool", v.Pool, 0)
	v.Stride, v.Pool = max(v.Stride, 1), max(v.Pool, 1)
	if v.Epilogue.InPlace() && (v.Abs || v.Pool > 1) {
		c.failf("Epilogue: want one that is not in place with Abs or Pool, given %v", v.Epilogue)
	}
	if v.Padding > PadReflect {
		c.failf("Padding: want PadZero or PadReflect, given %d", v.Padding)
	}
	if m := max(v.PadLeft, v.PadRight); v.Padding == PadReflect && m > 0 && v.In > 0 {
		if m >= v.In {
			c.failf("PadLeft, PadRight: want less than the %d input steps to reflect, given %d and %d", v.In, v.PadLeft, v.PadRight)
		}
		for b, n := range v.Lengths.Fixed() {
			if n > 0 && n <= m {
				c.failf("Lengths: item %d: want more than the %d steps to reflect, or 0, given %d", b, m, n)
			}
		}
	}
	v.Lengths.check(c, "Lengths", v.Batch, v.In, false)
	v.Out = v.Out.check(c, "Out", v.Steps(v.In))
	v.X = c.read("X", F32, v.X, v.Batch, v.In, w.In)
	if v.Epilogue.InPlace() {
		v.Y = c.update("Y", F32, v.Y, v.Batch, v.Out.Len(), w.Out)
	} else {
		v.Y = c.write("Y", F32, v.Y, v.Batch, v.Out.Len(), w.Out)
	}
	taps := float64(w.In) * float64(w.Kernel)
	c.done(2*float64(v.Batch)*float64(v.Out.Len())*float64(v.Pool)*float64(w.Out)*taps, matrixBytes(w.Type, w.Out, w.In*w.Kernel))
	return v
}

// Cuts implements Op.
func (v Conv1D) Cuts() []Cut {
	return []Cut{{AxisBatch, v.Batch, 1}, {AxisRows, v.Out.Len(), 64}}
}

func (v Conv1D) part(axis Axis, from, to int) Op {
	switch axis {
	case AxisBatch:
		v.X, v.Y, v.Batch = v.X.item(from), v.Y.item(from), to-from
		v.Lengths = v.Lengths.part(from, to)
	case AxisRows:
		v.Y = v.Y.row(from)
		v.Out = Span{v.Out.From + from, v.Out.From + to}
	}
	return v
}
