package gpu

import (
	"fmt"
	"math"

	"github.com/tandem-gpu/tandem/gpu/internal/driver"
	"github.com/tandem-gpu/tandem/pass"
)

// mostRadices is how many passes a transform may have; see mel.wgsl.
const mostRadices = 12

// radicesOf returns the factors of a length: fours, at most one two, odd primes.
func radicesOf(n int) []int {
	var all []int
	for r := 4; n > 1; {
		switch {
		case n%r == 0:
			all = append(all, r)
			n /= r
		case r == 4:
			r = 2
		case r == 2:
			r = 3
		case r*r > n:
			r = n
		default:
			r += 2
		}
	}
	return all
}

// melTables say where the tables of a front end are in their buffer: cosines and sines
// of a turn in as many steps as the transform is long, the window, and three words for
// each bin of the bank: its first frequency, how many there are, and where its weights
// begin.
type melTables struct{ pass.MelShape }

func (t melTables) window() int  { return 2 * t.FFT }
func (t melTables) bank() int    { return t.window() + t.Frame }
func (t melTables) weights() int { return t.bank() + 3*t.Mels }

// packMel lays out the tables. The turn is computed in float64.
func packMel(w pass.MelWeights, s pass.MelShape, limits driver.Limits) ([]packedBuffer, error) {
	t := melTables{s}
	words := make([]uint32, t.weights())
	for i := range s.FFT {
		sine, cosine := math.Sincos(2 * math.Pi * float64(i) / float64(s.FFT))
		words[2*i], words[2*i+1] = math.Float32bits(float32(cosine)), math.Float32bits(float32(sine))
	}
	for i, v := range w.Window {
		words[t.window()+i] = math.Float32bits(v)
	}
	bins := s.FFT/2 + 1
	for m := range s.Mels {
		row := w.Bank[m*bins : (m+1)*bins]
		first, end := 0, bins
		for first < end && row[first] == 0 {
			first++
		}
		for end > first && row[end-1] == 0 {
			end--
		}
		copy(words[t.bank()+3*m:], []uint32{uint32(first), uint32(end - first), uint32(len(words))})
		for _, v := range row[first:end] {
			words = append(words, math.Float32bits(v))
		}
	}
	if most := limits.MaxStorageBindingSize; 4*uint64(len(words)) > most {
		return nil, fmt.Errorf("%v: tables of %d bytes exceed the device's %d for one binding: %w", s, 4*len(words), most, pass.ErrUnsupported)
	}
	return []packedBuffer{{words: len(words), fill: func(dst []uint32, from int) error {
		copy(dst, words[from:])
		return nil
	}}}, nil
}
