package truth

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// Softmax returns exp(x)/Σexp(x) of rows of cols elements.
func Softmax(x []float64, cols int) []float64 {
	y := make([]float64, 0, len(x))
	for ; len(x) > 0; x = x[cols:] {
		y = append(y, softmax(x[:cols])...)
	}
	return y
}

// softmax of nothing, or of nothing but −Inf, is zero.
func softmax(x []float64) []float64 {
	largest := math.Inf(-1)
	for _, v := range x {
		largest = max(largest, v) // NaN if there is one
	}
	y := make([]float64, len(x))
	if math.IsInf(largest, -1) {
		return y
	}
	sum := 0.0
	for i, v := range x {
		y[i] = math.Exp(v - largest)
		sum += y[i]
	}
	for i := range y {
		y[i] /= sum
	}
	return y
}

// LogSoftmax returns x − log Σexp(x) of rows of cols elements.
func LogSoftmax(x []float64, cols int) []float64 {
	y := make([]float64, 0, len(x))
	for ; len(x) > 0; x = x[cols:] {
		largest := math.Inf(-1)
		for _, v := range x[:cols] {
			largest = max(largest, v)
		}
		sum := 0.0
		for _, v := range x[:cols] {
			sum += math.Exp(v - largest)
		}
		for _, v := range x[:cols] {
			if math.IsInf(largest, -1) {
				y = append(y, largest)
			} else {
				y = append(y, v-largest-math.Log(sum))
			}
		}
	}
	return y
}

// Argmax returns IDs [batch][idRows], which held before, after the places of the largest
// values were stored from toRow on.
func Argmax(a pass.Argmax, x []float64, before []uint32, toRow []int) []uint32 {
	ids := append([]uint32(nil), before...)
	for r := range a.Batch * a.Rows {
		row, best := x[r*a.Cols:][:a.Cols], 0
		largest := math.Inf(-1)
		for j, v := range row {
			if v > largest {
				best, largest = j, v
			}
		}
		b := r / a.Rows
		ids[b*a.IDRows+toRow[b]+r%a.Rows] = uint32(best)
	}
	return ids
}
