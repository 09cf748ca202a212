package truth

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// Norm is the decoded factor and summand of each channel; Bias nil or as Gain.
type Norm struct{ Gain, Bias []float64 }

// apply returns v·gain + bias of a channel.
func (w Norm) apply(v float64, channel int) float64 {
	v *= w.Gain[channel]
	if w.Bias != nil {
		v += w.Bias[channel]
	}
	return v
}

// moments returns the mean and the biased variance.
func moments(x []float64) (mean, variance float64) {
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	for _, v := range x {
		variance += (v - mean) * (v - mean)
	}
	return mean, variance / float64(len(x))
}

// LayerNorm returns Y [batch][rows][cols].
func LayerNorm(l pass.LayerNorm, w Norm, x []float64) []float64 {
	y := make([]float64, len(x))
	for r := 0; r < len(x); r += l.Cols {
		mean, variance := moments(x[r : r+l.Cols])
		for j := range l.Cols {
			y[r+j] = w.apply((x[r+j]-mean)/math.Sqrt(variance+float64(l.Eps)), j)
		}
	}
	return y
}

// GroupNorm returns Y [batch][rows][cols] for items of the given lengths.
func GroupNorm(g pass.GroupNorm, w Norm, x []float64, lengths []int) []float64 {
	y := make([]float64, len(x))
	for b, n := range lengths {
		item := x[b*g.Rows*g.Cols:][:n*g.Cols]
		mean, variance := moments(item)
		for i, v := range item {
			y[b*g.Rows*g.Cols+i] = w.apply((v-mean)/math.Sqrt(variance+float64(g.Eps)), i%g.Cols)
		}
	}
	return y
}

// PoolNorm returns Y [batch][rows/pool][cols] for items of the given lengths.
func PoolNorm(p pass.PoolNorm, w Norm, x []float64, lengths []int) []float64 {
	out := p.Rows / p.Pool
	y := make([]float64, len(lengths)*out*p.Cols)
	for b, n := range lengths {
		for j := range p.Cols {
			pooled := make([]float64, n/p.Pool)
			for t := range pooled {
				pooled[t] = math.Inf(-1)
				for k := range p.Pool {
					v := x[(b*p.Rows+t*p.Pool+k)*p.Cols+j]
					if p.Abs {
						v = math.Abs(v)
					}
					if v > pooled[t] {
						pooled[t] = v
					}
				}
			}
			mean, variance := moments(pooled)
			for t, v := range pooled {
				v = w.apply((v-mean)/math.Sqrt(variance+float64(p.Eps)), j)
				y[(b*out+t)*p.Cols+j] = Epilogue(p.Epilogue, v, 0)
			}
		}
	}
	return y
}

// L2Norm returns Y [batch][rows][cols]. Squares of float32 values neither overflow nor
// underflow in float64.
func L2Norm(l pass.L2Norm, x []float64) []float64 {
	y := make([]float64, len(x))
	for r := 0; r < len(x); r += l.Cols {
		sum := 0.0
		for _, v := range x[r : r+l.Cols] {
			sum += v * v
		}
		norm := math.Sqrt(sum)
		if norm < float64(l.Eps) {
			norm = float64(l.Eps)
		}
		for j := range l.Cols {
			y[r+j] = x[r+j] / norm
		}
	}
	return y
}
