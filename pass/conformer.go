package pass

import (
	"fmt"
	"slices"
)

// ConvGLUWeights are the weights of a ConvGLU: a depthwise kernel, and the
// normalisation after it.
type ConvGLUWeights struct {
	Name       string    // for error messages and dumps
	Weight     Tensor    // [channels][kernel] or [channels][1][kernel], F32 or F16 or BF16, kernel odd
	Bias       []float32 // nil, or one for each channel
	Gain       []float32 // one for each channel
	Shift      []float32 // one for each channel
	Normalised bool      // layer norm with Gain and Shift, else x·Gain + Shift alone
	Eps        float32   // of the layer norm; 0: 1e-5
}

// ConvGLUShape is the geometry of ConvGLUWeights.
type ConvGLUShape struct {
	Channels, Kernel int
	Normalised       bool
	Eps              float32
}

// String gives the shape for error messages.
func (s ConvGLUShape) String() string {
	return fmt.Sprintf("convglu [%d][%d]", s.Channels, s.Kernel)
}

func (ConvGLUShape) paramShape() {}

// Shape implements Weights.
func (w ConvGLUWeights) Shape() (ParamShape, error) {
	t := w.Weight
	if err := t.Check(); err != nil {
		return nil, fmt.Errorf("pass: convglu weights %q: %w", w.Name, err)
	}
	dims := t.Shape
	if len(dims) == 3 && dims[1] == 1 {
		dims = []int{dims[0], dims[2]}
	}
	if len(dims) != 2 || slices.Min(dims) < 1 || dims[1]%2 == 0 || t.Type == Q8_0 {
		return nil, fmt.Errorf("pass: convglu weights %q: want [channels][kernel] of F32, F16 or BF16 with an odd kernel, given %v of %v: %w", w.Name, t.Shape, t.Type, ErrInvalid)
	}
	for _, v := range []struct {
		name   string
		n      int
		needed bool
	}{{"bias", len(w.Bias), w.Bias != nil}, {"gain", len(w.Gain), true}, {"shift", len(w.Shift), true}} {
		if v.needed && v.n != dims[0] {
			return nil, fmt.Errorf("pass: convglu weights %q: %s: want %d values, given %d: %w", w.Name, v.name, dims[0], v.n, ErrInvalid)
		}
	}
	c := checker{op: "convglu weights"}
	s := ConvGLUShape{Channels: dims[0], Kernel: dims[1], Normalised: w.Normalised, Eps: c.eps(w.Eps)}
	return s, c.err
}

func (ConvGLUWeights) weights() {}

// ConvGLU is the part of a Conformer's convolution that lies between its point-wise
// layers: of rows [a | b], a·sigmoid(b); a depthwise convolution over time, centred,
// with zeros beyond the ends, plus bias; layer norm or x·gain + shift; x·sigmoid(x).
// With Lengths, rows at or beyond an item's length are not read, and zero in Y.
type ConvGLU struct {
	X       View  // [Batch][Rows][2·channels]
	W       Param // ConvGLUWeights
	Y       View  // [Batch][Rows][channels]
	Batch   int   // 0: one item
	Rows    int   // 0: nothing is done
	Lengths Items // rows of each item; zero: Rows
	Out     Span  // rows to compute, Out.From at the first row of Y; zero: all
}

// Name implements Op.
func (ConvGLU) Name() string { return "convglu" }

func (g ConvGLU) describe(c *checker) Op {
	w := param[ConvGLUShape](c, "W", g.W)
	g.Batch = c.batch(g.Batch)
	c.atLeast("Rows", g.Rows, 0)
	g.Lengths.check(c, "Lengths", g.Batch, g.Rows, false)
	g.Out = g.Out.check(c, "Out", g.Rows)
	g.X = c.read("X", F32, g.X, g.Batch, g.Rows, 2*w.Channels)
	g.Y = c.write("Y", F32, g.Y, g.Batch, g.Out.Len(), w.Channels)
	c.done(float64(2*w.Kernel+14)*float64(g.Batch)*float64(g.Out.Len())*float64(w.Channels), 4*int64(w.Channels)*int64(w.Kernel+3))
	return g
}

