package truth

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// Turn rotates the heads of rows [batch][rows][heads·dim] in place of a copy: the first
// w.Rot dimensions of each, by the angles of the positions from pos[b] on. Cosines and
// sines are rounded to float32 once, as the table holds them.
func Turn(w pass.RopeWeights, style pass.RopeStyle, x []float64, rows, heads, dim int, pos []int) []float64 {
	y := append([]float64(nil), x...)
	half := w.Rot / 2
	for b, from := range pos {
		for r := range rows {
			for i := range half {
				angle := float64(from+r) / math.Pow(w.Base, float64(2*i)/float64(w.Rot))
				cos, sin := float64(float32(math.Cos(angle))), float64(float32(math.Sin(angle)))
				for h := range heads {
					head := ((b*rows+r)*heads + h) * dim
					first, second := head+i, head+i+half
					if style == pass.RopeInterleaved {
						first, second = head+2*i, head+2*i+1
					}
					y[first] = x[first]*cos - x[second]*sin
					y[second] = x[second]*cos + x[first]*sin
				}
			}
		}
	}
	return y
}
