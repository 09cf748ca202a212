package cuda

import (
	"context"
	"math"

	"github.com/tandem-gpu/tandem/pass"
	"github.com/tandem-gpu/tandem/pass/backend"
)

// melParam is a loaded [pass.MelWeights]: the tables of [kernels.Mel].
type melParam struct {
	*memory
	shape   pass.MelShape
	radices []int // of the transform of half the length
}

func (p *melParam) window() int { return 2 * p.shape.FFT }
func (p *melParam) bank() int   { return p.window() + p.shape.Frame }

// loadMel lays out the tables of a front end. Turns are computed in float64.
func (d *device) loadMel(ctx context.Context, w pass.MelWeights, s pass.MelShape) (backend.Memory, error) {
	p := &melParam{shape: s, radices: radicesOf(s.FFT / 2)}
	words := make([]uint32, p.bank()+3*s.Mels)
	for i := range s.FFT {
		sine, cosine := math.Sincos(2 * math.Pi * float64(i) / float64(s.FFT))
		words[2*i], words[2*i+1] = math.Float32bits(float32(cosine)), math.Float32bits(float32(sine))
	}
	for i, v := range w.Window {
		words[p.window()+i] = math.Float32bits(v)
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
		copy(words[p.bank()+3*m:], []uint32{uint32(first), uint32(end - first), uint32(len(words))})
		for _, v := range row[first:end] {
			words = append(words, math.Float32bits(v))
		}
	}
	var err error
	if p.memory, err = d.upload("mel weights "+w.Name, bytesOf(words)); err != nil {
		return nil, err
	}
	return p, nil
}

// radicesOf returns the factors of a length, of which kernels have the first ones: eights,
// then at most one four or two, then odd primes.
func radicesOf(n int) []int {
	var all []int
	for _, r := range []int{8, 4, 2} {
		for ; n%r == 0; n /= r {
			all = append(all, r)
		}
	}
	for r := 3; n > 1; r += 2 {
		if r*r > n {
			r = n
		}
		for ; n%r == 0; n /= r {
			all = append(all, r)
		}
	}
	return all
}
