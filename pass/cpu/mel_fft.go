package cpu

import (
	"math"
	"unsafe"
)

// A transform is a Fourier transform of n real numbers, n even, in float64: a complex
// one of half the length over pairs of them, of any factors, and a step that takes
// apart what was done together (Cooley and Tukey, An algorithm for the machine
// calculation of complex Fourier series, 1965). A factor r costs r operations for each
// number, so that a length with a large prime factor is slow.
type transform struct {
	n       int
	factors []int        // of n/2
	turns   []complex128 // exp(−2πi·k/n)
}

func newTransform(n int) *transform {
	f := &transform{n: n, turns: make([]complex128, n)}
	for k := range f.turns {
		sin, cos := math.Sincos(-2 * math.Pi * float64(k) / float64(n))
		f.turns[k] = complex(cos, sin)
	}
	rest := n / 2
	for _, r := range []int{4, 2, 3, 5} {
		for rest%r == 0 {
			f.factors = append(f.factors, r)
			rest /= r
		}
	}
	for r := 7; rest > 1; r += 2 {
		if r*r > rest {
			r = rest
		}
		for rest%r == 0 {
			f.factors = append(f.factors, r)
			rest /= r
		}
	}
	return f
}

// largest returns the largest factor.
func (f *transform) largest() int {
	most := 1
	for _, r := range f.factors {
		most = max(most, r)
	}
	return most
}

// A spectrum is the space of a transform.
type spectrum struct {
	real  []float64    // n, what is transformed
	pairs []complex128 // n/2
	out   []complex128 // n/2
	terms []complex128 // of a factor
	power []float64    // n/2 + 1
}

// size returns how many floats of scratch a space takes.
func (f *transform) size() int { return 2*(f.n+f.n/2+1) + 4*(f.n+f.largest()) }

// space lays out a space in scratch.
func (f *transform) space(scratch []float32) (s spectrum) {
	s.pairs, scratch = complexes(scratch, f.n/2)
	s.out, scratch = complexes(scratch, f.n/2)
	s.terms, scratch = complexes(scratch, f.largest())
	s.real, scratch = doubles(scratch, f.n)
	s.power, _ = doubles(scratch, f.n/2+1)
	return s
}

// doubles and complexes take n numbers from scratch, which begins at a multiple of eight
// bytes, as memory that Go allocates in such sizes does.

func doubles(scratch []float32, n int) ([]float64, []float32) {
	return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(scratch[:2*n]))), n), scratch[2*n:]
}

func complexes(scratch []float32, n int) ([]complex128, []float32) {
	return unsafe.Slice((*complex128)(unsafe.Pointer(unsafe.SliceData(scratch[:4*n]))), n), scratch[4*n:]
}

// run computes the squared magnitudes of the transform of s.real.
func (f *transform) run(s *spectrum) {
	half := f.n / 2
	for i := range s.pairs {
		s.pairs[i] = complex(s.real[2*i], s.real[2*i+1])
	}
	f.step(s.out, s.pairs, 1, f.factors, s.terms)
	for k := range s.power {
		z, w := s.out[k%half], s.out[(half-k)%half]
		w = complex(real(w), -imag(w))
		even, odd := (z+w)/2, (z-w)/2 // odd is i times the transform of the odd ones
		odd = complex(imag(odd), -real(odd))
		x := even + odd*f.turns[k]
		s.power[k] = real(x)*real(x) + imag(x)*imag(x)
	}
}

// step transforms every stride-th number of src into dst: in as many parts as the first
// factor says, which it then joins.
func (f *transform) step(dst, src []complex128, stride int, factors []int, terms []complex128) {
	if len(factors) == 0 {
		dst[0] = src[0]
		return
	}
	r := factors[0]
	m := len(dst) / r
	for q := range r {
		if m == 1 {
			dst[q] = src[q*stride]
		} else {
			f.step(dst[q*m:(q+1)*m], src[q*stride:], stride*r, factors[1:], terms)
		}
	}
	turn := f.n / len(dst) // turns[turn] is a step of this length
	switch r {
	case 2:
		for k := range m {
			a, b := dst[k], dst[k+m]*f.turns[k*turn]
			dst[k], dst[k+m] = a+b, a-b
		}
	case 4:
		for k := range m {
			a, b := dst[k], dst[k+m]*f.turns[k*turn]
			c, d := dst[k+2*m]*f.turns[2*k*turn], dst[k+3*m]*f.turns[3*k*turn]
			ac, ca, bd, db := a+c, a-c, b+d, b-d
			db = complex(imag(db), -real(db)) // times −i
			dst[k], dst[k+m], dst[k+2*m], dst[k+3*m] = ac+bd, ca+db, ac-bd, ca-db
		}
	default:
		for k := range m {
			for q := range r {
				terms[q] = dst[q*m+k] * f.turns[q*k*turn]
			}
			for s := range r {
				sum, at, by := terms[0], 0, s*(f.n/r)
				for _, t := range terms[1:r] {
					if at += by; at >= f.n {
						at -= f.n
					}
					sum += t * f.turns[at]
				}
				dst[s*m+k] = sum
			}
		}
	}
}
