package cpu_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tandem-gpu/tandem/pass"
)

// A conv2DCase is a convolution with dense operands; residual and bias may be nil.
type conv2DCase struct {
	batch, height, width, in, out, size, stride int
	x, w, bias, residual                        []float32
	relu                                        bool
}

func (r *rig) conv2DCase(batch, height, width, in, out, size, stride int) conv2DCase {
	return conv2DCase{
		batch: batch, height: height, width: width, in: in, out: out, size: size, stride: stride,
		x: random(r.rng, batch*height*width*in), w: random(r.rng, out*in*size*size),
	}
}

// halved is the size of an axis after a convolution.
func halved(n, stride int) int {
	if n == 0 {
		return 0
	}
	return (n-1)/stride + 1
}

func (c conv2DCase) want() []float64 {
	var want []float64
	for b := range c.batch {
		for i := range halved(c.height, c.stride) {
			for j := range halved(c.width, c.stride) {
				for o := range c.out {
					sum := 0.0
					for ky := range c.size {
						for kx := range c.size {
							y, x := i*c.stride+ky-c.size/2, j*c.stride+kx-c.size/2
							if y < 0 || y >= c.height || x < 0 || x >= c.width {
								continue
							}
							for n := range c.in {
								sum += float64(c.x[((b*c.height+y)*c.width+x)*c.in+n]) * float64(c.w[((o*c.in+n)*c.size+ky)*c.size+kx])
							}
						}
					}
					if c.residual != nil {
						sum += float64(c.residual[len(want)])
					}
					if c.bias != nil {
						sum += float64(c.bias[o])
					}
					if c.relu {
						sum = math.Max(sum, 0)
					}
					want = append(want, sum)
				}
			}
		}
	}
	return want
}

func (r *rig) conv2D(c conv2DCase) (pass.Conv2D, *area) {
	height, width := halved(c.height, c.stride), halved(c.width, c.stride)
	y := r.output(c.batch, height*width, c.out)
	op := pass.Conv2D{
		X:     r.floats(c.batch, c.height*c.width, c.in, c.x).View,
		W:     r.load(pass.Conv2DWeights{Weight: pass.Float32s("w", c.w, c.out, c.in, c.size, c.size), Bias: c.bias}),
		Y:     y.View,
		Batch: c.batch, Height: c.height, Width: c.width, Stride: c.stride, ReLU: c.relu,
	}
	if c.residual != nil {
		op.Residual = r.floats(c.batch, height*width, c.out, c.residual).View
	}
	return op, y
}

func TestConv2D(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, s := range [][5]int{
		{1, 1, 1, 1, 1}, {2, 1, 7, 3, 9}, {1, 8, 1, 5, 17}, {2, 5, 6, 2, 8}, {1, 13, 17, 33, 64}, {1, 3, 70, 32, 72}, {1, 0, 3, 2, 2}, {1, 2, 2, 300, 3},
	} {
		for _, size := range []int{1, 3} {
			for _, stride := range []int{1, 2} {
				c := r.conv2DCase(s[0], s[1], s[2], s[3], s[4], size, stride)
				n := s[0] * halved(s[1], stride) * halved(s[2], stride) * s[4]
				switch (i + size + stride) % 4 {
				case 0:
					c.relu = true
				case 1:
					c.bias = random(r.rng, c.out)
				case 2:
					c.residual = random(r.rng, n)
				case 3:
					c.bias, c.residual, c.relu = random(r.rng, c.out), random(r.rng, n), true
				}
				op, y := r.conv2D(c)
				r.do(op)
				r.exact(c.want(), y.values(), s, size, stride)
			}
		}
	}
}

// A range of lines has the bits that they have in the whole.
func TestConv2DLines(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, stride := range []int{1, 2} {
		c := r.conv2DCase(2, 9, 11, 5, 12, 3, stride)
		c.residual = random(r.rng, 2*halved(9, stride)*halved(11, stride)*12)
		op, y := r.conv2D(c)
		r.do(op)
		all := y.result()
		width := halved(11, stride)
		part := r.output(2, 2*width, 12)
		op.Y, op.Out = part.View, pass.Span{From: 2, To: 4}
		op.Residual.Offset += 2 * width * op.Residual.RowStride
		r.do(op)
		item, lines := halved(9, stride)*width*12, width*12
		got := part.result()
		for b := range 2 {
			require.Equal(t, all[b*item+2*lines:b*item+4*lines], got[b*2*lines:(b+1)*2*lines], "item %d", b)
		}
	}
}

// NaN reaches the pixels around it and no others, through relu too.
func TestConv2DOfNaN(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.conv2DCase(1, 5, 5, 1, 1, 3, 1)
	c.x[2*5+3], c.relu = nan, true
	op, y := r.conv2D(c)
	r.do(op)
	for i, v := range y.values() {
		near := i/5 >= 1 && i/5 <= 3 && i%5 >= 2
		require.Equal(t, near, v != v, "pixel %d", i)
	}
}

// BenchmarkConv2D takes layers of a residual network on ten seconds of speech.
func BenchmarkConv2D(b *testing.B) {
	r := newRig(b)
	for _, s := range [][4]int{{80, 998, 32, 32}, {10, 125, 256, 256}} {
		b.Run(fmt.Sprint(s), func(b *testing.B) {
			op, _ := r.conv2D(r.conv2DCase(1, s[0], s[1], s[2], s[3], 3, 1))
			rec, err := r.ses.Record(b.Context(), pass.RecordOptions{}, func(p pass.Pass) { p.Do(op) })
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				run, err := rec.Run(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				run.Close()
			}
			b.ReportMetric(9*float64(b.N)*float64(s[0]*s[1]*s[2]*s[3])/float64(b.Elapsed().Nanoseconds()), "GMAC/s")
		})
	}
}
