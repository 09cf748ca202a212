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
	floats  int   // of a number of the tables: 2 if twofold
}

func (p *melParam) window() int { return 2 * p.floats * p.shape.FFT }
func (p *melParam) bank() int   { return p.window() + p.floats*p.shape.Frame }

// put writes the number i of the table that begins at a word.
func (p *melParam) put(words []uint32, table, i int, v float64) {
	high := float32(v)
	words[table+p.floats*i] = math.Float32bits(high)
	if p.floats > 1 {
		words[table+p.floats*i+1] = math.Float32bits(float32(v - float64(high)))
	}
}

// loadMel lays out the tables of a front end, which are computed in float64.
func (d *device) loadMel(ctx context.Context, w pass.MelWeights, s pass.MelShape) (backend.Memory, error) {
	p := &melParam{shape: s, radices: radicesOf(s.FFT / 2), floats: 1}
	gain := 1.0
	if s.PreEmphasis != 0 && s.FFT <= melTwofoldLongest {
		p.floats, gain = 2, float64(s.Gain)
	}
	words := make([]uint32, p.bank()+3*s.Mels)
	for i := range s.FFT {
		sine, cosine := math.Sincos(-2 * math.Pi * float64(i) / float64(s.FFT))
		p.put(words, 0, 2*i, cosine)
		p.put(words, 0, 2*i+1, sine)
	}
	for i, v := range w.Window {
		p.put(words, p.window(), i, gain*float64(v))
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
	if p.memory, err = d.upload(ctx, "mel weights "+w.Name, bytesOf(words)); err != nil {
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
