package truth

import (
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// Conv is a decoded convolution: W[Out][In][Kernel], Bias nil or Out values.
type Conv struct {
	Out, In, Kernel int
	W, Bias         []float64
}

// Steps returns how many output steps an item of n input steps has.
func (w Conv) Steps(v pass.Conv1D, n int) int {
	steps := 0
	for n > 0 && steps*max(v.Stride, 1)+w.Kernel <= v.PadLeft+n+v.PadRight {
		steps++
	}
	return steps / max(v.Pool, 1)
}

// Conv1D returns Y [batch][steps of Out][w.Out], pooled. Lengths are the input steps of each
// item; before is what Y held, for epilogues in place.
func Conv1D(v pass.Conv1D, w Conv, x []float64, lengths []int, before []float64) []float64 {
	span := v.Out.Resolve(w.Steps(v, v.In))
	var y []float64
	for b := range max(v.Batch, 1) {
		item := x[b*v.In*w.In:]
		steps := w.Steps(v, lengths[b])
		for t := span.From; t < span.To; t++ {
			for o := range w.Out {
				if t >= steps {
					y = append(y, 0)
					continue
				}
				was := 0.0
				if v.Epilogue.InPlace() {
					was = before[len(y)]
				}
				largest := math.Inf(-1)
				for k := range max(v.Pool, 1) {
					c := Epilogue(v.Epilogue, w.step(v, item, t*max(v.Pool, 1)+k, o, lengths[b]), was)
					if v.Abs {
						c = math.Abs(c)
					}
					if c > largest || v.Pool <= 1 { // of several, NaN does not count
						largest = c
					}
				}
				y = append(y, largest)
			}
		}
	}
	return y
}

// step returns the sum of a step that is not pooled, of an item of n input steps.
func (w Conv) step(v pass.Conv1D, item []float64, t, o, n int) float64 {
	sum := 0.0
	for j := range w.Kernel {
		at, ok := source(v, t*max(v.Stride, 1)+j-v.PadLeft, n)
		if !ok {
			continue
		}
		for i := range w.In {
			sum += item[at*w.In+i] * w.W[(o*w.In+i)*w.Kernel+j]
		}
	}
	if w.Bias != nil {
		sum += w.Bias[o]
	}
	return sum
}

// source returns the input step that is read for step at of an item of n steps, or
// false for a zero.
func source(v pass.Conv1D, at, n int) (int, bool) {
	if at >= 0 && at < n {
		return at, true
	}
	if v.Padding != pass.PadReflect {
		return 0, false
	}
	if at < 0 {
		return -at, true
	}
	return 2*(n-1) - at, true
}
