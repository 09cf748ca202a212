package truth

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// Gated is the decoded weights of a ConvGLU: Kernel[channels][k], Bias nil or one for
// each channel.
type Gated struct {
	Channels, K int
	Kernel      []float64
	Bias        []float64
	Norm        Norm
	Normalised  bool
	Eps         float64
}

// ConvGLU returns Y [batch][rows of Out][channels] for items of the given lengths.
func ConvGLU(g pass.ConvGLU, w Gated, x []float64, lengths []int) []float64 {
	span := g.Out.Resolve(g.Rows)
	y := make([]float64, 0, len(lengths)*span.Len()*w.Channels)
	for b, n := range lengths {
		gated := GLU(x[b*g.Rows*2*w.Channels:][:n*2*w.Channels], w.Channels)
		for t := span.From; t < span.To; t++ {
			row := make([]float64, w.Channels)
			if t < n {
				w.row(row, gated, t, n)
			}
			y = append(y, row...)
		}
	}
	return y
}

// row computes one row of n.
func (w Gated) row(row, gated []float64, t, n int) {
	for c := range row {
		for j := range w.K {
			if at := t + j - w.K/2; at >= 0 && at < n {
				row[c] += gated[at*w.Channels+c] * w.Kernel[c*w.K+j]
			}
		}
		if w.Bias != nil {
			row[c] += w.Bias[c]
		}
	}
	mean, variance := 0.0, 1.0
	if w.Normalised {
		mean, variance = moments(row)
		variance += w.Eps
	}
	for c, v := range row {
		row[c] = Epilogue(pass.SiLU, w.Norm.apply((v-mean)/math.Sqrt(variance), c), 0)
	}
}

// Depthwise is the decoded weights of a DepthwiseConv2D, of 3×3 for each channel; First
// nil, or those of the convolution before it.
type Depthwise struct {
	Channels    int
	W, Bias     []float64
	First, Lead []float64 // kernel and bias
}

// An image is [time][frequency][channels].
type image struct {
	time, frequency, channels int
	x                         []float64
}

// stride2 convolves each channel, or the only one, by the 3×3 kernel of each output
// channel with stride 2 and zeros around the image.
func (m image) stride2(kernel, bias []float64, channels int, relu bool) image {
	out := image{time: (m.time + 1) / 2, frequency: (m.frequency + 1) / 2, channels: channels}
	for t := range out.time {
		for f := range out.frequency {
			for c := range channels {
				sum := 0.0
				for i := range 9 {
					time, frequency := 2*t+i/3-1, 2*f+i%3-1
					if time < 0 || time >= m.time || frequency < 0 || frequency >= m.frequency {
						continue
					}
					sum += m.x[(time*m.frequency+frequency)*m.channels+c%m.channels] * kernel[c*9+i]
				}
				if bias != nil {
					sum += bias[c]
				}
				if relu {
					sum = Epilogue(pass.ReLU, sum, 0)
				}
				out.x = append(out.x, sum)
			}
		}
	}
	return out
}

// DepthwiseConv2D returns Y [batch][rows of Out][output frequency·channels] for items of
// the given lengths. X holds the rows of Held.
func DepthwiseConv2D(d pass.DepthwiseConv2D, w Depthwise, x []float64, lengths []int) []float64 {
	held := d.Held.Resolve(d.Time)
	in := w.Channels
	if w.First != nil {
		in = 1
	}
	row := d.Frequency * in
	var y []float64
	for b, n := range lengths {
		m := image{time: n, frequency: d.Frequency, channels: in, x: make([]float64, d.Time*row)}
		copy(m.x[held.From*row:], x[b*held.Len()*row:][:held.Len()*row])
		if w.First != nil {
			m = m.stride2(w.First, w.Lead, w.Channels, true)
		}
		m = m.stride2(w.W, w.Bias, w.Channels, false)
		width := m.frequency * w.Channels
		for t := d.Out.From; t < d.Out.To; t++ {
			if t < m.time {
				y = append(y, m.x[t*width:][:width]...)
			} else {
				y = append(y, make([]float64, width)...)
			}
		}
	}
	return y
}
