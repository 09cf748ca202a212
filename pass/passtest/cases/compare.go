package cases

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/pass"
)

// A Match says how results are compared.
type Match uint8

const (
	// Near compares within the limits of a Tolerance.
	Near Match = iota
	// Values wants equal values: zeros of the same sign, any NaN for a NaN.
	Values
	// Bits wants equal bits.
	Bits
)

// String returns "near", "values" or "bits".
func (m Match) String() string { return [...]string{"near", "values", "bits"}[min(m, Bits)] }

// A Tolerance is how far results may be off. With Near, an infinity or NaN that is
// wanted must be there, and none other, whatever the limits.
type Tolerance struct {
	Match Match
	L2    float64 // largest ‖got − want‖ / ‖want‖ of an output
	Max   float64 // largest |got − want| / max(1, largest |want|) of an element
	// Log, if not 0, says that the values are logarithms of powers, Log of them to a
	// factor of e. Those whose power is above 1e-4 of the largest are compared as L2 and
	// Max say; of all, the powers are, to 1e-6 of the largest beside what a logarithm
	// loses when it is rounded.
	Log float64
}

// The tolerances of the two kinds of math, against float64.
var (
	ExactTolerance = Tolerance{L2: 5e-6, Max: 2e-5}
	FastTolerance  = Tolerance{L2: 1e-3, Max: 5e-3}
)

// A Report says how an output differs from what is wanted.
type Report struct {
	Name  string
	Count int     // elements
	L2    float64 // relative, over the elements that are finite in both
	Max   float64 // largest error, relative to max(1, largest wanted)
	Index int     // of the largest error, or of the first element of another class
	Got   float64 // at Index
	Want  float64 // at Index
	Wrong int     // elements of another class: NaN, an infinity, finite; or other bits
	Power float64 // largest error of a power, relative to the largest; see Tolerance.Log
	Shape []int
}

// Compare compares an output with what is wanted.
func Compare(got, want Tensor, tol Tolerance) Report {
	r := Report{Name: want.Name, Count: len(want.Words), Index: -1, Shape: want.Shape}
	if len(got.Words) != len(want.Words) {
		r.Wrong = max(len(got.Words), len(want.Words))
		return r
	}
	var sum, norm, worst, largest float64
	loudest := math.Inf(-1) // logarithm
	for _, w := range want.Words {
		if y := number(w, pass.F32); class(y) == 0 {
			loudest = max(loudest, y)
		}
	}
	for i, w := range want.Words {
		g := got.Words[i]
		if want.Type == pass.U32 || tol.Match != Near {
			if !equal(g, w, want.Type, tol.Match) {
				r.wrong(i, number(g, want.Type), number(w, want.Type))
			}
			continue
		}
		x, y := number(g, pass.F32), number(w, pass.F32)
		if class(x) != class(y) {
			r.wrong(i, x, y)
			continue
		}
		if class(y) != 0 {
			continue
		}
		if tol.Log > 0 {
			lost := max(1, math.Abs(y)) * 0x1p-22 / tol.Log
			power, found := math.Exp((y-loudest)/tol.Log), math.Exp((x-loudest)/tol.Log)
			r.Power = max(r.Power, math.Abs(found-power)-lost*power)
			if power <= 1e-4 {
				continue
			}
		}
		largest = max(largest, math.Abs(y))
		e := x - y
		sum, norm = sum+e*e, norm+y*y
		if math.Abs(e) > worst {
			worst = math.Abs(e)
			if r.Wrong == 0 {
				r.Index, r.Got, r.Want = i, x, y
			}
		}
	}
	r.Max = worst / max(1, largest)
	if sum > 0 {
		r.L2 = math.Sqrt(sum / norm)
		if norm == 0 { // nothing but zeros: the largest error decides
			r.L2 = 0
		}
	}
	return r
}

func (r *Report) wrong(i int, got, want float64) {
	if r.Wrong == 0 {
		r.Index, r.Got, r.Want = i, got, want
	}
	r.Wrong++
}

func equal(g, w uint32, t pass.DType, m Match) bool {
	if t == pass.F32 && m == Values && number(w, t) != number(w, t) {
		return number(g, t) != number(g, t)
	}
	return g == w
}

func number(w uint32, t pass.DType) float64 {
	if t == pass.U32 {
		return float64(w)
	}
	return float64(math.Float32frombits(w))
}

// class tells NaN and the infinities from finite numbers.
func class(x float64) int {
	switch {
	case math.IsNaN(x):
		return 3
	case math.IsInf(x, 1):
		return 1
	case math.IsInf(x, -1):
		return 2
	}
	return 0
}

// Err returns nil if the report is within the tolerance, else an error with all of it.
func (r Report) Err(tol Tolerance) error {
	if r.Wrong == 0 && (tol.Match != Near || r.L2 <= tol.L2 && r.Max <= tol.Max && r.Power <= 1e-6) {
		return nil
	}
	if r.Wrong == 0 && r.Power > 1e-6 {
		return fmt.Errorf("%s: largest error of a power %.3g of the largest power (at most 1e-06)", r.Name, r.Power)
	}
	at := "no element"
	if r.Index >= 0 {
		at = fmt.Sprintf("element %d %v: got %v, want %v", r.Index, r.position(), r.Got, r.Want)
	}
	if r.Wrong > 0 {
		return fmt.Errorf("%s: %d of %d elements differ in bits or class (NaN, infinity, finite), first at %s", r.Name, r.Wrong, r.Count, at)
	}
	return fmt.Errorf("%s: relative L2 error %.3g (at most %.3g), largest error %.3g (at most %.3g), at %s", r.Name, r.L2, tol.L2, r.Max, tol.Max, at)
}

// position returns the indices of Index along the axes.
func (r Report) position() []int {
	at, i := make([]int, len(r.Shape)), r.Index
	for d := len(r.Shape) - 1; d >= 0; d-- {
		if r.Shape[d] > 0 {
			at[d], i = i%r.Shape[d], i/r.Shape[d]
		}
	}
	return at
}
