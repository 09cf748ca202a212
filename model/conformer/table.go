package conformer

import "math"

// Table returns the sinusoids of the relative positions frames − 1 … −(frames − 1), in
// rows of width: at 2i the sine, at 2i + 1 the cosine of position·10000^(−2i/width),
// computed in float64 and rounded once. What serves fewer frames t is its middle, the
// rows from frames − t on: a table for the longest audio serves all.
func Table(frames, width int) []float32 {
	if frames < 1 {
		return nil
	}
	table := make([]float32, (2*frames-1)*width)
	for i := 0; i < width; i += 2 {
		rate := math.Pow(10000, -float64(i)/float64(width))
		for r := range 2*frames - 1 {
			sin, cos := math.Sincos(float64(frames-1-r) * rate)
			table[r*width+i] = float32(sin)
			if i+1 < width {
				table[r*width+i+1] = float32(cos)
			}
		}
	}
	return table
}
