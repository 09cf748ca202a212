package truth

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// Map returns epilogue(x) for each element.
func Map(m pass.Map, x []float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = Epilogue(m.Epilogue, v, 0)
	}
	return y
}

// Magnitude returns sqrt(re² + im²) of rows [re | im]. Squares of float32 values
// neither overflow nor underflow in float64.
func Magnitude(m pass.Magnitude, x []float64) []float64 {
	var y []float64
	for r := range max(m.Batch, 1) * m.Rows {
		row := x[r*2*m.Cols:]
		for j := range m.Cols {
			re, im := row[j], row[m.Cols+j]
			y = append(y, math.Sqrt(re*re+im*im))
		}
	}
	return y
}
