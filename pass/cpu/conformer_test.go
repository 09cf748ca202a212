package cpu_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// wantGLU evaluates the definition of ConvGLU for an item that ends after its length.
func wantGLU(x []float32, rows, length int, w pass.ConvGLUWeights, kernel []float32) []float64 {
	n := len(w.Gain)
	k := len(kernel) / n
	out := make([]float64, rows*n)
	for t := range length {
		row := out[t*n : (t+1)*n]
		for c := range n {
			for j := range k {
				if s := t + j - k/2; s >= 0 && s < length {
					row[c] += float64(x[s*2*n+c]) * logistic(float64(x[s*2*n+n+c])) * float64(kernel[c*k+j])
				}
			}
			if w.Bias != nil {
				row[c] += float64(w.Bias[c])
			}
		}
		mean, scale := 0.0, 1.0
		if w.Normalised {
			var variance float64
			mean, variance = meanVariance(row)
			scale = 1 / math.Sqrt(variance+float64(w.Eps))
		}
		for c, v := range row {
			v = (v-mean)*scale*float64(w.Gain[c]) + float64(w.Shift[c])
			row[c] = v * logistic(v)
		}
	}
	return out
}

func TestConvGLU(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, s := range [][3]int{{1, 1, 1}, {5, 7, 3}, {40, 8, 9}, {33, 17, 31}, {100, 24, 5}, {3, 9, 21}, {0, 4, 3}} {
		rows, n, k := s[0], s[1], s[2]
		kernel := random(r.rng, n*k)
		for _, normalised := range []bool{false, true} {
			w := pass.ConvGLUWeights{
				Weight: pass.Float32s("w", kernel, n, 1, k), Gain: random(r.rng, n), Shift: random(r.rng, n),
				Normalised: normalised, Eps: 1e-3,
			}
			if i%2 == 0 {
				w.Bias = random(r.rng, n)
			}
			x := random(r.rng, 2*rows*2*n)
			lengths := []int{rows, rows - rows/3}
			for i := (rows + lengths[1]) * 2 * n; i < len(x); i++ {
				x[i] = nan // is not read
			}
			var want []float64
			for b, l := range lengths {
				want = append(want, wantGLU(x[b*rows*2*n:], rows, l, w, kernel)...)
			}
			y := r.output(2, rows, n)
			op := pass.ConvGLU{X: r.floats(2, rows, 2*n, x).View, W: r.load(w), Y: y.View, Batch: 2, Rows: rows, Lengths: pass.Fixed(lengths...)}
			r.do(op)
			r.exact(want, y.values(), s, normalised)
			all := y.result()
			op.Lengths = pass.ItemsIn(r.numbers(uint32(lengths[0]), uint32(lengths[1])))
			r.do(op)
			require.Equal(t, all, y.result())
			if rows > 3 { // a range has the bits that it has in the whole
				part := r.output(2, rows-3, n)
				op.Y, op.Out = part.View, pass.Span{From: 2, To: rows - 1}
				r.do(op)
				got := part.result()
				for b := range 2 {
					require.Equal(t, all[(b*rows+2)*n:(b*rows+rows-1)*n], got[b*(rows-3)*n:(b+1)*(rows-3)*n], "%v", s)
				}
			}
		}
	}
	one := r.load(pass.ConvGLUWeights{Weight: pass.Float32s("w", make([]float32, 3), 1, 3), Gain: []float32{1}, Shift: []float32{0}})
	x, y := r.floats(2, 3, 2, make([]float32, 12)), r.output(2, 3, 1)
	r.fails(pass.ConvGLU{X: x.View, W: one, Y: y.View, Batch: 2, Rows: 3, Lengths: pass.ItemsIn(r.numbers(3, 4))}, "Lengths", "item 1", "0 to 3", "given 4")
}

// Gates far out do not overflow to NaN.
func TestConvGLUSaturates(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.load(pass.ConvGLUWeights{Weight: pass.Float32s("w", []float32{1}, 1, 1), Gain: []float32{1}, Shift: []float32{0}})
	y := r.output(1, 3, 1)
	r.do(pass.ConvGLU{X: r.floats(1, 3, 2, []float32{300, -3e38, 300, 3e38, -3e38, 3e38}).View, W: w, Y: y.View, Rows: 3})
	require.Equal(t, []float32{0, 300, 0}, y.values())
}