// Cuts implements Op.
func (g ConvGLU) Cuts() []Cut { return []Cut{{AxisBatch, g.Batch, 1}, {AxisRows, g.Out.Len(), 16}} }

func (g ConvGLU) part(axis Axis, from, to int) Op {
	if axis == AxisBatch {
		g.X, g.Y, g.Batch = g.X.item(from), g.Y.item(from), to-from
		g.Lengths = g.Lengths.part(from, to)
		return g
	}
	g.Y, g.Out = g.Y.row(from), Span{g.Out.From + from, g.Out.From + to}
	return g
}

// DepthwiseWeights are the weights of a DepthwiseConv2D: a kernel of 3×3 for each
// channel; and, if First is given, those of a convolution of 3×3 from one channel
// before it.
type DepthwiseWeights struct {
	Name      string    // for error messages and dumps
	Weight    Tensor    // [channels][3][3] or [channels][1][3][3], F32 or F16 or BF16
	Bias      []float32 // nil, or one for each channel
	First     Tensor    // the zero Tensor, or as Weight
	FirstBias []float32 // nil, or one for each channel
}

// DepthwiseShape is the geometry of DepthwiseWeights.
type DepthwiseShape struct {
	Channels int
	First    bool
}

// String gives the shape for error messages.
func (s DepthwiseShape) String() string { return fmt.Sprintf("depthwise [%d][3][3]", s.Channels) }

func (DepthwiseShape) paramShape() {}

// Shape implements Weights.
func (w DepthwiseWeights) Shape() (ParamShape, error) {
	s := DepthwiseShape{First: w.First.Data != nil}
	tensors := []Tensor{w.Weight}
	if s.First {
		tensors = append(tensors, w.First)
	}
	for i, t := range tensors {
		if err := t.Check(); err != nil {
			return nil, fmt.Errorf("pass: depthwise weights %q: %w", w.Name, err)
		}
		n := len(t.Shape)
		if n != 3 && !(n == 4 && t.Shape[1] == 1) || t.Shape[0] < 1 || t.Shape[n-2] != 3 || t.Shape[n-1] != 3 || t.Type == Q8_0 {
			return nil, fmt.Errorf("pass: depthwise weights %q: %q: want [channels][3][3] of F32, F16 or BF16, given %v of %v: %w", w.Name, t.Name, t.Shape, t.Type, ErrInvalid)
		}
		if i == 0 {
			s.Channels = t.Shape[0]
		}
		if t.Shape[0] != s.Channels {
			return nil, fmt.Errorf("pass: depthwise weights %q: %q: want %d channels, given %d: %w", w.Name, t.Name, s.Channels, t.Shape[0], ErrInvalid)
		}
	}
	if w.FirstBias != nil && !s.First {
		return nil, fmt.Errorf("pass: depthwise weights %q: first bias: want none without first weights: %w", w.Name, ErrInvalid)
	}
	for _, b := range [][]float32{w.Bias, w.FirstBias} {
		if b != nil && len(b) != s.Channels {
			return nil, fmt.Errorf("pass: depthwise weights %q: bias: want %d values, given %d: %w", w.Name, s.Channels, len(b), ErrInvalid)
		}
	}
	return s, nil
}

func (DepthwiseWeights) weights() {}

