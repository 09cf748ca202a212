package cpu_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// A conv1DCase is a pooled convolution with dense operands, zero padding and relu or
// nothing after it.
type conv1DCase struct {
	batch, in, channels, out, kernel, stride, left, right, pool int
	abs, relu                                                   bool
	x, w, bias                                                  []float32
}

func (c conv1DCase) steps(length int) int {
	if length == 0 || length+c.left+c.right < c.kernel {
		return 0
	}
	return ((length+c.left+c.right-c.kernel)/c.stride + 1) / c.pool
}

func (c conv1DCase) want(lengths []int) []float64 {
	var want []float64
	for b, length := range lengths {
		item := make([]float64, c.steps(c.in)*c.out)
		for t := range c.steps(length) {
			for o := range c.out {
				most := math.Inf(-1)
				for s := t * c.pool; s < (t+1)*c.pool; s++ {
					sum := float64(c.bias[o])
					for k := range c.kernel {
						if i := s*c.stride + k - c.left; i >= 0 && i < length {
							for n := range c.channels {
								sum += float64(c.x[(b*c.in+i)*c.channels+n]) * float64(c.w[(o*c.channels+n)*c.kernel+k])
							}
						}
					}
					if c.relu && sum < 0 {
						sum = 0
					}
					if c.abs {
						sum = math.Abs(sum)
					}
					if sum > most {
						most = sum
					}
				}
				item[t*c.out+o] = most
			}
		}
		want = append(want, item...)
	}
	return want
}

func TestConv1DPooled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, c := range []conv1DCase{
		{in: 1, channels: 1, out: 1, kernel: 1, stride: 1, pool: 1, abs: true},
		{in: 1400, channels: 1, out: 80, kernel: 251, stride: 10, pool: 3, abs: true},
		{in: 40, channels: 3, out: 9, kernel: 5, stride: 1, left: 2, right: 2, pool: 2},
		{in: 300, channels: 2, out: 8, kernel: 3, stride: 1, pool: 100, relu: true}, // more than are made at once
		{in: 9, channels: 4, out: 17, kernel: 9, stride: 2, left: 8, right: 8, pool: 4, abs: true},
		{in: 5, channels: 2, out: 3, kernel: 2, stride: 1, pool: 5}, // no window fits
	} {
		c.batch = 2
		c.x, c.w, c.bias = random(r.rng, c.batch*c.in*c.channels), random(r.rng, c.out*c.channels*c.kernel), random(r.rng, c.out)
		lengths := []int{c.in, c.in - c.in/3}
		want := c.want(lengths)
		for i := (c.in + lengths[1]) * c.channels; i < len(c.x); i++ {
			c.x[i] = nan // is not read
		}
		y := r.output(c.batch, c.steps(c.in), c.out)
		op := pass.Conv1D{
			X: r.floats(c.batch, c.in, c.channels, c.x).View, Y: y.View,
			W:     r.load(pass.ConvWeights{Weight: pass.Float32s("w", c.w, c.out, c.channels, c.kernel), Bias: c.bias}),
			Batch: c.batch, In: c.in, Stride: c.stride, PadLeft: c.left, PadRight: c.right,
			Abs: c.abs, Pool: c.pool, Lengths: pass.Fixed(lengths...),
		}
		if c.relu {
			op.Epilogue = pass.ReLU
		}
		r.do(op)
		r.exact(want, y.values(), i)
		all := y.result()
		if steps := c.steps(c.in); steps > 2 { // a range has the bits that it has in the whole
			part := r.output(c.batch, steps-2, c.out)
			op.Y, op.Out = part.View, pass.Span{From: 1, To: steps - 1}
			r.do(op)
			got := part.result()
			for b := range c.batch {
				require.Equal(t, all[(b*steps+1)*c.out:(b*steps+steps-1)*c.out], got[b*(steps-2)*c.out:(b+1)*(steps-2)*c.out], "case %d", i)
			}
		}
	}
}

// NaN does not count among the steps that are pooled.
func TestConv1DPoolsAroundNaN(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.load(pass.ConvWeights{Weight: pass.Float32s("w", []float32{-1}, 1, 1, 1)})
	y := r.output(1, 2, 1)
	op := pass.Conv1D{X: r.floats(1, 6, 1, []float32{nan, 3, 2, -7, nan, 1}).View, W: w, Y: y.View, In: 6, Pool: 3}
	r.do(op)
	require.Equal(t, []float32{-2, 7}, y.values())
	op.Abs = true
	r.do(op)
	require.Equal(t, []float32{3, 7}, y.values())
}