// stride2 convolves an image [time][frequency][channels] of which rows count, by a
// kernel for each channel, with stride 2.
func stride2(x []float64, rows, time, frequency, n int, kernel, bias []float32) (y []float64, outTime int) {
	outTime, out := halved(time, 2), halved(frequency, 2)
	y = make([]float64, outTime*out*n)
	for t := range halved(rows, 2) {
		for f := range out {
			for c := range n {
				sum := 0.0
				for k := range 9 {
					i, j := 2*t-1+k/3, 2*f-1+k%3
					if i >= 0 && i < rows && j >= 0 && j < frequency {
						sum += x[(i*frequency+j)*n+c] * float64(kernel[c*9+k])
					}
				}
				if bias != nil {
					sum += float64(bias[c])
				}
				y[(t*out+f)*n+c] = sum
			}
		}
	}
	return y, outTime
}

// wantDepthwise evaluates the definition of DepthwiseConv2D for an item.
func wantDepthwise(x []float32, length, time, frequency, n int, first, firstBias, kernel, bias []float32) []float64 {
	in := n
	if first != nil {
		in = 1
	}
	image := make([]float64, time*frequency*n)
	for i := range image {
		image[i] = float64(x[i*in/n])
	}
	if first != nil {
		image, time = stride2(image, length, time, frequency, n, first, firstBias)
		for i, v := range image {
			image[i] = math.Max(v, 0)
		}
		length, frequency = halved(length, 2), halved(frequency, 2)
	}
	y, _ := stride2(image, length, time, frequency, n, kernel, bias)
	return y
}

func TestDepthwiseConv2D(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, s := range [][3]int{{1, 1, 1}, {2, 3, 8}, {37, 10, 5}, {80, 16, 9}, {41, 7, 24}, {0, 4, 2}, {4, 1, 3}} {
		time, frequency, n := s[0], s[1], s[2]
		for _, fused := range []bool{false, true} {
			kernel := random(r.rng, n*9)
			w := pass.DepthwiseWeights{Weight: pass.Float32s("w", kernel, n, 1, 3, 3)}
			var first []float32
			in := n
			if fused {
				in, first = 1, random(r.rng, n*9)
				w.First = pass.Float32s("first", first, n, 3, 3)
			}
			if i%2 == 0 {
				w.Bias = random(r.rng, n)
				if fused {
					w.FirstBias = random(r.rng, n)
				}
			}
			x := random(r.rng, 2*time*frequency*in)
			lengths := []int{time, time - time/3}
			var want []float64
			for b, l := range lengths {
				want = append(want, wantDepthwise(x[b*time*frequency*in:], l, time, frequency, n, first, w.FirstBias, kernel, w.Bias)...)
			}
			for i := (time + lengths[1]) * frequency * in; i < len(x); i++ {
				x[i] = nan // is not read
			}
			op := pass.DepthwiseConv2D{
				X: r.floats(2, time, frequency*in, x).View, W: r.load(w), Batch: 2, Time: time, Frequency: frequency, Lengths: pass.Fixed(lengths...),
			}
			rows, columns := op.Size()
			y := r.output(2, rows, columns*n)
			op.Y = y.View
			r.do(op)
			r.exact(want, y.values(), s, fused)
			all := y.result()
			op.Lengths = pass.ItemsIn(r.numbers(uint32(lengths[0]), uint32(lengths[1])))
			r.do(op)
			require.Equal(t, all, y.result())
			if rows < 3 {
				continue
			}
			// Rows from the middle, of an image that holds no more than they need.
			from, to := 1, rows-1
			held := pass.Span{From: 2*from - 1, To: min(2*to, time)}
			if fused {
				held = pass.Span{From: 2*held.From - 1, To: min(2*(2*to-1)+2, time)}
			}
			var some []float32
			for b := range 2 {
				some = append(some, x[(b*time+held.From)*frequency*in:(b*time+held.To)*frequency*in]...)
			}
			part := r.output(2, to-from, columns*n)
			op.X, op.Held = r.floats(2, held.Len(), frequency*in, some).View, held
			op.Y, op.Out = part.View, pass.Span{From: from, To: to}
			r.do(op)
			got := part.result()
			for b := range 2 {
				require.Equal(t, all[(b*rows+from)*columns*n:(b*rows+to)*columns*n], got[b*(to-from)*columns*n:(b+1)*(to-from)*columns*n], "%v", s)
			}
		}
	}
	one := r.load(pass.DepthwiseWeights{Weight: pass.Float32s("w", make([]float32, 9), 1, 3, 3)})
	x, y := r.floats(2, 3, 1, make([]float32, 6)), r.output(2, 2, 1)
	r.fails(pass.DepthwiseConv2D{X: x.View, W: one, Y: y.View, Batch: 2, Time: 3, Frequency: 1, Lengths: pass.ItemsIn(r.numbers(4, 3))}, "Lengths", "item 0", "0 to 3", "given 4")
}