// DepthwiseConv2D is the subsampling step of a FastConformer: each channel of an image
// [time][frequency][channel] is convolved by its own 3×3 kernel with stride 2 and zeros
// around the image, plus bias. If W has first weights, X is an image of one channel, and
// the image that is convolved is relu(convolution of X by 3×3 with stride 2 + bias), which
// is never stored.
//
// Each stage makes (n − 1)/2 + 1 of n. X may hold a part of the image, the rows of Held,
// so that long audio needs a bounded buffer; it must hold what the rows of Out read. With
// Lengths, rows at or beyond an item's length count as outside of the image, at each
// stage, and rows of Y that come from beyond are zero.
type DepthwiseConv2D struct {
	X         View  // [Batch][rows of Held][Frequency·channels], or Frequency alone before first weights
	W         Param // DepthwiseWeights
	Y         View  // [Batch][rows of Out][output frequency·channels]
	Batch     int   // 0: one item
	Time      int   // rows of the whole image X
	Frequency int   // columns of X
	Held      Span  // rows of the image that X holds; zero: all
	Out       Span  // rows of the output to compute, Out.From at the first row of Y; zero: all
	Lengths   Items // rows of each item's image X; zero: Time
}

// Name implements Op.
func (DepthwiseConv2D) Name() string { return "depthwiseconv2d" }

// Size returns the rows and columns of the whole output image.
func (d DepthwiseConv2D) Size() (time, frequency int) {
	time, frequency = halved(d.Time, 2), halved(d.Frequency, 2)
	if s, _ := d.W.Shape().(DepthwiseShape); s.First {
		time, frequency = halved(time, 2), halved(frequency, 2)
	}
	return time, frequency
}

// reads returns the rows of the image X that the output rows of out need.
func (d DepthwiseConv2D) reads(out Span, first bool) Span {
	from, to := 2*out.From-1, 2*(out.To-1)+2
	if first {
		from, to = 2*max(from, 0)-1, 2*(to-1)+2
	}
	return Span{max(from, 0), min(to, d.Time)}
}

func (d DepthwiseConv2D) describe(c *checker) Op {
	w := param[DepthwiseShape](c, "W", d.W)
	d.Batch = c.batch(d.Batch)
	c.atLeast("Time", d.Time, 0)
	c.atLeast("Frequency", d.Frequency, 0)
	d.Lengths.check(c, "Lengths", d.Batch, d.Time, false)
	time, frequency := d.Size()
	d.Out = d.Out.check(c, "Out", time)
	d.Held = d.Held.check(c, "Held", d.Time)
	if need := d.reads(d.Out, w.First); c.err == nil && d.Out.Len() > 0 && (need.From < d.Held.From || need.To > d.Held.To) {
		c.failf("Held: want rows %d to %d for output rows %d to %d, given %d to %d", need.From, need.To, d.Out.From, d.Out.To, d.Held.From, d.Held.To)
	}
	in := w.Channels
	stage := 20.0
	if w.First {
		in, stage = 1, 20+9*20
	}
	d.X = c.read("X", F32, d.X, d.Batch, d.Held.Len(), c.mul("Frequency", d.Frequency, in))
	d.Y = c.write("Y", F32, d.Y, d.Batch, d.Out.Len(), c.mul("Frequency", frequency, w.Channels))
	c.done(stage*float64(d.Batch)*float64(d.Out.Len())*float64(frequency)*float64(w.Channels), 40*int64(w.Channels))
	return d
}

// Cuts implements Op.
func (d DepthwiseConv2D) Cuts() []Cut {
	return []Cut{{AxisBatch, d.Batch, 1}, {AxisRows, d.Out.Len(), 1}}
}

func (d DepthwiseConv2D) part(axis Axis, from, to int) Op {
	if axis == AxisBatch {
		d.X, d.Y, d.Batch = d.X.item(from), d.Y.item(from), to-from
		d.Lengths = d.Lengths.part(from, to)
		return d
	}
	d.Y, d.Out = d.Y.row(from), Span{d.Out.From + from, d.Out.From + to}
	w, _ := d.W.Shape().(DepthwiseShape)
	need := d.reads(d.Out, w.First)
	d.X, d.Held = d.X.row(need.From-d.Held.From), need
	return d
}
