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

// Add returns A + B, where B may have one item for all, and one row for all of an item.
func Add(a pass.Add, x, y []float64) []float64 {
	var sum []float64
	for b := range a.Batch {
		for r := range a.Rows {
			item, row, rows := b, r, a.Rows
			if a.OverRows {
				row, rows = 0, 1
			}
			if a.OverBatch {
				item = 0
			}
			for j := range a.Cols {
				sum = append(sum, x[(b*a.Rows+r)*a.Cols+j]+y[(item*rows+row)*a.Cols+j])
			}
		}
	}
	return sum
}

// Scale returns factor·x.
func Scale(s pass.Scale, x []float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(s.Factor) * v
	}
	return y
}

// SwiGLU returns gate·sigmoid(gate)·x of rows [x | gate], or [gate | x].
func SwiGLU(s pass.SwiGLU, x []float64) []float64 {
	var y []float64
	for ; len(x) > 0 && s.Cols > 0; x = x[2*s.Cols:] {
		for j := range s.Cols {
			v, gate := x[j], x[s.Cols+j]
			if s.GateFirst {
				v, gate = gate, v
			}
			y = append(y, gate/(1+math.Exp(-gate))*v)
		}
	}
	return y
}

// GLU returns a·sigmoid(b) of rows [a | b] of 2·cols elements.
func GLU(x []float64, cols int) []float64 {
	var y []float64
	for ; len(x) > 0 && cols > 0; x = x[2*cols:] {
		for j := range cols {
			y = append(y, x[j]*sigmoid(x[cols+j]))
		}
	}
	return y
}
