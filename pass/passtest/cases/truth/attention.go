package truth

import "github.com/tandem-gpu/tandem/pass"

// Keyed are the queries, keys and values of attention, and what relative positions need,
// as rows of heads·head dimension; Q2 and Positions nil or both given.
type Keyed struct{ Q, K, V, Q2, Positions []float64 }

// Attention returns O [batch][queries][heads·head dimension] for items of the given
// numbers of queries and keys.
func Attention(a pass.Attention, x Keyed, lengths, keyLengths []int) []float64 {
	width := a.Heads * a.HeadDim
	o := make([]float64, len(lengths)*a.Queries*width)
	for b, n := range lengths {
		for i := range n {
			for h := range a.Heads {
				query := (b*a.Queries+i)*width + h*a.HeadDim
				var seen []int
				var scores []float64
				for j := range keyLengths[b] {
					if !visible(a.Mask, i+a.Keys-a.Queries, j) {
						continue
					}
					key := (b*a.Keys+j)*width + h*a.HeadDim
					score := dot(x.Q[query:][:a.HeadDim], x.K[key:])
					if x.Q2 != nil {
						row := j - i + a.Keys - 1
						score += dot(x.Q2[query:][:a.HeadDim], x.Positions[row*width+h*a.HeadDim:])
					}
					seen, scores = append(seen, j), append(scores, float64(a.Scale)*score)
				}
				for s, p := range softmax(scores) {
					for d := range a.HeadDim {
						o[query+d] += p * x.V[(b*a.Keys+seen[s])*width+h*a.HeadDim+d]
					}
				}
			}
		}
	}
	return o
}

// visible reports whether the query at position p may see key j.
func visible(m pass.Mask, p, j int) bool {
	left, right := m.Band()
	switch m.Kind() {
	case pass.MaskCausal:
		return j <= p
	case pass.MaskBand:
		return p-left <= j && j <= p+right
	}
	return true
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}
