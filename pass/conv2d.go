package pass

import (
	"fmt"
	"slices"
)

// Conv2DWeights are the weights of a Conv2D: one tensor [out][in][size][size], of size
// 3 or 1.
type Conv2DWeights struct {
	Name   string // for error messages and dumps
	Weight Tensor
	Bias   []float32 // nil, or out values
}

// Conv2DShape is the geometry of Conv2DWeights.
type Conv2DShape struct {
	Out, In, Size int
	Type          DType
	Bias          bool
}

// String gives the shape for error messages.
func (s Conv2DShape) String() string {
	return fmt.Sprintf("conv2d [%d][%d][%d][%d] %v", s.Out, s.In, s.Size, s.Size, s.Type)
}

func (Conv2DShape) paramShape() {}

// Shape implements Weights.
func (w Conv2DWeights) Shape() (ParamShape, error) {
	t := w.Weight
	if err := t.Check(); err != nil {
		return nil, fmt.Errorf("pass: conv2d weights %q: %w", w.Name, err)
	}
	if len(t.Shape) != 4 || slices.Min(t.Shape) < 1 || t.Shape[2] != t.Shape[3] || t.Shape[2] != 1 && t.Shape[2] != 3 {
		return nil, fmt.Errorf("pass: conv2d weights %q: want [out][in][3][3] or [out][in][1][1], given %v: %w", w.Name, t.Shape, ErrInvalid)
	}
	if t.Type == Q8_0 {
		return nil, fmt.Errorf("pass: conv2d weights %q: want F32, F16 or BF16, given %v: %w", w.Name, t.Type, ErrInvalid)
	}
	s := Conv2DShape{Out: t.Shape[0], In: t.Shape[1], Size: t.Shape[2], Type: t.Type, Bias: w.Bias != nil}
	if w.Bias != nil && len(w.Bias) != s.Out {
		return nil, fmt.Errorf("pass: conv2d weights %q: bias: want %d values, given %d: %w", w.Name, s.Out, len(w.Bias), ErrInvalid)
	}
	return s, nil
}

func (Conv2DWeights) weights() {}

// Conv2D convolves images (cross-correlation, one group), with a kernel of 3×3 and
// zeros around the image, or of 1×1 and none:
//
//	Y = relu(Σ X·W + Residual + bias)
//
// where Residual, bias and relu are there if asked for. Pixels are rows of the views,
// line by line; an image of n lines has (n − 1)/Stride + 1 lines in Y, and columns
// alike.
type Conv2D struct {
	X        View  // [Batch][Height·Width][in]
	W        Param // Conv2DWeights
	Residual View  // as Y; zero: none
	Y        View  // [Batch][lines of Out · output width][out]
	Batch    int   // 0: one image
	Height   int   // lines of X
	Width    int   // pixels in a line of X
	Stride   int   // 1 or 2; 0: 1
	ReLU     bool
	Out      Span // output lines to compute, Out.From at the first row of Y; zero: all
	Exact    bool // no rounded operands, in a Fast recording too
}

// Name implements Op.
func (Conv2D) Name() string { return "conv2d" }

// halved returns the size of an axis of n after a convolution of the given stride.
func halved(n, stride int) int {
	if n <= 0 {
		return 0
	}
	return (n-1)/max(stride, 1) + 1
}

// Size returns the lines and columns of the whole output image.
func (v Conv2D) Size() (height, width int) {
	return halved(v.Height, v.Stride), halved(v.Width, v.Stride)
}

func (v Conv2D) describe(c *checker) Op {
	w := param[Conv2DShape](c, "W", v.W)
	v.Batch = c.batch(v.Batch)
	c.atLeast("Height", v.Height, 0)
	c.atLeast("Width", v.Width, 0)
	stride := v.Stride
	if v.Stride = max(v.Stride, 1); stride < 0 || stride > 2 {
		c.failf("Stride: want 1 or 2, given %d", stride)
	}
	height, width := v.Size()
	v.Out = v.Out.check(c, "Out", height)
	pixels := c.mul("Out", v.Out.Len(), width)
	v.X = c.read("X", F32, v.X, v.Batch, c.mul("Height, Width", v.Height, v.Width), w.In)
	if !v.Residual.IsZero() {
		v.Residual = c.read("Residual", F32, v.Residual, v.Batch, pixels, w.Out)
	}
	v.Y = c.write("Y", F32, v.Y, v.Batch, pixels, w.Out)
	taps := w.In * w.Size * w.Size
	c.done(2*float64(v.Batch)*float64(pixels)*float64(w.Out)*float64(taps), matrixBytes(w.Type, w.Out, taps))
	return v
}

// Cuts implements Op.
func (v Conv2D) Cuts() []Cut { return []Cut{{AxisBatch, v.Batch, 1}, {AxisRows, v.Out.Len(), 1}} }

func (v Conv2D) part(axis Axis, from, to int) Op {
	if axis == AxisBatch {
		v.X, v.Y, v.Batch = v.X.item(from), v.Y.item(from), to-from
		if !v.Residual.IsZero() {
			v.Residual = v.Residual.item(from)
		}
		return v
	}
	_, width := v.Size()
	v.Y = v.Y.row(from * width)
	if !v.Residual.IsZero() {
		v.Residual = v.Residual.row(from * width)
	}
	v.Out = Span{v.Out.From + from, v.Out.From + to}
	return v
}
